// Package lint checks what go vet does not know: which package may import which, and how large files and functions get.
package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lakesql/lakesql/internal/testutil"
)

const module = "github.com/lakesql/lakesql/"

// mayImport is the import table: each package, or each tree ending in /..., and what it may import besides internal/... and its own subpackages' rules.
// Longest match wins.
var mayImport = map[string][]string{
	"cmd/...":               {"engine", "server", "upkeep", "source/...", "storage/...", "index/...", "demo", "write/...", "planner", "planner/coltype", "exec/..."},
	"server":                {"engine", "planner/gms/...", "planner/dialect", "exec/..."},
	"engine":                {"upkeep", "planner/...", "write", "exec/...", "source/...", "storage/...", "glm", "index"},
	"planner/gms/provider":  {"source/...", "write", "planner/coltype", "exec/...", "index", "planner", "planner/gms/...", "planner/dialect"},
	"planner/gms/translate": {"planner", "planner/logical", "planner/coltype", "planner/dml", "exec/...", "planner/gms/...", "planner/dialect", "index"},
	"planner/gms/mysqlerr":  {},
	"planner/gms/...":       {"planner", "planner/logical", "planner/dialect", "exec/...", "source", "index", "planner/gms/..."},
	"planner":               {"planner/logical", "glm", "exec/...", "index", "storage/rowset"},
	"planner/logical":       {"exec/...", "index"},
	"planner/dialect":       {"planner/coltype"},
	"planner/coltype":       {},
	"planner/dml":           {"planner", "planner/logical", "planner/coltype", "exec/...", "write", "storage/...", "source", "source/lance", "index"},
	"upkeep":                {"write", "source", "source/lance", "storage/...", "planner/coltype"},
	"write":                 {"exec/...", "index/...", "storage/..."},
	"write/transfer":        {"write", "source/files", "storage/...", "planner/coltype"},
	"demo":                  {"write", "storage/...", "index/..."},
	"source/files":          {"storage/object", "planner/coltype"},
	"source":                {"exec/..."},
	"source/...":            {"source", "exec/...", "index/...", "storage/..."},
	"glm":                   {"exec/...", "storage/rowset"},
	"exec":                  {"exec/expr", "index", "storage/rowset"},
	"exec/expr":             {},
	"index":                 {"storage/..."},
	"index/...":             {"index/...", "storage/..."},
	"storage":               {"storage/..."},
	"storage/manifest":      {"storage/object", "storage/pb/...", "storage/schema", "storage/rowset"},
	"storage/file":          {"storage/encoding", "storage/object", "storage/pb/...", "storage/schema"},
	"storage/encoding":      {"storage/pb/...", "storage/schema"},
	"storage/object":        {},
	"storage/object/...":    {"storage/object"},
	"storage/rowset":        {},
	"storage/schema":        {"storage/pb/..."},
	"storage/inspect":       {"storage/..."},
	"storage/pb/...":        {"storage/pb/..."},
	"internal/...":          {},
	"test/...":              {"..."},
	"bench/...":             {"..."},
}

// rooms keeps outside libraries where they belong.
var rooms = map[string][]string{
	"github.com/dolthub/go-mysql-server": {"planner/gms/", "engine", "server", "test/", "cmd/"},
	"github.com/dolthub/vitess":          {"planner/gms/", "engine", "server", "test/"},
	"google.golang.org/grpc":             {"flight", "source/flightsql"},
	"google.golang.org/protobuf":         {"storage", "index", "write", "source/lance"},
	"gocloud.dev":                        {"storage/object"},
	"github.com/xwb1989/sqlparser":       {"planner/dialect"},
}

const (
	fileLinesMax     = 800
	functionLinesMax = 70
)

type file struct {
	path string // slash-separated, from the module root
	pkg  string
	ast  *ast.File
	fset *token.FileSet
	test bool
	text []byte
}

func load(t *testing.T) []file {
	t.Helper()
	root := testutil.Root(t)
	var out []file
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		if d.IsDir() {
			if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil && rel != "." || strings.HasPrefix(d.Name(), ".") && rel != "." || d.Name() == "node_modules" || d.Name() == "testdata" {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, path, text, parser.ParseComments)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		out = append(out, file{path: rel, pkg: filepath.ToSlash(filepath.Dir(rel)), ast: f, fset: fset, test: strings.HasSuffix(path, "_test.go"), text: text})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out) < 20 {
		t.Fatalf("found %d Go files only", len(out))
	}
	return out
}

func matches(pattern, pkg string) bool {
	if pattern == "..." {
		return true
	}
	if tree, ok := strings.CutSuffix(pattern, "/..."); ok {
		return pkg == tree || strings.HasPrefix(pkg, tree+"/")
	}
	return pattern == pkg
}

func allowed(pkg string) ([]string, bool) {
	best := ""
	for pattern := range mayImport {
		if matches(pattern, pkg) && len(pattern) > len(best) {
			best = pattern
		}
	}
	return mayImport[best], best != ""
}

func TestImportTable(t *testing.T) {
	for _, f := range load(t) {
		may, ok := allowed(f.pkg)
		if !ok {
			t.Errorf("%s: package %s is not in the import table of internal/lint", f.path, f.pkg)
			continue
		}
		if f.test {
			continue // tests may look at more: they are never linked into the binary
		}
		for _, spec := range f.ast.Imports {
			path, _ := strconv.Unquote(spec.Path.Value)
			if own, ok := strings.CutPrefix(path, module); ok {
				if !matches("internal/...", own) && !slices.ContainsFunc(may, func(p string) bool { return matches(p, own) }) {
					t.Errorf("%s imports %s: not in the table", f.path, own)
				}
				continue
			}
			for lib, where := range rooms {
				if (path == lib || strings.HasPrefix(path, lib+"/")) && !slices.ContainsFunc(where, func(w string) bool {
					return f.pkg == strings.TrimSuffix(w, "/") || strings.HasPrefix(f.pkg, strings.TrimSuffix(w, "/")+"/")
				}) {
					t.Errorf("%s imports %s, which belongs to %v", f.path, path, where)
				}
			}
		}
	}
}

func TestSizes(t *testing.T) {
	for _, f := range load(t) {
		if ast.IsGenerated(f.ast) {
			continue
		}
		if n := strings.Count(string(f.text), "\n"); n > fileLinesMax {
			t.Errorf("%s has %d lines; split it (at most %d)", f.path, n, fileLinesMax)
		}
		if f.test {
			continue
		}
		for _, d := range f.ast.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			start, end := f.fset.Position(fn.Pos()).Line, f.fset.Position(fn.End()).Line
			line := strings.Split(string(f.text), "\n")[start-1]
			if end-start+1 > functionLinesMax && !strings.Contains(line, "nolint:funlen") {
				t.Errorf("%s:%d: %s has %d lines (at most %d)", f.path, start, fn.Name.Name, end-start+1, functionLinesMax)
			}
		}
	}
}

// TestGoroutines: internal/spawn is the only way to start one.
func TestGoroutines(t *testing.T) {
	for _, f := range load(t) {
		if f.test || f.pkg == "internal/spawn" || strings.HasPrefix(f.pkg, "test/") || strings.HasPrefix(f.pkg, "bench/") {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if g, ok := n.(*ast.GoStmt); ok {
				t.Errorf("%s: go statement outside internal/spawn", f.fset.Position(g.Pos()))
			}
			return true
		})
	}
}

// TestPackagesAreDocumented: every package opens with a comment.
func TestPackagesAreDocumented(t *testing.T) {
	documented, seen := map[string]bool{}, map[string]bool{}
	for _, f := range load(t) {
		if f.test || ast.IsGenerated(f.ast) {
			continue
		}
		seen[f.pkg] = true
		documented[f.pkg] = documented[f.pkg] || f.ast.Doc != nil
	}
	for pkg := range seen {
		if !documented[pkg] {
			t.Errorf("package %s has no package comment", pkg)
		}
	}
}

// TestNoInitNoSkip: kinds are chosen by visible switches, and a test that cannot run fails.
func TestNoInitNoSkip(t *testing.T) {
	for _, f := range load(t) {
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" && !ast.IsGenerated(f.ast) {
				t.Errorf("%s: func init", f.fset.Position(fn.Pos()))
			}
		}
		for _, mark := range []string{"t.Skip(", "TO" + "DO:", "FIX" + "ME"} {
			if f.pkg != "internal/lint" && strings.Contains(string(f.text), mark) {
				t.Errorf("%s contains %q", f.path, mark)
			}
		}
	}
}
