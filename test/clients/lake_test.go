package clients

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/lakesql/lakesql/demo"
	"github.com/lakesql/lakesql/engine"
	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/internal/testutil"
	"github.com/lakesql/lakesql/server"
	"github.com/lakesql/lakesql/source"
	"github.com/lakesql/lakesql/source/lance"
	"github.com/lakesql/lakesql/storage/object"
)

// The lake that the statements are written for.
const (
	lakeRows = 4000
	lakeDim  = 16
)

// lake is a served engine over the demo's tables (database demo) and the repository's datasets (database fixtures).
type lake struct {
	engine *engine.Engine
	port   string
	user   string // who asks the engine itself
}

func startLake(t *testing.T, users ...server.User) *lake {
	t.Helper()
	dir := t.TempDir()
	if _, err := demo.Generate(context.Background(), demo.Options{Dir: dir, Rows: lakeRows, Dim: lakeDim}); err != nil {
		t.Fatal(err)
	}
	segments := lance.NewSegmentCache(0)
	var catalogs []source.Catalog
	for name, folder := range map[string]string{"demo": dir, "fixtures": filepath.Join(testutil.Root(t), "testdata", "lance")} {
		store, err := object.OpenLocal(folder, object.LocalOptions{})
		if err != nil {
			t.Fatal(err)
		}
		catalogs = append(catalogs, lance.Open(name, store, lance.Options{Segments: segments}))
	}
	e, err := engine.Open(context.Background(), engine.Config{Catalogs: catalogs, Now: func() time.Time { return time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC) }})
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.Start(context.Background(), e, server.Options{Users: users})
	if err != nil {
		t.Fatal(errors.Join(err, e.Close()))
	}
	t.Cleanup(func() {
		if err := errors.Join(s.Close(), e.Close()); err != nil {
			t.Error(err)
		}
		if used := e.Budget().Used(); used != 0 {
			t.Errorf("%d bytes are still reserved", used)
		}
	})
	_, port, err := net.SplitHostPort(s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	user := "root"
	if len(users) > 0 {
		user = users[0].Name
	}
	return &lake{engine: e, port: port, user: user}
}

// answer is what a statement gave, from the engine or from a client. Cells are text, nil for NULL; bytes are hexadecimal.
type answer struct {
	Name    string      `json:"name"`
	Mode    string      `json:"mode"`
	Columns []string    `json:"columns"`
	Rows    [][]*string `json:"rows"`
	Code    int         `json:"code"`
	State   string      `json:"state"`
	Message string      `json:"message"`

	types      []arrow.DataType
	vectorized bool
}

// ask gives the engine's own answer, without a server.
func (l *lake) ask(t *testing.T, text string) answer {
	t.Helper()
	s := l.engine.NewSession(engine.SessionOptions{User: l.user, Address: "localhost", Database: "demo"})
	defer s.Close()
	res, err := s.Query(context.Background(), text)
	if err != nil {
		return answer{Message: err.Error()}
	}
	defer func() {
		if err := res.Close(); err != nil {
			t.Error(err)
		}
	}()
	out := answer{vectorized: res.Vectorized}
	for _, c := range res.Columns {
		out.Columns = append(out.Columns, c.Name)
		out.types = append(out.types, c.Arrow)
	}
	for res.HasRows() {
		b, err := res.Operator.Next(res.Context())
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return answer{Message: err.Error()}
		}
		rows, err := textRows(res.ExprEnv(), b)
		b.Release()
		if err != nil {
			t.Fatal(err)
		}
		out.Rows = append(out.Rows, rows...)
	}
	return out
}

// textRows prints a batch as MySQL text.
func textRows(env *expr.Env, b arrow.RecordBatch) ([][]*string, error) {
	out := make([][]*string, b.NumRows())
	for i := range out {
		out[i] = make([]*string, b.NumCols())
	}
	for c, f := range b.Schema().Fields() {
		col, err := textColumn(env, b, c, f)
		if err != nil {
			return nil, fmt.Errorf("column %q: %w", f.Name, err)
		}
		for i := range out {
			if col.IsNull(i) || col.DataType().ID() == arrow.NULL || unreal(b.Column(c), i) {
				continue
			}
			v := strings.Clone(col.ValueStr(i)) // the batch goes back to the pool
			switch col := col.(type) {
			case *array.Binary:
				v = hex.EncodeToString(col.Value(i))
			case *array.LargeBinary:
				v = hex.EncodeToString(col.Value(i))
			}
			out[i][c] = &v
		}
		col.Release()
	}
	return out, nil
}

// unreal says that a number has no MySQL text: the server sends NULL.
func unreal(a arrow.Array, i int) bool {
	var f float64
	switch a := a.(type) {
	case *array.Float64:
		f = a.Value(i)
	case *array.Float32:
		f = float64(a.Value(i))
	default:
		return false
	}
	return math.IsNaN(f) || math.IsInf(f, 0)
}

func textColumn(env *expr.Env, b arrow.RecordBatch, c int, f arrow.Field) (arrow.Array, error) {
	col := &expr.Column{ID: c, Name: f.Name, T: f.Type}
	text, err := expr.AsText(col)
	if err != nil {
		return nil, err
	}
	if text == expr.Expr(col) {
		b.Column(c).Retain()
		return b.Column(c), nil
	}
	p, err := expr.Compile(text, b.Schema())
	if err != nil {
		return nil, err
	}
	return p.Eval(env, b)
}

// needle is the embedding of an image as JSON text, for searches near it.
func (l *lake) needle(t *testing.T, id int) string {
	t.Helper()
	a := l.ask(t, "SELECT embedding FROM images WHERE id = "+strconv.Itoa(id))
	if len(a.Rows) != 1 || a.Rows[0][0] == nil {
		t.Fatalf("image %d: %+v", id, a)
	}
	return *a.Rows[0][0]
}
