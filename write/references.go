package write

import (
	"github.com/google/uuid"

	"github.com/lakesql/lakesql/storage/manifest"
	"github.com/lakesql/lakesql/storage/object"
)

// filesOfVersion returns the paths, relative to the dataset, of the files within it that a version names: data and deletion files, and the folders of index segments.
func filesOfVersion(m *manifest.Manifest) map[string]bool {
	out := make(map[string]bool)
	for _, f := range m.Proto.GetFragments() {
		for _, d := range f.GetFiles() {
			if d.BaseId == nil {
				out[object.Join(manifest.DataDir, d.GetPath())] = true
			}
		}
		if d := f.GetDeletionFile(); d != nil && d.BaseId == nil {
			out[manifest.DeletionPath(f.GetId(), d)] = true
		}
	}
	for _, i := range m.Indices {
		if id, err := uuid.FromBytes(i.GetUuid().GetUuid()); err == nil && i.BaseId == nil {
			out[object.Join(manifest.IndicesDir, id.String())] = true
		}
	}
	return out
}
