package planner_test

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	arrowmem "github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/cockroachdb/datadriven"

	"github.com/lakesql/lakesql/engine"
	"github.com/lakesql/lakesql/exec"
	"github.com/lakesql/lakesql/internal/testutil"
	"github.com/lakesql/lakesql/planner"
	"github.com/lakesql/lakesql/planner/gms/translate"
	"github.com/lakesql/lakesql/planner/logical"
	"github.com/lakesql/lakesql/source"
	"github.com/lakesql/lakesql/source/lance"
	"github.com/lakesql/lakesql/source/memory"
	"github.com/lakesql/lakesql/storage/object"
)

// openSession opens an engine over small tables in memory (mem) and the test datasets (lake).
func openSession(t *testing.T) *engine.Session {
	t.Helper()
	store, err := object.OpenLocal(filepath.Join(testutil.Root(t), "testdata", "lance"), object.LocalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	i64, text := arrow.PrimitiveTypes.Int64, arrow.BinaryTypes.String
	e, err := engine.Open(context.Background(), engine.Config{Workers: 2, Catalogs: []source.Catalog{
		memory.NewCatalog("mem",
			table(t, "a", `[{"id":1,"x":10,"s":"p"},{"id":2,"x":20,"s":"q"},{"id":3,"x":null,"s":null},{"id":4,"x":20,"s":"p"}]`, column("id", i64), column("x", i64), column("s", text)),
			table(t, "b", `[{"id":1,"y":7},{"id":1,"y":8},{"id":2,"y":null},{"id":null,"y":9}]`, column("id", i64), column("y", i64)),
			table(t, "c", `[{"id":2,"z":5},{"id":4,"z":6},{"id":5,"z":null}]`, column("id", i64), column("z", i64)),
		),
		lance.Open("lake", store, lance.Options{}),
	}})
	if err != nil {
		t.Fatal(err)
	}
	s := e.NewSession(engine.SessionOptions{Database: "mem"})
	t.Cleanup(func() {
		s.Close()
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func column(name string, t arrow.DataType) arrow.Field {
	return arrow.Field{Name: name, Type: t, Nullable: true}
}

func table(t *testing.T, name, rows string, fields ...arrow.Field) *memory.Table {
	t.Helper()
	s := arrow.NewSchema(fields, nil)
	batch, _, err := array.RecordFromJSON(arrowmem.DefaultAllocator, s, strings.NewReader(rows))
	if err != nil {
		t.Fatal(err)
	}
	return memory.New(exec.TableRef{Source: "mem", Table: name}, s, []arrow.RecordBatch{batch})
}

// answer runs a statement and returns what it was planned from and its rows.
func answer(t *testing.T, s *engine.Session, text string) (*translate.Request, []string) {
	t.Helper()
	res, err := s.Query(context.Background(), text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	defer func() {
		if err := res.Close(); err != nil {
			t.Error(err)
		}
	}()
	req := translate.RequestOf(res.Context())
	var rows []string
	for res.HasRows() {
		b, err := res.Operator.Next(res.Context())
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		for i := range int(b.NumRows()) {
			cells := make([]string, b.NumCols())
			for c := range cells {
				if cells[c] = b.Column(c).ValueStr(i); b.Column(c).IsNull(i) {
					cells[c] = "NULL"
				}
			}
			rows = append(rows, strings.Join(cells, " "))
		}
		b.Release()
	}
	return req, rows
}

// planned runs a statement and returns its plan.
func planned(t *testing.T, s *engine.Session, text string) (*translate.Request, *planner.Result) {
	t.Helper()
	req, _ := answer(t, s, text)
	if req == nil || req.Node == nil {
		t.Fatalf("%s is not planned as a whole: %v", text, req.Reason)
	}
	return req, req.Node.Result
}

// query stands for {q} in the files.
const query = "[1,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]"

// brief cuts versions, which say nothing here.
var brief = regexp.MustCompile(`@v\d+`)

func shown(n logical.Node) string { return brief.ReplaceAllString(logical.Format(n), "") }

// TestRules shows the plan before and after each rule: testdata/rules/NAME.sql. Statements that begin with SET change the session.
func TestRules(t *testing.T) {
	files, err := filepath.Glob("testdata/rules/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	var have []string
	for _, path := range files {
		name := strings.TrimSuffix(filepath.Base(path), ".sql")
		have = append(have, name)
		t.Run(name, func(t *testing.T) {
			s := openSession(t)
			datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
				d.Input = strings.ReplaceAll(d.Input, "{q}", query)
				switch d.Cmd {
				case "set":
					answer(t, s, "SET "+d.Input)
					return "ok\n"
				case "explain":
					_, res := planned(t, s, d.Input)
					return brief.ReplaceAllString(res.Explain(nil), "")
				case "rows":
					_, rows := answer(t, s, d.Input)
					if !d.HasArg("ordered") {
						slices.Sort(rows)
					}
					return strings.Join(append(rows, ""), "\n")
				case "rule":
					req, res := planned(t, s, d.Input)
					before, after, err := planner.AroundRule(context.Background(), name, res.Input, req.Settings)
					if err != nil {
						t.Fatal(err)
					}
					if b, a := shown(before), shown(after); a != b {
						return b + "=>\n" + a
					}
					return shown(before) + "=> the same\n"
				}
				t.Fatalf("no command %s", d.Cmd)
				return ""
			})
		})
	}
	for _, rule := range append(planner.RuleNames(), "use_label_index") {
		if !slices.Contains(have, rule) {
			t.Errorf("rule %s has no golden file", rule)
		}
	}
}
