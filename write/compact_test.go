package write

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/google/uuid"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/index/bitmap"
	"github.com/lakesql/lakesql/index/filter"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/file"
	"github.com/lakesql/lakesql/storage/manifest"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/pb/tablepb"
	"github.com/lakesql/lakesql/storage/rowset"
)

// rebuilder remaps bitmap indices on tag by building them again from the old rows under their new addresses; of others it knows nothing.
type rebuilder struct{ target Target }

func (r rebuilder) Remap(ctx context.Context, snap *storage.Snapshot, info storage.IndexInfo, moved *rowset.Remap) (*tablepb.IndexMetadata, error) {
	if kind, _ := filter.KindOf(info.TypeURL); kind != index.KindBitmap {
		return nil, nil //nolint:nilnil // not this kind
	}
	b, err := bitmap.NewBuilder("tag", arrow.BinaryTypes.String, index.BuildOptions{})
	if err != nil {
		return nil, err
	}
	defer b.Free()
	var covered []uint32
	for _, f := range snap.Fragments() {
		if info.Covers.Contains(f.ID()) {
			covered = append(covered, f.ID())
		}
	}
	scan, err := snap.Scan(ctx, storage.ScanOptions{Columns: []string{"tag"}, Fragments: covered, WithRowAddr: true})
	if err != nil {
		return nil, err
	}
	for reader := scan.Reader(); ; {
		batch, err := reader.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		var keys []uint64
		for _, a := range batch.Column(1).(*array.Uint64).Uint64Values() {
			now, ok := moved.Map(rowset.RowAddr(a))
			if !ok {
				return nil, errs.New(errs.ErrInternal, "live row %s is gone", rowset.RowAddr(a))
			}
			keys = append(keys, uint64(now))
		}
		if err := b.Add(ctx, batch.Column(0), keys); err != nil {
			return nil, err
		}
		batch.Release()
	}
	id := uuid.New()
	w, err := r.target.Store.Create(ctx, object.Join(r.target.Dir, manifest.IndicesDir, id.String(), bitmap.FileName))
	if err != nil {
		return nil, err
	}
	if _, err := b.Write(ctx, w, file.V22); err != nil {
		return nil, err
	}
	version := int32(bitmap.WriteVersion)
	return &tablepb.IndexMetadata{
		Uuid: &tablepb.UUID{Uuid: id[:]}, IndexDetails: &anypb.Any{TypeUrl: bitmap.TypeURL}, IndexVersion: &version,
	}, nil
}

func TestCompactionKeepsRowsIDsAndIndices(t *testing.T) {
	for _, stable := range []bool{false, true} {
		t.Run(fmt.Sprintf("stable %t", stable), func(t *testing.T) {
			ctx := context.Background()
			h, table := evolving(t, CreateOptions{StableRowIDs: stable})
			for _, spec := range []FilterIndexSpec{{Column: "tag", Kind: index.KindBitmap}, {Column: "tag", Name: "tree", Kind: index.KindBTree}} {
				if _, err := BuildFilterIndex(ctx, table, spec, FilterIndexOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			for range 3 { // small fragments that no index covers
				if _, err := Append(ctx, h.target, h.fresh(h.rows, 20), AppendOptions{}); err != nil {
					t.Fatal(err)
				}
				h.reopen()
			}
			before, err := openTable(t, h.target).Latest(ctx)
			if err != nil {
				t.Fatal(err)
			}
			done, err := Compact(ctx, openTable(t, h.target), CompactOptions{TargetRows: 150, Remapper: rebuilder{h.target}})
			if err != nil {
				t.Fatal(err)
			}
			if done.FragmentsRemoved != 6 || done.FragmentsAdded != 3 || done.Rows != before.Rows() {
				t.Fatalf("%+v", done)
			}
			if want := 1; stable && len(done.Uncovered) != 0 || !stable && len(done.Uncovered) != want {
				t.Fatalf("uncovered: %v", done.Uncovered)
			}
			h.what = "compacted"
			h.reopen()
			s, err := openTable(t, h.target).Latest(ctx)
			if err != nil {
				t.Fatal(err)
			}
			covered := make(map[string]uint64)
			for _, f := range s.Fragments() {
				for _, info := range s.Indices() {
					if info.Covers.Contains(f.ID()) {
						covered[info.Name] += f.Rows()
					}
				}
				if f.Proto().GetDeletionFile() != nil {
					t.Errorf("fragment %d has deleted rows", f.ID())
				}
			}
			indexed := uint64(len(h.rows)) - 60
			if covered["tag_idx"] != indexed || (covered["tree"] == indexed) != stable {
				t.Errorf("%d rows were covered, now %v", indexed, covered)
			}
			if s.Manifest().Proto.GetReaderFeatureFlags()&manifest.FlagDeletionFiles != 0 {
				t.Error("the flag of deletion files stayed")
			}
			again, err := Compact(ctx, openTable(t, h.target), CompactOptions{TargetRows: 50})
			if err != nil || again.FragmentsRemoved != 0 || again.Version != s.Version() {
				t.Errorf("again: %+v, %v", again, err)
			}
			noGarbage(t, h.target)
		})
	}
}

// Rows that change while their fragment is rewritten win; rows of other fragments do not matter.
func TestCompactionAgainstOtherWriters(t *testing.T) {
	ctx := context.Background()
	for name, c := range map[string]struct {
		gone []rowset.RowAddr
		want error
	}{
		"rows of its fragments":     {[]rowset.RowAddr{rowset.Addr(0, 20)}, errs.ErrConflict}, // and no second attempt
		"rows of another fragment":  {[]rowset.RowAddr{rowset.Addr(3, 0)}, nil},
		"new rows, none that stood": {nil, nil},
	} {
		h, table := evolving(t, CreateOptions{})
		// A fragment that is too large and full to be compacted.
		if _, err := Append(ctx, h.target, h.fresh(h.rows, 300), AppendOptions{}); err != nil {
			t.Fatal(err)
		}
		once := true
		opts := CompactOptions{TargetRows: 300, Rows: RowOptions{Parallel: 1}, Commit: CommitOptions{Retries: -1}, Progress: func(int) {
			if !once {
				return
			}
			once = false
			x := mustBegin(t, openTable(t, h.target), TxOptions{})
			rows := &rowset.Set{}
			for _, a := range c.gone {
				rows.Add(uint64(a))
			}
			if _, err := x.Delete(ctx, rows); err != nil {
				t.Error(err)
			}
			if _, err := x.Append(ctx, []Batches{h.fresh(h.rows, 2)}); err != nil {
				t.Error(err)
			}
			if _, err := x.Commit(ctx); err != nil {
				t.Error(err)
			}
		}}
		_, err := Compact(ctx, table, opts)
		if !errors.Is(err, c.want) || (c.want == nil) != (err == nil) {
			t.Fatalf("%s: %v", name, err)
		}
		s, err := openTable(t, h.target).Latest(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if want := uint64(len(h.rows) - len(c.gone)); s.Rows() != want {
			t.Errorf("%s: %d rows, want %d", name, s.Rows(), want)
		}
		idsOf(t, s)
		noGarbage(t, h.target)
	}
}

func TestCompactionIsAllOrNothingAtEveryOperation(t *testing.T) {
	for _, stable := range []bool{false, true} {
		ctx := context.Background()
		h, table := evolving(t, CreateOptions{StableRowIDs: stable})
		if _, err := BuildFilterIndex(ctx, table, FilterIndexSpec{Column: "tag", Kind: index.KindBitmap}, FilterIndexOptions{}); err != nil {
			t.Fatal(err)
		}
		change := func(store object.Store) error {
			table, err := storage.OpenTable(ctx, store, "t.lance", storage.TableOptions{ReadParallelism: 1})
			if err != nil {
				return err
			}
			_, err = Compact(ctx, table, CompactOptions{TargetRows: 150, Rows: RowOptions{Parallel: 1}, Remapper: rebuilder{Target{Store: store, Dir: "t.lance"}}})
			return err
		}
		atEveryOperation(t, h.target.Store.(*object.Memory), change, func(what string, store *object.Memory, err error, lost bool) {
			target := Target{Store: store, Dir: "t.lance"}
			s, openErr := openTable(t, target).Latest(ctx)
			if openErr != nil {
				t.Fatalf("%s: %v", what, openErr)
			}
			(&history{t: t, what: what}).check("after", s, h.rows)
			if compacted := len(s.Fragments()) < 3; compacted != (err == nil) && !lost {
				t.Fatalf("%s: %d fragments, %v", what, len(s.Fragments()), err)
			}
			if _, err := Append(ctx, target, h.fresh(make(map[int64]item), 1), AppendOptions{}); err != nil {
				t.Fatalf("%s: the next writer: %v", what, err)
			}
		})
	}
}
