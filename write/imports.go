package write

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"maps"
	"strconv"

	"github.com/zeebo/xxh3"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/pb/tablepb"
)

// importsKey is the key of a table's configuration under which stands what files its rows came from.
const importsKey = "lakesql:imports"

// ImportedFile names a file whose rows a commit adds.
type ImportedFile struct {
	URL       string // without credentials and parameters
	SizeBytes int64
	Stamp     string // what changes with the content: a time, an entity tag
	Rows      uint64
	Again     bool // it may have been imported before
}

// ImportState says what a table knows of a file.
type ImportState int

// The states of a file.
const (
	NotImported     ImportState = iota
	Imported                    // this file, as it is
	ImportedChanged             // a file of this name that had another size or stamp
)

// ImportLog is what files a version's rows came from. It is kept in the version's own manifest, so that rows and their record are published together or not at
// all, and a restored version has its own. It holds 16 bytes a file: hashes of the URL, and of size and stamp.
type ImportLog struct{ files map[uint64]uint64 }

// ImportLogOf reads the log of a version. ErrCorrupt for one that makes no sense.
func ImportLogOf(s *storage.Snapshot) (*ImportLog, error) {
	return importLog(s.Manifest().Proto)
}

const importEntryBytes = 16

func importLog(m *tablepb.Manifest) (*ImportLog, error) {
	l := &ImportLog{files: make(map[uint64]uint64)}
	b, err := base64.RawStdEncoding.DecodeString(m.GetConfig()[importsKey])
	if err != nil || len(b)%importEntryBytes != 0 {
		return nil, errs.Corrupt("table configuration", -1, "%s is no list of imported files", importsKey)
	}
	for ; len(b) > 0; b = b[importEntryBytes:] {
		l.files[binary.LittleEndian.Uint64(b)] = binary.LittleEndian.Uint64(b[8:])
	}
	return l, nil
}

func (f ImportedFile) hashes() (name, content uint64) {
	return xxh3.HashString(f.URL), xxh3.HashString(strconv.FormatInt(f.SizeBytes, 10) + " " + f.Stamp)
}

// State looks a file up.
func (l *ImportLog) State(f ImportedFile) ImportState {
	name, content := f.hashes()
	switch have, ok := l.files[name]; {
	case !ok:
		return NotImported
	case have == content:
		return Imported
	}
	return ImportedChanged
}

// recordImports adds files to the log of the version in the making. ErrConflict where another writer has imported one of them meanwhile.
func (n *next) recordImports(files []ImportedFile, isReplaced bool) error {
	m := n.manifest
	if isReplaced && m.GetConfig()[importsKey] != "" {
		m.Config = maps.Clone(m.GetConfig())
		delete(m.Config, importsKey)
	}
	if len(files) == 0 {
		return nil
	}
	l, err := importLog(m)
	if err != nil {
		return err
	}
	b, err := base64.RawStdEncoding.DecodeString(m.GetConfig()[importsKey])
	if err != nil {
		return errs.New(errs.ErrInternal, "the log was read before: %w", err)
	}
	for _, f := range files {
		if state := l.State(f); state != NotImported && !f.Again {
			return errs.New(errs.ErrConflict, "file %s was imported by another writer meanwhile", f.URL)
		}
		name, content := f.hashes()
		b = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(b, name), content) // the last entry of a name counts
		l.files[name] = content
	}
	config := maps.Clone(m.GetConfig())
	if config == nil {
		config = make(map[string]string)
	}
	config[importsKey] = base64.RawStdEncoding.EncodeToString(b)
	m.Config = config
	return nil
}

// importPropertiesMax bounds how many files the properties of a transaction name.
const importPropertiesMax = 100

// importProperties tells people, in the history, what was imported; nil = nothing.
func importProperties(files []ImportedFile) map[string]string {
	if len(files) == 0 {
		return nil
	}
	out := map[string]string{"lakesql:imported_files": strconv.Itoa(len(files))}
	for i, f := range files[:min(len(files), importPropertiesMax)] {
		out[fmt.Sprintf("lakesql:imported_file_%d", i)] = fmt.Sprintf("%s (%d bytes, %d rows)", f.URL, f.SizeBytes, f.Rows)
	}
	return out
}

// RecordImport makes the commit say that staged rows are those of a file. Commit fails with ErrConflict where another writer has imported it meanwhile, unless
// it may be imported again. A transaction without rows records nothing.
func (x *Tx) RecordImport(f ImportedFile) { x.imported = append(x.imported, f) }
