package interop

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/engine"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/testutil"
	"github.com/lakesql/lakesql/storage/file"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/test/lakes"
	"github.com/lakesql/lakesql/write"
)

// TestThePairwiseSelection: each pair of levels of two factors occurs in a case, and each type of an indexed column.
func TestThePairwiseSelection(t *testing.T) {
	pairs, types := make(map[pair]bool), make(map[string]bool)
	cases := Pairwise()
	for _, c := range cases {
		for _, p := range pairsOf(c.levels) {
			pairs[p] = true
		}
		types[c.kind()+c.key().name] = true
	}
	for _, p := range allPairs(factors()) {
		if !pairs[p] {
			t.Errorf("%s and %s never meet", factors()[p.f].levels[p.a], factors()[p.g].levels[p.b])
		}
	}
	for _, kind := range indexKinds {
		for _, k := range keyTypes(kind) {
			if !types[kind+k.name] {
				t.Errorf("no %s of %s", kind, k.name)
			}
		}
	}
	if len(cases) > 90 {
		t.Errorf("%d cases", len(cases))
	}
}

// TestTheFullMatrix: every cell of the product occurs once.
func TestTheFullMatrix(t *testing.T) {
	cases := Full()
	want := len(ourOperations) * len(indexKinds) * len(shapes) * len(fileVersions) * 2
	if len(cases) != want || len(cellsOf(cases)) != want {
		t.Errorf("%d cases of %d cells, want %d", len(cases), len(cellsOf(cases)), want)
	}
	theirs, engines := make(map[string]bool), make(map[string]bool)
	for _, c := range cases {
		theirs[c.ours()+c.theirs()], engines[c.kind()+c.engine()] = true, true
	}
	if len(theirs) != len(ourOperations)*len(theirOperations) || len(engines) != 2*len(indexKinds) {
		t.Errorf("%d pairs of operations, %d of indices and engines", len(theirs), len(engines))
	}
}

func TestTheTableOfTheMatrix(t *testing.T) { sameDocument(t, Render(Pairwise())) }

// sameDocument compares docs/interop.md with what it has to be, or with LAKESQL_REWRITE writes it.
func sameDocument(t *testing.T, want string) {
	t.Helper()
	path := filepath.Join(testutil.Root(t), "docs", "interop.md")
	if os.Getenv("LAKESQL_REWRITE") != "" {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path) //nolint:gosec // the repository's own file
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("docs/interop.md differs from what the matrix declares and what was run; LAKESQL_REWRITE=1 go test ./test/interop writes it")
	}
}

// TestRefusals: what docs/interop.md calls refused is refused, by a text that names the thing.
func TestRefusals(t *testing.T) {
	l := lakes.Open(t, t.TempDir(), engine.Config{})
	for _, text := range refusalSetup {
		l.Set(t, text)
	}
	for _, r := range refusals() {
		_, err := l.Doors()[0].Ask(context.Background(), r.statement)
		if err == nil || !strings.Contains(err.Error(), r.says) {
			t.Errorf("%s: %v", r.statement, err)
		}
	}
}

// TestListsOfStructsNeedNewFiles: fixed-size lists of structs, which SQL cannot spell, are refused by name in 2.1 too.
func TestListsOfStructsNeedNewFiles(t *testing.T) {
	c := arrow.Field{Name: "c", Type: arrow.FixedSizeListOf(3, arrow.StructOf(arrow.Field{Name: "n", Type: arrow.PrimitiveTypes.Int32}))}
	_, err := write.CreateTable(context.Background(), write.Target{Store: object.NewMemory("test"), Dir: "t.lance"}, arrow.NewSchema([]arrow.Field{c}, nil), write.CreateOptions{Version: file.V21})
	if !errors.Is(err, errs.ErrUnsupported) || !strings.Contains(err.Error(), `column "c"`) {
		t.Error(err)
	}
}
