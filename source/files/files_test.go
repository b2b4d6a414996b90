package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"go.uber.org/goleak"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/planner/coltype"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// put writes files into a folder and finds them.
func put(t *testing.T, content map[string]string, sources ...string) []File {
	t.Helper()
	dir := t.TempDir()
	for name, text := range content {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	sources = slices.Clone(sources)
	for i, s := range sources {
		sources[i] = filepath.Join(dir, s)
		if strings.HasSuffix(s, "/") {
			sources[i] += "/"
		}
	}
	if len(sources) == 0 {
		sources = []string{dir}
	}
	finder := &Finder{}
	t.Cleanup(func() {
		if err := finder.Close(); err != nil {
			t.Error(err)
		}
	})
	found, err := finder.Find(context.Background(), sources)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// readAll reads a file as columns, nil = those that it has, and returns its rows as JSON, and the bad ones.
func readAll(t *testing.T, f File, columns *arrow.Schema, opts Options) (shape *Shape, rows []string, bad []BadRow, err error) {
	t.Helper()
	alloc := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer alloc.AssertSize(t, 0)
	opts.Alloc = alloc
	ctx := context.Background()
	if shape, err = Inspect(ctx, []File{f}, opts); err != nil {
		return nil, nil, nil, err
	}
	if columns == nil {
		columns = shape.Schema
	}
	r, err := Open(ctx, f, shape, columns, opts)
	if err != nil {
		return shape, nil, nil, err
	}
	defer func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}()
	for {
		b, more, err := r.Next()
		if errors.Is(err, io.EOF) {
			return shape, rows, bad, nil
		}
		if err != nil {
			return shape, rows, bad, err
		}
		bad = append(bad, more...)
		if b == nil {
			continue
		}
		for i := range int(b.NumRows()) {
			var cells []string
			for _, c := range b.Columns() {
				if c.IsNull(i) {
					cells = append(cells, "NULL")
				} else {
					cells = append(cells, strings.TrimSpace(c.ValueStr(i)))
				}
			}
			rows = append(rows, strings.Join(cells, " | "))
		}
		b.Release()
	}
}

func columnsOfShape(s *Shape) string {
	var out []string
	for _, f := range s.Schema.Fields() {
		out = append(out, f.Name+" "+typeName(f.Type))
	}
	return strings.Join(out, ", ")
}

// What is found out of text, and read.
func TestInferText(t *testing.T) {
	dates := "a;b;c\n31.12.2023;01.02.2024;x\n01.01.2024;03.04.2024;y\n"
	for _, c := range []struct {
		name, file, text string
		opts             Options
		columns, rows    string
	}{
		{"types", "a.csv", "i,f,b,s,d,at,z,t\n1,1.5,true,x,2024-05-31,2024-05-31 10:20:30.5,2024-05-31T10:20:30+02:00,10:20\n-2,3,FALSE,,2023-01-02,2024-05-31,2024-05-31T10:20:30Z,23:59:59.25\n", Options{},
			"i BIGINT, f DOUBLE, b BOOLEAN, s VARCHAR, d DATE, at DATETIME(6), z TIMESTAMP(6), t TIME(6)",
			"1 | 1.5 | true | x | 2024-05-31 | 2024-05-31T10:20:30.5 | 2024-05-31T08:20:30Z | 10:20:00.000000; -2 | 3 | false | NULL | 2023-01-02 | 2024-05-31T00:00:00 | 2024-05-31T10:20:30Z | 23:59:59.250000"},
		{"no header, numbers alone", "a.csv", "1,2\n3,4\n", Options{}, "column0 BIGINT, column1 BIGINT", "1 | 2; 3 | 4"},
		{"a header of text above text", "a.csv", "name,city\nann,rome\n", Options{}, "name VARCHAR, city VARCHAR", "ann | rome"},
		{"no header where told so", "a.csv", "name,city\nann,rome\n", Options{Header: new(bool)}, "column0 VARCHAR, column1 VARCHAR", "name | city; ann | rome"},
		{"tabs", "a.tsv", "a\tb\n1,5\tx\n", Options{}, "a VARCHAR, b VARCHAR", "1,5 | x"},
		{"semicolons, quotes, line ends in quotes", "a.csv", "a;b\r\n\"x;\"\"y\"\"\nz\";1\r\n;2\r\n\"\";3\r\n", Options{}, "a VARCHAR, b BIGINT", "x;\"y\"\nz | 1; NULL | 2;  | 3"},
		{"single quotes", "a.csv", "a,b\n'x,y',1\n'z',2\n", Options{}, "a VARCHAR, b BIGINT", "x,y | 1; z | 2"},
		{"backslash escapes", "a.csv", "a,b\n\"x\\\"y\",1\n\"z\",2\n", Options{}, "a VARCHAR, b BIGINT", "x\"y | 1; z | 2"},
		{"pipes, a mark at the beginning, no line end", "a.csv", "\xEF\xBB\xBFa|b\n1|2", Options{}, "a BIGINT, b BIGINT", "1 | 2"},
		{"words for NULL where numbers are", "a.csv", "n,s\n1,NA\nNA,x\n\\N,\\N\n", Options{}, "n BIGINT, s VARCHAR", "1 | NA; NULL | x; NULL | NULL"},
		{"words for NULL that are given", "a.csv", "n,s\n1,-\n?,x\n", Options{Nulls: []string{"?", "-"}}, "n BIGINT, s VARCHAR", "1 | NULL; NULL | x"},
		{"NaN is a number", "a.csv", "n\n1.5\nNaN\n", Options{}, "n DOUBLE", "1.5; NaN"},
		{"leading zeros and numbers beyond all integers stay text", "a.csv", "zip,big,u\n00123,123456789012345678901234567890,18446744073709551615\n4,5,6\n", Options{}, "zip VARCHAR, big VARCHAR, u BIGINT UNSIGNED", "00123 | 123456789012345678901234567890 | 18446744073709551615; 4 | 5 | 6"},
		{"days first, for one is above 12; points", "a.csv", dates, Options{}, "a DATE, b DATE, c VARCHAR", "2023-12-31 | 2024-02-01 | x; 2024-01-01 | 2024-04-03 | y"},
		{"dates that may be read two ways stay text", "a.csv", "d\n01/02/2024\n03/04/2024\n", Options{}, "d VARCHAR", "01/02/2024; 03/04/2024"},
		{"unless it is said", "a.csv", "d\n01/02/2024\n03/04/2024\n", Options{DateOrder: OrderMDY}, "d DATE", "2024-01-02; 2024-03-04"},
		{"months first", "a.csv", "d,e\n01/31/2024,x\n03/04/2024,y\n", Options{}, "d DATE, e VARCHAR", "2024-01-31 | x; 2024-03-04 | y"},
		{"lists, as JSON and as Python prints them", "a.csv", "l,p,o\n\"[1,2]\",\"['a', None]\",\"{\"\"k\"\": 1}\"\n[],[],\n", Options{}, "l LIST<BIGINT>, p LIST<VARCHAR>, o STRUCT<`k` BIGINT>", "[1,2] | [\"a\",null] | {\"k\":1}; [] | [] | NULL"},
		{"a vector", "a.csv", "v\n\"[1,2,3,4,5,6,7,8.5]\"\n\"[1,2,3,4,5,6,7,8]\"\n", Options{}, "v VECTOR(8)", "[1,2,3,4,5,6,7,8.5]; [1,2,3,4,5,6,7,8]"},
		{"lines to skip", "a.csv", "# made by x\n\na,b\n1,2\n", Options{SkipLines: 2}, "a BIGINT, b BIGINT", "1 | 2"},
		{"objects", "a.ndjson", `{"i":1,"f":1,"l":["a"],"o":{"x":1,"d":"2024-01-02"},"s":"1"}` + "\n\n" + `{"i":null,"f":2.5,"l":null,"o":{"y":[true]},"m":7}`, Options{},
			"i BIGINT, f DOUBLE, l LIST<VARCHAR>, o STRUCT<`x` BIGINT, `d` DATE, `y` LIST<BOOLEAN>>, s VARCHAR, m BIGINT",
			`1 | 1 | ["a"] | {"d":"2024-01-02","x":1,"y":null} | 1 | NULL; NULL | 2.5 | NULL | {"d":null,"x":null,"y":[true]} | NULL | 7`},
		{"values of several kinds are text", "a.ndjson", `{"v":1}` + "\n" + `{"v":"x"}` + "\n" + `{"v":[1, 2]}` + "\n", Options{}, "v VARCHAR", "1; x; [1, 2]"},
		{"escapes", "a.ndjson", `{"a":"\u00e4\ud83d\ude00\n\"","b\u0062":1}`, Options{}, "a VARCHAR, bb BIGINT", "ä😀\n\" | 1"},
		{"short lists of numbers and lists of several lengths stay lists", "a.ndjson", `{"a":[0.5,1],"b":[1.5,2,3,4,5,6,7,8]}` + "\n" + `{"a":[1,2],"b":[1.5]}`, Options{}, "a LIST<DOUBLE>, b LIST<DOUBLE>", "[0.5,1] | [1.5,2,3,4,5,6,7,8]; [1,2] | [1.5]"},
		{"vectors of two", "a.ndjson", `{"a":[0.5,1]}`, Options{VectorMin: 2}, "a VECTOR(2)", "[0.5,1]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, chunk := range []int{0, 7} {
				opts := c.opts
				opts.ChunkBytes = chunk
				shape, rows, bad, err := readAll(t, put(t, map[string]string{c.file: c.text})[0], nil, opts)
				if err != nil || len(bad) > 0 {
					t.Fatalf("chunks of %d: %v, %v", chunk, err, bad)
				}
				if got := columnsOfShape(shape); got != c.columns {
					t.Errorf("chunks of %d: columns %s, want %s", chunk, got, c.columns)
				}
				if got := strings.Join(rows, "; "); got != c.rows {
					t.Errorf("chunks of %d: rows\n%s, want\n%s", chunk, got, c.rows)
				}
			}
		})
	}
}

// What is wrong with a row, and where.
func TestBadRows(t *testing.T) {
	for _, c := range []struct{ name, file, columns, text, want, rows string }{
		{"no number", "a.csv", "id BIGINT, n INT", "id,n\n1,1\n2,x\n3,3\n", "a.csv:3 column n value \"x\": no INT", "1 | 1; 3 | 3"},
		{"out of range", "a.csv", "id BIGINT, n TINYINT", "id,n\n1,300\n2,-128\n", "a.csv:2 column n value \"300\": out of the range of TINYINT", "2 | -128"},
		{"too few values", "a.csv", "id BIGINT, n INT", "id,n\n1\n2,2\n", "a.csv:2 value \"1\": 1 values where the file has 2 columns", "2 | 2"},
		{"too many values", "a.csv", "id BIGINT, n INT", "id,n\n1,2,3\n2,2\n", "a.csv:2 value \"1,2,3\": 3 values where the file has 2 columns", "2 | 2"},
		{"a line behind one of several lines", "a.csv", "s VARCHAR, n INT", "s,n\n\"a\n\nb\",1\nx,y\n", "a.csv:5 column n value \"y\": no INT", "a\n\nb | 1"},
		{"a quote that is not closed", "a.csv", "s VARCHAR, n INT", "s,n\n\"a,1\nb,2\nc,3\n", "a.csv:2 value \"\\\"a,1\": a quote is not closed", "b | 2; c | 3"},
		{"text behind a quote", "a.csv", "s VARCHAR, n INT", "s,n\n\"a\"b,1\nc,2\n", "a.csv:2 value \"\\\"a\\\"b,1\": text behind a closing quote: \"b\"", "c | 2"},
		{"no UTF-8", "a.csv", "s VARCHAR, n INT", "s,n\n\xE4,1\nc,2\n", "a.csv:2 column s value \"\\xe4\": byte 0xE4 is not UTF-8: convert the file, as with iconv -f LATIN1 -t UTF-8", "c | 2"},
		{"NULL", "a.csv", "id BIGINT NOT NULL, n INT", "id,n\n,1\n2,2\n", "a.csv:2 column id value \"\": NULL where the column is NOT NULL", "2 | 2"},
		{"too long", "a.csv", "s VARCHAR(2), n INT", "s,n\näöü,1\näö,2\n", "a.csv:2 column s value \"äöü\": 3 characters where the column has room for 2", "äö | 2"},
		{"no JSON", "a.csv", "j JSON, n INT", "j;n\n{;1\n{};2\n", "a.csv:2 column j value \"{\": no JSON: the text ends where a key in quotes should be", "{} | 2"},
		{"digits that do not fit", "a.csv", "d DECIMAL(5,2), n INT", "d,n\n1.234,1\n1.230,2\n1234,3\n", "a.csv:2 column d value \"1.234\": 1 digits before the point and 3 behind it do not fit DECIMAL(5,2)", "1.23 | 2"},
		{"a date that is none", "a.csv", "d DATE, n INT", "d,n\n2024-02-30,1\n2024-02-29,2\n", "a.csv:2 column d value \"2024-02-30\": no DATE", "2024-02-29 | 2"},
		{"a time of day in a date", "a.csv", "d DATE, n INT", "d,n\n2024-02-29 10:00,1\n2024-02-29 00:00:00,2\n", "a.csv:2 column d value \"2024-02-29 10:00\": a time of day where the column is DATE", "2024-02-29 | 2"},
		{"a vector of another length", "a.ndjson", "v VECTOR(3)", "{\"v\":[1,2]}\n{\"v\":[1,2,3]}\n{\"v\":null}", "a.ndjson:1 column v value \"[1,2]\": a list of 2 where the column is VECTOR(3): import it with --vector-min -1 or --schema as a list, or mend the row", "[1,2,3]; NULL"},
		{"an item that is none", "a.ndjson", "l LIST<INT>, s STRUCT<a INT>", "{\"l\":[1,\"x\"]}\n{\"s\":{\"a\":true}}\n{\"l\":[2]}", "a.ndjson:1 column l value \"[1,\\\"x\\\"]\": item \"\\\"x\\\"\": no INT", "[2] | NULL"},
		{"a key that is no column", "a.ndjson", "a INT", "{\"a\":1,\"b\":2}\n{\"a\":2,\"b\":null}", "a.ndjson:1 value \"{\\\"a\\\":1,\\\"b\\\":2}\": key \"b\" is no column: --columns or --schema says which are wanted", "2"},
		{"a key that stands twice", "a.ndjson", "a INT", "{\"a\":1,\"a\":2}\n{\"a\":2}", "a.ndjson:1 value \"{\\\"a\\\":1,\\\"a\\\":2}\": key \"a\" stands twice", "2"},
		{"a line that ends early", "a.ndjson", "a INT", "{\"a\":1\n{\"a\":2}", "a.ndjson:1 value \"{\\\"a\\\":1\": no JSON: the text ends where a comma or } should be", "2"},
		{"no object", "a.ndjson", "a INT", "7\n{\"a\":2}", "a.ndjson:1 value \"7\": no object: NDJSON has one object a line; jq -c '.[]' makes that of an array", "2"},
		{"a row that is too long", "a.ndjson", "a VARCHAR", "{\"a\":\"" + strings.Repeat("x", 300) + "\"}\n{\"a\":\"y\"}", "a.ndjson:1 value \"{\\\"a\\\":\\\"" + strings.Repeat("x", 54) + "\"... (", "y"},
		{"more digits of a second than there is room for", "a.csv", "t DATETIME(6), n INT", "t,n\n2024-01-01 00:00:00.1234567,1\n2024-01-01 00:00:00.1234560,2\n", "a.csv:2 column t value \"2024-01-01 00:00:00.1234567\": more digits of a second than the column keeps", "2024-01-01T00:00:00.123456 | 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			columns, err := coltype.ParseColumns(c.columns)
			if err != nil {
				t.Fatal(err)
			}
			for _, chunk := range []int{0, 5} {
				f := put(t, map[string]string{c.file: c.text})[0]
				header := true
				opts := Options{ChunkBytes: chunk, Header: &header, MaxRowBytes: 250}
				_, rows, bad, err := readAll(t, f, columns, opts)
				if err != nil || len(bad) == 0 {
					t.Fatalf("chunks of %d: bad rows %v, %v", chunk, bad, err)
				}
				got := strings.TrimPrefix(bad[0].Error(), f.URL[:strings.LastIndexByte(f.URL, '/')+1])
				if !strings.HasPrefix(got, c.want) {
					t.Errorf("chunks of %d: bad row\n%s, want\n%s", chunk, got, c.want)
				}
				if got := strings.Join(rows, "; "); got != c.rows {
					t.Errorf("chunks of %d: rows %q, want %q", chunk, got, c.rows)
				}
			}
		})
	}
}

// A file that is not fit for a table is refused before a row is read, with what to do.
func TestRefusedFiles(t *testing.T) {
	for _, c := range []struct {
		name, file, text, columns string
		opts                      Options
		kind                      error
		want                      string
	}{
		{"an unknown column", "a.csv", "a,b\n1,2\n", "a INT", Options{}, errs.ErrUnknownColumn, `column "b" that the table lacks: --columns`},
		{"a missing column", "a.csv", "a\n1\n", "a INT, b INT NOT NULL", Options{}, errs.ErrNoDefault, `no column "b", which is NOT NULL`},
		{"a name that the file lacks", "a.csv", "a\n1\n", "a INT, b INT", Options{Columns: Names{{"b", "x"}}}, errs.ErrUnknownColumn, `no column "x"; it has a`},
		{"an array", "a.json", "[{\"a\":1}]", "", Options{}, errs.ErrInvalid, "jq -c"},
		{"UTF-16", "a.csv", "\xFF\xFEa\x00", "", Options{}, errs.ErrUnsupported, "iconv"},
		{"no gzip", "a.csv.gz", "a,b\n", "", Options{}, errs.ErrCorrupt, "gzip"},
		{"no Parquet", "a.parquet", "a,b\n", "", Options{}, errs.ErrCorrupt, "it is no parquet"},
		{"Parquet that ends early", "a.parquet", "PAR1....PAR1", "", Options{}, errs.ErrCorrupt, "a.parquet"},
		{"Arrow that ends early", "a.arrow", "ARROW1\x00\x00....", "", Options{}, errs.ErrCorrupt, "a.arrow"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var columns *arrow.Schema
			if c.columns != "" {
				var err error
				if columns, err = coltype.ParseColumns(c.columns); err != nil {
					t.Fatal(err)
				}
			}
			header := true
			c.opts.Header = &header
			_, _, _, err := readAll(t, put(t, map[string]string{c.file: c.text})[0], columns, c.opts)
			if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("%v, want %v with %q", err, c.kind, c.want)
			}
		})
	}
}

func TestFind(t *testing.T) {
	content := map[string]string{"a.csv": "", "b.csv": "", "x/c.csv": "", "x/y/d.csv": "", "x/y/e.parquet": "", "x/.h.csv": "", "_t/f.csv": "", "n.txt": ""}
	for _, c := range []struct {
		sources []string
		want    string
	}{
		{[]string{"a.csv"}, "a.csv"}, {[]string{"*.csv"}, "a.csv b.csv"}, {[]string{"**/*.csv"}, "a.csv b.csv x/c.csv x/y/d.csv"}, {[]string{"x"}, "x/c.csv x/y/d.csv x/y/e.parquet"},
		{[]string{"x/"}, "x/c.csv x/y/d.csv x/y/e.parquet"}, {[]string{"x/*/*"}, "x/y/d.csv x/y/e.parquet"}, {[]string{"[ab].csv"}, "a.csv b.csv"}, {[]string{"?.csv", "a.csv"}, "a.csv b.csv"},
		{[]string{"n.txt"}, "n.txt"}, {[]string{"b.csv", "a.csv"}, "b.csv a.csv"},
	} {
		var got []string
		for _, f := range put(t, content, c.sources...) {
			_, rel, _ := strings.Cut(f.URL, "/TestFind")
			got = append(got, strings.SplitN(rel, "/", 3)[2])
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%v found %v, want %s", c.sources, got, c.want)
		}
	}
	finder := &Finder{}
	defer func() { _ = finder.Close() }()
	for source, kind := range map[string]error{filepath.Join(t.TempDir(), "none.csv"): errs.ErrNotFound, t.TempDir(): errs.ErrNotFound, "s3://": errs.ErrInvalid, "s3://b/k": errs.ErrUnsupported} {
		if _, err := finder.Find(context.Background(), []string{source}); !errors.Is(err, kind) {
			t.Errorf("%s: %v, want %v", source, err, kind)
		}
	}
}

func TestLocate(t *testing.T) {
	for source, want := range map[string]place{
		"s3://b/d/part-?.parquet?endpoint=http://h:1&x=y": {root: "s3://b?endpoint=http://h:1&x=y", base: "s3://b", rest: "d/part-?.parquet"},
		"s3://b/d/*.csv":  {root: "s3://b", base: "s3://b", rest: "d/*.csv"},
		"/a/b*/c.csv":     {root: "/a", base: "file:///a", rest: "b*/c.csv"},
		"file:///a/b%20c": {root: "/a", base: "file:///a", rest: "b c"},
		"/x.csv":          {root: "/", base: "file://", rest: "x.csv"},
	} {
		if got, err := locate(source); err != nil || got != want {
			t.Errorf("%s: %+v, %v, want %+v", source, got, err, want)
		}
	}
}

// Parallel chunks come in order, and rows are counted once, whatever the chunk.
func TestManyChunks(t *testing.T) {
	var csv, json strings.Builder
	csv.WriteString("id,s\n")
	const rows = 20_000
	for i := range rows {
		fmt.Fprintf(&csv, "%d,\"x\n%d\"\n", i, i)
		fmt.Fprintf(&json, "{\"id\":%d,\"s\":\"x\\n%d\"}\n", i, i)
	}
	for name, text := range map[string]string{"a.csv": csv.String(), "a.ndjson": json.String()} {
		_, got, bad, err := readAll(t, put(t, map[string]string{name: text})[0], nil, Options{ChunkBytes: 999, Parallel: 3})
		if err != nil || len(bad) > 0 || len(got) != rows {
			t.Fatalf("%s: %d rows, %v, %v", name, len(got), bad, err)
		}
		for i, r := range got {
			if r != fmt.Sprintf("%d | x\n%d", i, i) {
				t.Fatalf("%s: row %d is %q", name, i, r)
			}
		}
	}
}

// A reader that is closed early leaves no goroutine and no memory.
func TestCloseEarly(t *testing.T) {
	text := "id\n" + strings.Repeat("1\n", 100_000)
	f := put(t, map[string]string{"a.csv": text})[0]
	alloc := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer alloc.AssertSize(t, 0)
	opts := Options{ChunkBytes: 1000, Alloc: alloc}
	shape, err := Inspect(context.Background(), []File{f}, opts)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Open(context.Background(), f, shape, shape.Schema, opts)
	if err != nil {
		t.Fatal(err)
	}
	b, _, err := r.Next()
	if err != nil {
		t.Fatal(err)
	}
	b.Release()
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
}

// FuzzText: any text is rows and bad rows, and no panic; without a bad row, CSV has as many rows in large chunks as in small ones.
func FuzzText(f *testing.F) {
	for _, seed := range []string{"a,b\n1,\"x\"\n", "a\n\"", "{\"a\":[1,{\"b\":null}]}\n", "\"a\"\"b\",'c'\r\n\\\"", "[1,2]", "31.12.2024 10:00:00.5+01:00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, name := range []string{"a.csv", "a.ndjson"} {
			counts := make([]int, 2)
			for i, chunk := range []int{0, 3} {
				opts := Options{ChunkBytes: chunk, MaxRowBytes: 1 << 12, Quote: '"', Delimiter: ',', Escape: '"'}
				_, rows, bad, err := readAll(t, put(t, map[string]string{name: text})[0], nil, opts)
				if errors.Is(err, errs.ErrInternal) {
					t.Fatal(err)
				}
				if err != nil {
					return
				}
				counts[i] = len(rows) + len(bad)
			}
			if counts[0] != counts[1] {
				t.Fatalf("%s: %d rows in large chunks, %d in small ones", name, counts[0], counts[1])
			}
		}
	})
}
