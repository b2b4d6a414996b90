package storage

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
	"gocloud.dev/blob/fileblob"
	"gocloud.dev/blob/memblob"

	"github.com/lakesql/lakesql/internal/testutil"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/object/cloud"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// copyTo puts the files of a local folder into a store.
func copyTo(t *testing.T, store object.Store, root, name string) {
	t.Helper()
	must(t, filepath.WalkDir(filepath.Join(root, name), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		return store.Put(context.Background(), filepath.ToSlash(rel), b, true)
	}))
}

func TestReferenceDatasetsReadEqualFromRemoteStores(t *testing.T) {
	root := filepath.Join(testutil.Root(t), "testdata", "lance")
	onFiles, err := fileblob.OpenBucket(root, &fileblob.Options{Metadata: fileblob.MetadataDontWrite})
	must(t, err)
	for kind, store := range map[string]object.Store{
		"memory": cloud.OpenBlob(memblob.OpenBucket(nil), "mem://lake", cloud.Options{RequestBytes: 32 << 10}),
		"files":  cloud.OpenBlob(onFiles, "file://lake", cloud.Options{CacheBytes: -1}),
	} {
		for _, name := range []string{"labels_stable_churn", "scalars_v20_7", "scalars_v22_5000", "wide_v21", "wide_v22", "history"} {
			if kind == "files" && name != "labels_stable_churn" && name != "wide_v22" {
				continue // the slow one: a few stand for all
			}
			t.Run(kind+" "+name, func(t *testing.T) {
				if kind == "memory" {
					copyTo(t, store, root, name+".lance")
				}
				table, err := OpenTable(context.Background(), store, name+".lance", TableOptions{})
				must(t, err)
				s, err := table.Latest(context.Background())
				must(t, err)
				checkDataset(t, s, testutil.LoadExpected(t, filepath.Join(root, name+".lance")).Rows)
			})
		}
		must(t, store.Close())
	}
}
