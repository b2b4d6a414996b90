package inspect

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"google.golang.org/protobuf/proto"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage/manifest"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/pb/filepb"
	"github.com/lakesql/lakesql/storage/pb/tablepb"
	"github.com/lakesql/lakesql/storage/rowset"
)

// manifestBytesMax bounds what is read into memory.
const manifestBytesMax = 1 << 30

// Manifest prints a manifest file, or the latest one where where is a dataset folder. Errors: ErrNotFound, ErrIO, and what writing returns.
func Manifest(ctx context.Context, w io.Writer, store object.Store, where string) (faults int, err error) {
	p := newPrinter(w)
	if !strings.HasSuffix(where, ".manifest") {
		f, err := manifest.Latest(ctx, store, where)
		if err != nil {
			return 0, err
		}
		where = f.Path
	}
	o, err := store.Open(ctx, where)
	if err != nil {
		return 0, err
	}
	if o.SizeBytes() > manifestBytesMax {
		return 0, errs.New(errs.ErrUnsupported, "%s has %d bytes", where, o.SizeBytes())
	}
	b, err := o.Read(ctx, object.Range{Size: o.SizeBytes()})
	if err != nil {
		return 0, err
	}
	m := &manifestText{printer: p, ctx: ctx, store: store, path: where, bytes: b}
	m.print()
	return p.end()
}

// manifestText prints one manifest from its bytes, as far as they can be understood.
type manifestText struct {
	*printer
	ctx   context.Context //nolint:containedctx // lives for one call only
	store object.Store
	path  string
	bytes []byte
	pb    *tablepb.Manifest
}

// dir is the dataset's folder.
func (m *manifestText) dir() string {
	dir := path.Dir(path.Dir(m.path))
	if dir == "." {
		return ""
	}
	return dir
}

func (m *manifestText) print() {
	m.line("manifest %s, %d bytes", m.path, len(m.bytes))
	m.depth++
	version, naming, isNamed := manifest.ParseName(path.Base(m.path))
	if isNamed {
		m.line("name: %s for version %d", naming, version)
	} else {
		m.fault("the name is not that of a version")
	}
	if _, err := manifest.Decode(m.bytes); err != nil {
		m.fault("%v", errs.WithPath(err, m.path))
	}
	footer, err := manifest.ParseFooter(m.bytes, int64(len(m.bytes)))
	if err != nil {
		return // Decode has said it
	}
	m.line("footer: format %d.%d, manifest at %d", footer.Major, footer.Minor, footer.PositionBytes)
	m.pb = &tablepb.Manifest{}
	if !m.message(uint64(footer.PositionBytes), m.pb) {
		return
	}
	if isNamed && m.pb.GetVersion() != version {
		m.fault("it holds version %d, its name says %d", m.pb.GetVersion(), version)
	}
	m.head()
	m.transaction()
	m.section("schema", func() { m.schema() })
	m.section(fmt.Sprintf("fragments: %d", len(m.pb.GetFragments())), m.fragments)
	m.indices()
}

// message decodes what lies behind a length prefix; Decode has reported what fails here.
func (m *manifestText) message(at uint64, into proto.Message) bool {
	if at > uint64(len(m.bytes)) || uint64(len(m.bytes))-at < 4 {
		return false
	}
	size := uint64(binary.LittleEndian.Uint32(m.bytes[at:]))
	rest := m.bytes[at+4:]
	return size <= uint64(len(rest)) && proto.Unmarshal(rest[:size], into) == nil
}

func (m *manifestText) head() {
	pb := m.pb
	m.line("version: %d", pb.GetVersion())
	if ts := pb.GetTimestamp(); ts != nil {
		m.line("committed: %s", ts.AsTime().Format(time.RFC3339Nano))
	}
	if wv := pb.GetWriterVersion(); wv != nil {
		m.line("writer: %s %s", wv.GetLibrary(), wv.GetVersion())
	}
	m.line("data files: %s %s", pb.GetDataFormat().GetFileFormat(), pb.GetDataFormat().GetVersion())
	if f := pb.GetReaderFeatureFlags(); f != 0 {
		m.line("readers must know: %s", manifest.FlagNames(f))
	}
	if f := pb.GetWriterFeatureFlags(); f != 0 {
		m.line("writers must know: %s", manifest.FlagNames(f))
	}
	if pb.MaxFragmentId != nil {
		m.line("largest fragment id ever: %d", pb.GetMaxFragmentId())
	}
	if pb.GetNextRowId() != 0 {
		m.line("next row id: %d", pb.GetNextRowId())
	}
	if pb.Branch != nil {
		m.line("branch: %s", pb.GetBranch())
	}
	for _, b := range pb.GetBasePaths() {
		kind := "files"
		if b.GetIsDatasetRoot() {
			kind = "dataset"
		}
		m.line("base path %d: %s (%s)", b.GetId(), b.GetPath(), kind)
	}
	for _, kv := range sorted(pb.GetConfig()) {
		m.line("config: %s", kv)
	}
	if n := len(pb.ProtoReflect().GetUnknown()); n > 0 {
		m.line("unknown fields: %d bytes", n)
	}
}

func sorted(kv map[string]string) []string {
	var out []string
	for k, v := range kv {
		out = append(out, fmt.Sprintf("%s = %s", k, v))
	}
	slices.Sort(out)
	return out
}

func (m *manifestText) transaction() {
	var inline, filed *tablepb.Transaction
	if m.pb.TransactionSection != nil {
		inline = &tablepb.Transaction{}
		if !m.message(m.pb.GetTransactionSection(), inline) {
			m.fault("the inline transaction cannot be read")
			inline = nil
		}
	}
	if name := m.pb.GetTransactionFile(); name != "" {
		var err error
		filed, err = manifest.ReadTransaction(m.ctx, m.store, m.dir(), &manifest.Manifest{Proto: m.pb})
		switch {
		case errors.Is(err, errs.ErrNotFound):
			m.line("transaction file: %s, which is gone (cleaned up)", name)
		case err != nil:
			m.fault("transaction file: %v", err)
		}
	}
	if inline != nil {
		m.line("inline transaction: %s, read version %d, uuid %s", manifest.OperationName(inline), inline.GetReadVersion(), inline.GetUuid())
	}
	if filed != nil {
		m.line("transaction file: %s, read version %d, uuid %s", manifest.OperationName(filed), filed.GetReadVersion(), filed.GetUuid())
		if inline != nil && inline.GetUuid() != filed.GetUuid() {
			m.fault("the inline transaction and the file are not the same")
		}
	}
	if inline == nil && filed == nil {
		m.line("transaction: none")
	}
}

func (m *manifestText) schema() { printFields(m.printer, m.pb.GetFields()) }

func printFields(p *printer, fields []*filepb.Field) {
	depth := make(map[int32]int)
	for _, f := range fields {
		d := 0
		if f.GetParentId() >= 0 {
			d = depth[f.GetParentId()] + 1
		}
		depth[f.GetId()] = d
		null := " not null"
		if f.GetNullable() {
			null = ""
		}
		var extra []string
		for k, v := range f.GetMetadata() {
			extra = append(extra, fmt.Sprintf(" [%s=%s]", k, v))
		}
		slices.Sort(extra)
		p.line("%s%d %s: %s%s%s", strings.Repeat("  ", d), f.GetId(), f.GetName(), f.GetLogicalType(), null, strings.Join(extra, ""))
	}
}

func (m *manifestText) fragments() {
	for _, f := range m.pb.GetFragments() {
		text := fmt.Sprintf("%d: %d rows", f.GetId(), f.GetPhysicalRows())
		if d := f.GetDeletionFile(); d != nil {
			text += fmt.Sprintf(", %d deleted (%s)", d.GetNumDeletedRows(), manifest.DeletionPath(f.GetId(), d))
		}
		m.section(text, func() {
			for _, d := range f.GetFiles() {
				base := ""
				if d.BaseId != nil {
					base = fmt.Sprintf(", base %d", d.GetBaseId())
				}
				m.line("%s, format %d.%d, %d bytes%s: fields %v in columns %v", d.GetPath(), d.GetFileMajorVersion(), d.GetFileMinorVersion(),
					d.GetFileSizeBytes(), base, d.GetFields(), d.GetColumnIndices())
			}
		})
	}
}

func (m *manifestText) indices() {
	if m.pb.IndexSection == nil {
		m.line("indices: none")
		return
	}
	var section tablepb.IndexSection
	if !m.message(m.pb.GetIndexSection(), &section) {
		return
	}
	live := make(map[uint64]bool)
	for _, f := range m.pb.GetFragments() {
		live[f.GetId()] = true
	}
	m.section(fmt.Sprintf("index segments: %d", len(section.GetIndices())), func() {
		for _, i := range section.GetIndices() {
			id, err := uuid.FromBytes(i.GetUuid().GetUuid())
			if err != nil {
				m.fault("%s: uuid of %d bytes", i.GetName(), len(i.GetUuid().GetUuid()))
				continue
			}
			m.section(fmt.Sprintf("%s %s", i.GetName(), id), func() { m.index(i, live) })
		}
	})
}

func (m *manifestText) index(i *tablepb.IndexMetadata, live map[uint64]bool) {
	m.line("fields %v, %s, index version %d, built from version %d", i.GetFields(), i.GetIndexDetails().GetTypeUrl(), i.GetIndexVersion(), i.GetDatasetVersion())
	bm, _, err := rowset.ParseBitmap(i.GetFragmentBitmap())
	if err != nil {
		m.fault("fragment bitmap: %v", err)
	} else {
		gone := 0
		for it := bm.Iterator(); it.HasNext(); {
			if !live[uint64(it.Next())] {
				gone++
			}
		}
		m.line("covers fragments %s (%d of them gone)", numbers(bm), gone)
	}
	for _, f := range i.GetFiles() {
		m.line("%s, %d bytes", f.GetPath(), f.GetSizeBytes())
	}
}
