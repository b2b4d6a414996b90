package write

import (
	"github.com/google/uuid"

	"github.com/lakesql/lakesql/storage/manifest"
	"github.com/lakesql/lakesql/storage/object"
)

// filesOfVersion returns the paths, relative to the dataset, of the files within it that a version names: data and deletion files, and the folders of index segments.
func filesOfVersion(m *manifest.Manifest) map[string]bool {
	return filesAtBase(m, func(id *uint32) bool { return id == nil })
}

// filesAtBase is filesOfVersion for the files whose base path is wanted.
func filesAtBase(m *manifest.Manifest, wanted func(id *uint32) bool) map[string]bool {
	out := make(map[string]bool)
	for _, f := range m.Proto.GetFragments() {
		for _, d := range f.GetFiles() {
			if wanted(d.BaseId) {
				out[object.Join(manifest.DataDir, d.GetPath())] = true
			}
		}
		if d := f.GetDeletionFile(); d != nil && wanted(d.BaseId) {
			out[manifest.DeletionPath(f.GetId(), d)] = true
		}
	}
	for _, i := range m.Indices {
		if id, err := uuid.FromBytes(i.GetUuid().GetUuid()); err == nil && wanted(i.BaseId) {
			out[object.Join(manifest.IndicesDir, id.String())] = true
		}
	}
	return out
}
