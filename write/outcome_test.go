package write

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/manifest"
	"github.com/lakesql/lakesql/storage/object"
)

// retrying is a store whose client repeats a conditional write by itself after its answer got lost, and is refused by what it has written.
type retrying struct {
	*object.Memory
	late       bool // the first write takes effect only when the folder is listed next
	failReads  int  // so many reads of the version fail
	err        error
	path       string
	content    []byte
	answerLost bool
}

func (s *retrying) Put(ctx context.Context, p string, content []byte, ifAbsent bool) error {
	if !ifAbsent || s.answerLost {
		return s.Memory.Put(ctx, p, content, ifAbsent)
	}
	s.answerLost, s.path, s.content = true, p, content
	if !s.late {
		if err := s.Memory.Put(ctx, p, content, ifAbsent); err != nil {
			return err
		}
	}
	return s.err
}

func (s *retrying) List(ctx context.Context, dir string) ([]object.Entry, error) {
	if s.late && s.answerLost && strings.HasPrefix(s.path, dir+"/") {
		s.late = false
		if err := s.Memory.Put(ctx, s.path, s.content, true); err != nil {
			return nil, err
		}
	}
	return s.Memory.List(ctx, dir)
}

func (s *retrying) Open(ctx context.Context, p string) (object.File, error) {
	if p == s.path && s.failReads > 0 {
		s.failReads--
		return nil, errs.New(errs.ErrIO, "open %q: connection reset", p)
	}
	return s.Memory.Open(ctx, p)
}

// A writer finds out whether its own version was published; it never applies it twice, and never removes files that the version names.
func TestAnAnswerThatGotLost(t *testing.T) {
	ctx := context.Background()
	refused, reset := errs.New(errs.ErrExists, "412"), errs.New(errs.ErrIO, "connection reset")
	for name, c := range map[string]struct {
		late      bool
		failReads int
		err       error
		unknown   bool
	}{
		"refused by itself":                      {err: refused},
		"refused by itself, a read fails":        {err: refused, failReads: 1},
		"refused by itself, reads fail":          {err: refused, failReads: outcomeLooks - 1},
		"refused by itself, reads fail for long": {err: refused, failReads: outcomeLooks},
		"refused by itself, and nothing is read": {err: refused, failReads: outcomeLooks + 1, unknown: true},
		"no answer":                              {err: reset},
		"no answer, reads fail":                  {err: reset, failReads: outcomeLooks - 1},
		"no answer, and nothing is read":         {err: reset, failReads: outcomeLooks, unknown: true},
		"refused, and it takes effect later":     {err: refused, late: true},
	} {
		t.Run(name, func(t *testing.T) {
			target := memoryTable(t)
			mustCreate(t, target, CreateOptions{})
			memory, ok := target.Store.(*object.Memory)
			if !ok {
				t.Fatalf("a store of type %T", target.Store)
			}
			store := &retrying{Memory: memory, late: c.late, failReads: c.failReads, err: c.err}
			done, err := Append(ctx, Target{Store: store, Dir: target.Dir}, &stream{rows: 10, batchRows: 10}, AppendOptions{})
			if c.unknown != errors.Is(err, errOutcome) || !c.unknown && (err != nil || done.Version != 2 || len(done.FragmentIDs) != 1) {
				t.Fatalf("%+v, %v", done, err)
			}
			s, err := openTable(t, target).Latest(ctx)
			if err != nil || s.Version() != 2 || s.Rows() != 10 {
				t.Fatalf("version %d, %d rows, %v", s.Version(), s.Rows(), err)
			}
			noGarbage(t, target)
		})
	}
}

// What cannot take effect any more leaves nothing behind, and does not say that nobody knows.
func TestAVersionThatTheStoreRefuses(t *testing.T) {
	ctx := context.Background()
	for _, kind := range []error{errs.ErrDiskFull, errs.ErrPermission, errs.ErrUnsupported} {
		target := memoryTable(t)
		mustCreate(t, target, CreateOptions{})
		at := target.manifestPath(manifest.NamingV2, 2)
		store := object.NewFaulty(target.Store, object.FaultyOptions{FailAt: 1, OnlyPath: at, OnlyChanges: true, Err: errs.New(kind, "refused")})
		_, err := Append(ctx, Target{Store: store, Dir: target.Dir}, &stream{rows: 10, batchRows: 10}, AppendOptions{})
		if !errors.Is(err, kind) || errors.Is(err, errOutcome) {
			t.Errorf("%v: %v", kind, err)
		}
		noGarbage(t, target)
	}
}

// Tags and branches of a table that was dropped in part do not come back with another table of its name.
func TestATableAfterOneThatWasNotWhollyDropped(t *testing.T) {
	ctx := context.Background()
	memory := object.NewMemory("test")
	h, table := branching(t, memory)
	must(t, CreateTag(ctx, table, "first", storage.Ref{Version: 1}, RefOptions{}))
	must(t, CreateBranch(ctx, table, "dev/x", storage.Ref{}, RefOptions{}))
	all, naming, err := h.target.versions(ctx)
	must(t, err)
	for _, v := range all {
		must(t, memory.Delete(ctx, h.target.manifestPath(naming, v)))
	}
	if _, err := CreateTable(ctx, h.target, stock, CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	table = openTable(t, h.target)
	for _, ref := range []storage.Ref{{Tag: "first"}, {Branch: "dev/x"}} {
		if _, err := table.At(ctx, ref); !errors.Is(err, errs.ErrNotFound) {
			t.Errorf("%+v: %v", ref, err)
		}
	}
	must(t, CreateTag(ctx, table, "first", storage.Ref{Version: 1}, RefOptions{}))
	must(t, CreateBranch(ctx, table, "dev/x", storage.Ref{}, RefOptions{}))
}

// A drop that stops anywhere leaves the rows, or nothing, and no tag that names a version which is gone.
func TestDropsStopAnywhere(t *testing.T) {
	ctx := context.Background()
	memory := object.NewMemory("test")
	h, table := branching(t, memory)
	must(t, CreateTag(ctx, table, "first", storage.Ref{Version: 1}, RefOptions{}))
	atEveryOperation(t, memory, func(store object.Store) error { return DropTable(ctx, Target{Store: store, Dir: h.target.Dir}) },
		func(what string, store *object.Memory, err error, _ bool) {
			left := Target{Store: store, Dir: h.target.Dir}
			s, openErr := left.latest(ctx)
			if errors.Is(openErr, errs.ErrNotFound) {
				return
			}
			if openErr != nil || err == nil {
				t.Fatalf("%s: %v, %v", what, openErr, err)
			}
			opened := openTable(t, left)
			if snap, err := opened.Latest(ctx); err != nil || snap.Version() != s.Version() {
				t.Fatalf("%s: %v", what, err)
			}
			if _, err := opened.At(ctx, storage.Ref{Tag: "first"}); err != nil && !strings.Contains(err.Error(), "no tag") {
				t.Fatalf("%s: %v", what, err)
			}
		})
}
