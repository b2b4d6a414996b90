package manifest

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/pb/tablepb"
	"github.com/lakesql/lakesql/storage/schema"
)

// Sizes and limits of manifest files.
const (
	footerBytes  = 16
	tailBytes    = 64 << 10 // what is read first of a file: most manifests fit
	fileBytesMax = 1 << 30
	fragmentsMax = 1 << 22
	footerMajor  = 0
	footerMinor  = 2
)

var footerMagic = [4]byte{'L', 'A', 'N', 'C'}

// Manifest is one version of a table as its file says.
type Manifest struct {
	Proto   *tablepb.Manifest        // as stored, unknown fields included; not to be changed
	Indices []*tablepb.IndexMetadata // every live index segment
	Schema  *schema.Schema
	// Transaction is the inline transaction's bytes, nil if there is none: see ParseTransaction.
	Transaction []byte
	SizeBytes   int64 // of the file
}

// Version is the version number.
func (m *Manifest) Version() uint64 { return m.Proto.GetVersion() }

// Timestamp is when the version was committed; the zero time if it does not say.
func (m *Manifest) Timestamp() time.Time {
	if m.Proto.GetTimestamp() == nil {
		return time.Time{}
	}
	return m.Proto.GetTimestamp().AsTime()
}

// HasStableRowIDs says that stored keys are row ids, not addresses.
func (m *Manifest) HasStableRowIDs() bool {
	return m.Proto.GetReaderFeatureFlags()&FlagStableRowIDs != 0
}

// Footer is the end of a manifest file.
type Footer struct {
	PositionBytes int64 // of the Manifest message's length prefix
	Major, Minor  uint16
}

// ParseFooter reads the last 16 bytes of a file of sizeBytes. Errors: ErrCorrupt, ErrUnsupported for another version.
func ParseFooter(tail []byte, sizeBytes int64) (Footer, error) {
	if len(tail) < footerBytes || sizeBytes < footerBytes {
		return Footer{}, errs.Corrupt("manifest footer", 0, "%d bytes, too short for a footer: the version is half written", sizeBytes)
	}
	b := tail[len(tail)-footerBytes:]
	at := sizeBytes - footerBytes
	if [4]byte(b[12:16]) != footerMagic {
		return Footer{}, errs.Corrupt("manifest footer", at+12, "magic is %q, not %q: no manifest, or half written", b[12:16], footerMagic[:])
	}
	f := Footer{Major: binary.LittleEndian.Uint16(b[8:]), Minor: binary.LittleEndian.Uint16(b[10:])}
	if f.Major != footerMajor || f.Minor > footerMinor {
		return f, errs.New(errs.ErrUnsupported, "manifest format %d.%d is not supported", f.Major, f.Minor)
	}
	position := binary.LittleEndian.Uint64(b)
	if sizeBytes < footerBytes+4 || position > uint64(sizeBytes-footerBytes-4) {
		return f, errs.Corrupt("manifest footer", at, "manifest at %d of a file of %d bytes", position, sizeBytes)
	}
	f.PositionBytes = int64(position)
	return f, nil
}

// Read reads and checks one manifest file. Errors: ErrNotFound, ErrCorrupt, ErrUnsupported, ErrIO.
func Read(ctx context.Context, store object.Store, path string) (*Manifest, error) {
	f, err := store.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	size := f.SizeBytes()
	if size > fileBytesMax {
		return nil, errs.WithPath(errs.Corrupt("manifest", 0, "%d bytes, at most %d are supported", size, fileBytesMax), path)
	}
	tailAt := max(0, size-tailBytes)
	if f.IsMapped() {
		tailAt = 0
	}
	tail, err := f.Read(ctx, object.Range{Offset: tailAt, Size: size - tailAt})
	if err != nil {
		return nil, err
	}
	if tailAt > 0 { // sections lie before the manifest, and one more request costs more than their bytes
		head, err := f.Read(ctx, object.Range{Offset: 0, Size: tailAt})
		if err != nil {
			return nil, err
		}
		tail = append(append(make([]byte, 0, size), head...), tail...)
	}
	m, err := Decode(tail)
	if err != nil {
		return nil, named(err, path)
	}
	return m, nil
}

// named puts the path into an error of any kind.
func named(err error, path string) error {
	if withPath := errs.WithPath(err, path); withPath != err { //nolint:errorlint // identity: was it changed?
		return withPath
	}
	if c, ok := err.(*errs.CorruptError); ok && c.Path == path { //nolint:errorlint // as above
		return err
	}
	return fmt.Errorf("%s: %w", path, err)
}

// Decode reads a whole manifest file. The result keeps no part of b but Transaction. Errors: ErrCorrupt, ErrUnsupported.
func Decode(b []byte) (*Manifest, error) {
	footer, err := ParseFooter(b, int64(len(b)))
	if err != nil {
		return nil, err
	}
	body := b[:len(b)-footerBytes]
	m := &Manifest{Proto: &tablepb.Manifest{}, SizeBytes: int64(len(b))}
	if err := message(body, "manifest", uint64(footer.PositionBytes), m.Proto); err != nil {
		return nil, err
	}
	if err := CheckReadable(m.Proto.GetReaderFeatureFlags()); err != nil {
		return nil, err
	}
	if f := m.Proto.GetDataFormat().GetFileFormat(); f != "" && f != "lance" {
		return nil, errs.New(errs.ErrUnsupported, "data files of format %q are not supported", f)
	}
	if m.Proto.IndexSection != nil { // position 0 is valid and usual: presence counts
		var section tablepb.IndexSection
		if err := message(body, "index section", m.Proto.GetIndexSection(), &section); err != nil {
			return nil, err
		}
		m.Indices = section.GetIndices()
	}
	if m.Proto.TransactionSection != nil {
		if m.Transaction, err = prefixed(body, "transaction section", m.Proto.GetTransactionSection()); err != nil {
			return nil, err
		}
	}
	if m.Schema, err = schema.FromProto(m.Proto.GetFields(), m.Proto.GetSchemaMetadata()); err != nil {
		return nil, err
	}
	if err := m.check(); err != nil {
		return nil, err
	}
	return m, nil
}

// prefixed returns the bytes behind a u32 length at a position.
func prefixed(body []byte, section string, position uint64) ([]byte, error) {
	if position > uint64(len(body)) || uint64(len(body))-position < 4 {
		return nil, errs.Corrupt(section, int64(min(position, math.MaxInt64)), "lies outside the file's %d bytes", len(body))
	}
	size := binary.LittleEndian.Uint32(body[position:])
	rest := body[position+4:]
	if uint64(size) > uint64(len(rest)) {
		return nil, errs.Corrupt(section, int64(position), "%d bytes long, %d are left", size, len(rest))
	}
	return rest[:size:size], nil
}

func message(body []byte, section string, position uint64, into proto.Message) error {
	b, err := prefixed(body, section, position)
	if err != nil {
		return err
	}
	if err := proto.Unmarshal(b, into); err != nil {
		return errs.Corrupt(section, int64(position), "%w", err)
	}
	return nil
}

// check establishes I1.
func (m *Manifest) check() error {
	frags := m.Proto.GetFragments()
	if len(frags) > fragmentsMax {
		return errs.Corrupt("manifest", -1, "%d fragments, at most %d are supported", len(frags), fragmentsMax)
	}
	bases := make(map[uint32]bool, len(m.Proto.GetBasePaths()))
	for _, b := range m.Proto.GetBasePaths() {
		bases[b.GetId()] = true
	}
	base := func(id *uint32) error {
		if id != nil && !bases[*id] {
			return fmt.Errorf("base path %d is not listed", *id)
		}
		return nil
	}
	seen := make(map[uint64]bool, len(frags))
	for _, f := range frags {
		if f.GetId() > math.MaxUint32 || seen[f.GetId()] {
			return errs.Corrupt("manifest", -1, "fragment id %d twice or over 32 bits", f.GetId())
		}
		seen[f.GetId()] = true
		if err := m.checkFragment(f, base); err != nil {
			return errs.Corrupt("manifest", -1, "fragment %d: %w", f.GetId(), err)
		}
	}
	for _, i := range m.Indices {
		if len(i.GetUuid().GetUuid()) != 16 {
			return errs.Corrupt("index section", -1, "index %q has a uuid of %d bytes", i.GetName(), len(i.GetUuid().GetUuid()))
		}
		if err := base(i.BaseId); err != nil {
			return errs.Corrupt("index section", -1, "index %q: %w", i.GetName(), err)
		}
	}
	return nil
}

func (m *Manifest) checkFragment(f *tablepb.DataFragment, base func(*uint32) error) error {
	if f.GetPhysicalRows() > math.MaxUint32 {
		return fmt.Errorf("%d rows do not fit row offsets of 32 bits", f.GetPhysicalRows())
	}
	for _, d := range f.GetFiles() {
		if d.GetPath() == "" || object.CheckPath(d.GetPath()) != nil {
			return fmt.Errorf("data file path %q is no plain relative path", d.GetPath())
		}
		if err := base(d.BaseId); err != nil {
			return fmt.Errorf("data file %s: %w", d.GetPath(), err)
		}
		if isLegacy := d.GetFileMajorVersion() < 2; !isLegacy && len(d.GetFields()) != len(d.GetColumnIndices()) {
			return fmt.Errorf("data file %s: %d fields in %d columns", d.GetPath(), len(d.GetFields()), len(d.GetColumnIndices()))
		}
	}
	if d := f.GetDeletionFile(); d != nil {
		if d.GetNumDeletedRows() > f.GetPhysicalRows() && f.GetPhysicalRows() > 0 {
			return fmt.Errorf("%d rows deleted of %d", d.GetNumDeletedRows(), f.GetPhysicalRows())
		}
		if err := base(d.BaseId); err != nil {
			return fmt.Errorf("deletion file: %w", err)
		}
	}
	hasIDs := f.GetRowIdSequence() != nil
	if m.HasStableRowIDs() && !hasIDs {
		return fmt.Errorf("it has no row ids, but the table says that rows have stable ids")
	}
	return nil
}

// Encode writes a manifest file: the index section and the transaction where given, then the manifest, then the footer. It sets
// the section positions of m. Errors: ErrInternal.
func Encode(m *tablepb.Manifest, indices []*tablepb.IndexMetadata, transaction *tablepb.Transaction) ([]byte, error) {
	var out []byte
	add := func(msg proto.Message) (uint64, error) {
		at := uint64(len(out))
		b, err := proto.MarshalOptions{Deterministic: true}.Marshal(msg)
		if err != nil {
			return 0, errs.New(errs.ErrInternal, "encode manifest: %w", err)
		}
		if len(b) > fileBytesMax {
			return 0, errs.New(errs.ErrUnsupported, "a manifest section of %d bytes is not supported", len(b))
		}
		out = append(binary.LittleEndian.AppendUint32(out, uint32(len(b))), b...)
		return at, nil
	}
	m.IndexSection, m.TransactionSection = nil, nil
	if len(indices) > 0 {
		at, err := add(&tablepb.IndexSection{Indices: indices})
		if err != nil {
			return nil, err
		}
		m.IndexSection = &at
	}
	if transaction != nil {
		at, err := add(transaction)
		if err != nil {
			return nil, err
		}
		m.TransactionSection = &at
	}
	at, err := add(m)
	if err != nil {
		return nil, err
	}
	out = binary.LittleEndian.AppendUint64(out, at)
	out = binary.LittleEndian.AppendUint16(out, footerMajor)
	out = binary.LittleEndian.AppendUint16(out, footerMinor)
	return append(out, footerMagic[:]...), nil
}
