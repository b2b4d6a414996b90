// Package testutil finds test datasets and compares what lakesql reads with what another engine read.
package testutil

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
)

// Root returns the folder of the module.
func Root(tb testing.TB) string {
	tb.Helper()
	_, file, _, ok := runtime.Caller(0)
	if !ok {
		tb.Fatal("no caller information")
	}
	return filepath.Join(filepath.Dir(file), "..", "..")
}

// Lance returns the path of testdata/lance/NAME.lance.
func Lance(tb testing.TB, name string) string {
	tb.Helper()
	return mustExist(tb, filepath.Join(Root(tb), "testdata", "lance", name+".lance"))
}

// Shared returns a path below the folder "shared" beside the module (LAKESQL_SHARED overrides it). A missing path fails the test:
// tests over it have the build tag "shared" and a make target of their own.
func Shared(tb testing.TB, elem ...string) string {
	tb.Helper()
	base := os.Getenv("LAKESQL_SHARED")
	if base == "" {
		base = filepath.Join(Root(tb), "..", "shared")
	}
	return mustExist(tb, filepath.Join(append([]string{base}, elem...)...))
}

func mustExist(tb testing.TB, path string) string {
	tb.Helper()
	if _, err := os.Stat(path); err != nil {
		tb.Fatalf("test data is missing: %v", err)
	}
	return path
}

// Expected is what the reference engine read from a dataset.
type Expected struct {
	Rows    []map[string]any // see testdata/README.md for how values are spelled; numbers are json.Number
	Schema  []ExpectedField
	Queries []ExpectedQuery
	Indices []map[string]any
}

// ExpectedField is one column of Expected.Schema.
type ExpectedField struct {
	Name, Type string
	Nullable   bool
}

// UnmarshalJSON reads the [name, type, nullable] form of the files.
func (f *ExpectedField) UnmarshalJSON(b []byte) error {
	parts := []any{&f.Name, &f.Type, &f.Nullable}
	return json.Unmarshal(b, &parts)
}

// ExpectedQuery is a filter or a vector search with its answer.
type ExpectedQuery struct {
	Where  string
	Vector []float32
	Column string
	Metric string
	K      int
	Nprobes,
	Refine int
	Exact  bool
	Result json.RawMessage // filters: the ids as strings; searches: objects with id and _distance
	Raw    map[string]any  // the whole entry, for fields that are not named here
}

// LoadExpected reads PATH.expected.json or .json.gz beside a dataset PATH.lance.
func LoadExpected(tb testing.TB, datasetPath string) *Expected {
	tb.Helper()
	var out struct {
		Expected
		Queries []json.RawMessage
	}
	LoadJSON(tb, datasetPath[:len(datasetPath)-len(".lance")]+".expected.json", &out)
	for _, raw := range out.Queries {
		var q ExpectedQuery
		if err := json.Unmarshal(raw, &q); err != nil {
			tb.Fatal(err)
		}
		if err := json.Unmarshal(raw, &q.Raw); err != nil {
			tb.Fatal(err)
		}
		out.Expected.Queries = append(out.Expected.Queries, q)
	}
	return &out.Expected
}

// LoadJSON decodes path, or path+".gz" where only that exists; numbers of untyped values become json.Number.
func LoadJSON(tb testing.TB, path string, into any) {
	tb.Helper()
	var r io.ReadCloser
	r, err := os.Open(path)
	if err != nil {
		f, err := os.Open(path + ".gz")
		if err != nil {
			tb.Fatal(err)
		}
		defer func() { _ = f.Close() }()
		if r, err = gzip.NewReader(f); err != nil {
			tb.Fatal(err)
		}
	}
	defer func() { _ = r.Close() }()
	d := json.NewDecoder(r)
	d.UseNumber()
	if err := d.Decode(into); err != nil {
		tb.Fatalf("%s: %v", path, err)
	}
}

// LoadArrow reads the one batch of a gzipped Arrow stream. The caller releases it.
func LoadArrow(tb testing.TB, path string) arrow.RecordBatch {
	tb.Helper()
	f, err := os.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	if err != nil {
		tb.Fatal(err)
	}
	r, err := ipc.NewReader(z)
	if err != nil {
		tb.Fatal(err)
	}
	defer r.Release()
	if !r.Next() {
		tb.Fatal(r.Err())
	}
	b := r.RecordBatch()
	b.Retain()
	return b
}
