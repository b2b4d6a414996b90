package sql

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/go-sql-driver/mysql"

	"github.com/lakesql/lakesql/engine"
	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/server"
	"github.com/lakesql/lakesql/test/lakes"
)

// number is the MySQL error number, 0 for another error and for none.
func number(err error) int {
	var e *mysql.MySQLError
	if errors.As(err, &e) {
		return int(e.Number)
	}
	return 0
}

// wire lists the doors that are connections.
func wire(lake *lakes.Lake) []lakes.Door { return lake.Doors()[1:] }

// smallLake is a lake with the tables of the cases, and folders that are no datasets.
func smallLake(t *testing.T, config engine.Config) *lakes.Lake {
	t.Helper()
	dir := t.TempDir()
	lakes.Build(t, dir, lakes.Half, append(vectorTables(), labelTable, integers)...)
	for _, folder := range []string{"empty.lance", "stranger.lance/data", "broken.lance/_versions"} {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o750); err != nil {
			t.Fatal(err)
		}
	}
	for path, text := range map[string]string{
		"stranger.lance/data/readme.txt": "hello", "broken.lance/_versions/1.manifest": "this is no manifest, but it has a name like one", "note.txt": "no table",
	} {
		if err := os.WriteFile(filepath.Join(dir, path), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return lakes.Open(t, dir, config).Serve(t, server.Options{})
}

// checkAlive asks something simple at every door and on a new connection.
func checkAlive(t *testing.T, lake *lakes.Lake) {
	t.Helper()
	for _, door := range append(lake.Doors(), lakes.Door{Name: "new connection", Ask: func(ctx context.Context, text string, args ...any) ([]string, error) {
		return lakes.AskConn(ctx, lake.Connect(t, true), text, args...)
	}}) {
		if got, err := door.Ask(context.Background(), "SELECT COUNT(*) FROM l"); err != nil || len(got) != 1 || got[0] != "7" {
			t.Errorf("%s afterwards: %v, %v", door.Name, got, err)
		}
	}
}

func TestErrorsOverTheWire(t *testing.T) {
	lake := smallLake(t, engine.Config{})
	for _, c := range []struct {
		name, text string
		code       int
		has        string
	}{
		{"an unknown table", "SELECT * FROM nosuch", 1146, "nosuch"},
		{"an empty folder", "SELECT * FROM `empty`", 1146, "empty"},
		{"a folder of something else", "SELECT * FROM stranger", 1146, "stranger"},
		{"a manifest that is none", "SELECT * FROM broken", 1815, "broken"},
		{"a file beside the tables", "SELECT * FROM note", 1146, "note"},
		{"a path for a table", "SELECT * FROM `../lake/l`", 1146, ""},
		{"an unknown database", "SELECT * FROM nodb.t", 1049, "nodb"},
		{"an unknown column", "SELECT nosuch FROM l", 1054, "nosuch"},
		{"a syntax error", "SELEC 1", 1064, ""},
		{"an open string", "SELECT 'abc", 1064, ""},
		{"an open list", "SELECT id FROM l WHERE array_has_any(labels, ['a'", 1064, ""},
		{"a needle of another type", "SELECT id FROM ints WHERE array_has(l, 'x')", 1210, "x"},
		{"a vector of another length", "SELECT id FROM v ORDER BY l2_distance(vec, '[1]') LIMIT 1", 1210, "2"},
		{"NaN in a vector", "SELECT id FROM v ORDER BY l2_distance(vec, '[NaN,1]') LIMIT 1", 1210, "NaN"},
		{"a negative LIMIT", "SELECT id FROM v LIMIT -1", 1064, ""},
		{"a write of two tables", "DELETE l, v FROM l JOIN v ON l.id = v.id", 1235, ""},
		{"an unknown version", "SELECT * FROM l AS OF 99", 1146, ""},
		{"an unknown tag", "SELECT * FROM l AS OF 'nosuch'", 1146, "nosuch"},
		{"LOAD DATA", "LOAD DATA INFILE '/etc/passwd' INTO TABLE l", 1235, ""},
		{"OUTFILE", "SELECT 1 INTO OUTFILE 'lakesql-outfile'", 0, ""},
	} {
		for _, door := range wire(lake) {
			got, err := door.Ask(context.Background(), c.text)
			switch {
			case err == nil:
				t.Errorf("%s (%s): %s gives %q", c.name, door.Name, c.text, got)
			case number(err) == 0, c.code != 0 && number(err) != c.code, !strings.Contains(err.Error(), c.has):
				t.Errorf("%s (%s): %s: %v, want %d", c.name, door.Name, c.text, err, c.code)
			}
		}
	}
	checkAlive(t, lake)
}

// TestStackKillers sends the statements that overflow the stack of a parser that recurses.
func TestStackKillers(t *testing.T) {
	lake := smallLake(t, engine.Config{})
	for name, text := range map[string]string{
		"NOT":          "SELECT " + strings.Repeat("NOT ", 1_000_000) + "1",
		"plus":         "SELECT 1" + strings.Repeat("+1", 3_000_000),
		"OR":           "SELECT id FROM l WHERE id=1" + strings.Repeat(" OR id=2", 1_500_000),
		"minus":        "SELECT " + strings.Repeat("- ", 1_000_000) + "1",
		"parentheses":  "SELECT " + strings.Repeat("(", 500_000) + "1" + strings.Repeat(")", 500_000),
		"list in list": "SELECT " + strings.Repeat("[", 500_000) + strings.Repeat("]", 500_000),
		"UNION":        "SELECT 1" + strings.Repeat(" UNION ALL SELECT 1", 200_000),
		"subqueries":   strings.Repeat("SELECT * FROM (", 50_000) + "SELECT 1" + strings.Repeat(") x", 50_000),
		"CASE":         "SELECT " + strings.Repeat("CASE WHEN 1 THEN ", 100_000) + "1" + strings.Repeat(" END", 100_000),
	} {
		for _, door := range wire(lake) {
			if _, err := door.Ask(context.Background(), text); number(err) == 0 {
				t.Errorf("%s (%s): %.300v", name, door.Name, err)
			}
		}
	}
	checkAlive(t, lake)
}

func TestLongStatements(t *testing.T) {
	lake := smallLake(t, engine.Config{})
	comment := "SELECT id FROM l WHERE id = 1 /* " + strings.Repeat("x", 20<<20) + " */"
	text := "SELECT LENGTH('" + strings.Repeat("y", 20<<20) + "')"
	for _, door := range lake.Doors() {
		if got, err := door.Ask(context.Background(), comment); err != nil || strings.Join(got, ",") != "1" {
			t.Errorf("a comment of 20 MB (%s): %v, %.300v", door.Name, got, err)
		}
		if got, err := door.Ask(context.Background(), text); err != nil || strings.Join(got, ",") != fmt.Sprint(20<<20) {
			t.Errorf("a text of 20 MB (%s): %.100v, %.300v", door.Name, got, err)
		}
	}
	checkAlive(t, lake)
}

func TestPacketsBeyondTheLimit(t *testing.T) {
	dir := t.TempDir()
	lakes.Build(t, dir, lakes.Bare, labelTable)
	lake := lakes.Open(t, dir, engine.Config{}).Serve(t, server.Options{MaxAllowedPacket: 1 << 20})
	for _, text := range []bool{true, false} {
		conn := lake.Connect(t, text)
		ask := lakes.AskConn
		if !text {
			ask = lakes.AskPrepared
		}
		if _, err := ask(context.Background(), conn, "SELECT '"+strings.Repeat("x", 2<<20)+"'"); err == nil {
			t.Errorf("text %v: a packet beyond the limit is taken", text)
		}
	}
	checkAlive(t, lake)
	if got, err := wire(lake)[0].Ask(context.Background(), "SELECT @@max_allowed_packet"); err != nil || got[0] != fmt.Sprint(1<<20) {
		t.Errorf("@@max_allowed_packet: %v, %v", got, err)
	}
}

func TestManyJoinedTables(t *testing.T) {
	var tables []lakes.Table
	for i := range 15 {
		tables = append(tables, lakes.Table{Name: fmt.Sprintf("t%d", i), Fields: []arrow.Field{lakes.Field("a", lakes.Int64)}, Rows: `[{"a":1},{"a":2}]`})
	}
	dir := t.TempDir()
	lakes.Build(t, dir, lakes.Bare, tables...)
	lake := lakes.Open(t, dir, engine.Config{}).Serve(t, server.Options{})
	lake.Set(t, "SET max_execution_time = 10000")
	for n := 9; n <= 15; n++ {
		text := "SELECT COUNT(*) FROM t0"
		for i := 1; i < n; i++ {
			text += fmt.Sprintf(" JOIN t%d ON t%d.a = t%d.a", i, i, i-1)
		}
		for _, door := range lake.Doors() {
			start := time.Now()
			if got, err := door.Ask(context.Background(), text); err != nil || got[0] != "2" {
				t.Errorf("%d tables (%s): %v, %v", n, door.Name, got, err)
			}
			if took := time.Since(start); took > 5*time.Second {
				t.Errorf("%d tables (%s) took %v", n, door.Name, took)
			}
		}
	}
}

func TestLargeLabels(t *testing.T) {
	large := strings.Repeat("L", 1<<20)
	for _, path := range lakes.Paths {
		dir := t.TempDir()
		lakes.Build(t, dir, path, lakes.Table{
			Name: "t", Fields: []arrow.Field{lakes.Field("id", lakes.Int64), lakes.Field("labels", lakes.Labels)},
			Rows:    `[{"id":1,"labels":["` + large + `","a"]},{"id":2,"labels":["a"]},{"id":3,"labels":["` + large + `"]},{"id":4,"labels":["` + large + `x"]}]`,
			Indices: []lakes.Index{{Column: "labels", Kind: index.KindLabelList}},
		})
		lake := lakes.Open(t, dir, engine.Config{}).Serve(t, server.Options{})
		lake.Check(t, []lakes.Case{
			{Name: string(path) + ", in the statement", Text: "SELECT id FROM t WHERE array_has(labels, '" + large + "') ORDER BY id", Want: ids(1, 3)},
			{Name: string(path) + ", as a parameter", Text: "SELECT id FROM t WHERE array_has(labels, ?) ORDER BY id", Args: []any{large}, Want: ids(1, 3)},
			{Name: string(path) + ", the list comes back whole", Text: "SELECT LENGTH(labels) FROM t WHERE id = 3", Want: ids(1<<20 + 4)},
		})
	}
}

// TestLongLists is case 24.
func TestLongLists(t *testing.T) {
	const rows, labels, needles = 100_000, 20_000, 10_000
	s := []arrow.Field{lakes.Field("id", lakes.Int64), lakes.Field("labels", lakes.Labels)}
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema(s, nil))
	defer b.Release()
	list := b.Field(1).(*array.ListBuilder)
	for i := range rows {
		b.Field(0).(*array.Int64Builder).Append(int64(i))
		list.Append(true)
		list.ValueBuilder().(*array.StringBuilder).Append(fmt.Sprintf("t%d", i%labels))
	}
	table := lakes.Table{Name: "t", Fields: s, Batches: []arrow.RecordBatch{b.NewRecordBatch()}, Indices: []lakes.Index{{Column: "labels", Kind: index.KindLabelList}}}
	var words, numbers, marks []string
	var wordArgs, numberArgs []any
	for i := range needles {
		words, numbers, marks = append(words, fmt.Sprintf("'t%d'", i)), append(numbers, fmt.Sprint(2*i)), append(marks, "?")
		wordArgs, numberArgs = append(wordArgs, fmt.Sprintf("t%d", i)), append(numberArgs, 2*i)
	}
	questions := strings.Join(marks, ",")
	for _, path := range lakes.Only(lakes.Bare, lakes.Half) {
		dir := t.TempDir()
		lakes.Build(t, dir, path, table)
		lake := lakes.Open(t, dir, engine.Config{}).Serve(t, server.Options{})
		lake.Check(t, []lakes.Case{
			{Name: "labels in the statement", Text: "SELECT COUNT(*) FROM t WHERE array_has_any(labels, make_array(" + strings.Join(words, ",") + "))", Want: ids(rows / 2)},
			{Name: "labels as parameters", Text: "SELECT COUNT(*) FROM t WHERE array_has_any(labels, make_array(" + questions + "))", Args: wordArgs, Want: ids(rows / 2)},
			{Name: "ids in the statement", Text: "SELECT COUNT(*), MAX(id) FROM t WHERE id IN (" + strings.Join(numbers, ",") + ")", Want: []string{"10000\t19998"}},
			{Name: "ids as parameters", Text: "SELECT COUNT(*), MAX(id) FROM t WHERE id IN (" + questions + ")", Args: numberArgs, Want: []string{"10000\t19998"}},
			{Name: "more than 1 MiB of statement", Text: "SELECT COUNT(*) FROM t WHERE id IN (" + strings.Join(numbers, ","+strings.Repeat(" ", 120)) + ")", Want: ids(needles)},
		})
	}
}

// TestFilesThatVanish takes a table's files away, one after the other, under an engine that has it open.
func TestFilesThatVanish(t *testing.T) {
	dir := t.TempDir()
	lakes.Build(t, dir, lakes.Half, labelTable, integers)
	for _, folder := range []string{"_indices", "data", ""} {
		lake := lakes.Open(t, dir, engine.Config{}).Serve(t, server.Options{})
		if err := os.RemoveAll(filepath.Join(dir, "l.lance", folder)); err != nil {
			t.Fatal(err)
		}
		for _, door := range wire(lake) {
			got, err := door.Ask(context.Background(), "SELECT id, labels, cat FROM l WHERE array_has(labels, 'foo')")
			if err == nil && len(got) != 3 || err != nil && number(err) == 0 {
				t.Errorf("without %q (%s): %v, %v", folder, door.Name, got, err)
			}
			if err == nil && folder != "_indices" {
				t.Errorf("without %q (%s): an answer", folder, door.Name)
			}
			if got, err := door.Ask(context.Background(), "SELECT COUNT(*) FROM ints"); err != nil || got[0] != "5" {
				t.Errorf("the other table without %q (%s): %v, %v", folder, door.Name, got, err)
			}
		}
	}
}

// TestNaNInBlobs sends NaN and infinity as bytes: there is no text for them.
func TestNaNInBlobs(t *testing.T) {
	lake := smallLake(t, engine.Config{})
	for name, blob := range map[string][]byte{"NaN": {0, 0, 192, 127, 0, 0, 128, 63}, "infinity": {0, 0, 128, 127, 0, 0, 128, 63}, "three bytes": {0, 0, 192}} {
		for _, door := range lake.Doors() {
			for _, ann := range []string{"off", "force"} {
				if _, err := door.Ask(context.Background(), "SET ann = '"+ann+"'"); err != nil {
					t.Fatal(err)
				}
				got, err := door.Ask(context.Background(), "SELECT id, l2_distance(vec, ?) AS x FROM v ORDER BY x, id LIMIT 3", blob)
				if err == nil && (name == "three bytes" || len(got) != 3) {
					t.Errorf("%s (%s, ann %s): %q", name, door.Name, ann, got)
				}
				if err != nil && strings.Contains(err.Error(), "internal") {
					t.Errorf("%s (%s, ann %s): %v", name, door.Name, ann, err)
				}
			}
		}
	}
}
