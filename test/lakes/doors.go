package lakes

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	_ "github.com/go-sql-driver/mysql" // the driver "mysql"
	"github.com/sirupsen/logrus"

	"github.com/lakesql/lakesql/engine"
	"github.com/lakesql/lakesql/internal/testutil"
	"github.com/lakesql/lakesql/server"
	"github.com/lakesql/lakesql/source"
	"github.com/lakesql/lakesql/source/lance"
	"github.com/lakesql/lakesql/storage/object"
)

// Null is how NULL is spelled in answers.
const Null = `\N`

// Lake is an engine over one folder, with a session and, once asked for, a server with a connection per protocol.
type Lake struct {
	Engine  *engine.Engine
	Session *engine.Session
	server  *server.Server
	text    *sql.Conn
	binary  *sql.Conn
}

// Open opens a folder as the database "lake". Everything is closed when the test ends.
func Open(tb testing.TB, dir string, config engine.Config) *Lake {
	tb.Helper()
	store, err := object.OpenLocal(dir, object.LocalOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	config.Catalogs = append([]source.Catalog{lance.Open("lake", store, lance.Options{})}, config.Catalogs...)
	e, err := engine.Open(context.Background(), config)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := e.Close(); err != nil {
			tb.Error(err)
		}
		if used := e.Budget().Used(); used != 0 {
			tb.Errorf("%d bytes are still reserved", used)
		}
	})
	s := e.NewSession(engine.SessionOptions{Database: "lake"})
	tb.Cleanup(s.Close)
	return &Lake{Engine: e, Session: s}
}

// Serve starts a server and connects to it.
func (l *Lake) Serve(tb testing.TB, opts server.Options) *Lake {
	tb.Helper()
	srv, err := server.Start(context.Background(), l.Engine, opts)
	if err != nil {
		tb.Fatal(err)
	}
	l.server = srv
	tb.Cleanup(func() {
		if err := srv.Close(); err != nil {
			tb.Error(err)
		}
	})
	l.text, l.binary = l.Connect(tb, true), l.Connect(tb, false)
	return l
}

// Connect opens a connection. With text, arguments are written into the statement; without, statements with arguments are prepared.
func (l *Lake) Connect(tb testing.TB, text bool) *sql.Conn {
	tb.Helper()
	dsn := "root@tcp(" + l.server.Addr().String() + ")/lake?maxAllowedPacket=0"
	if text {
		dsn += "&interpolateParams=true"
	}
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := db.Close(); err != nil {
			tb.Error(err)
		}
	})
	conn, err := db.Conn(context.Background())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = conn.Close() }) // a test may have broken it
	return conn
}

// Addr is where the server listens.
func (l *Lake) Addr() string { return l.server.Addr().String() }

// Door is a way to ask. Its answers are lines of tab-separated cells.
type Door struct {
	Name string
	Ask  func(ctx context.Context, text string, args ...any) ([]string, error)
}

// Doors lists the ways to ask: the session, and both protocols where there is a server.
func (l *Lake) Doors() []Door {
	out := []Door{{Name: "session", Ask: l.askSession}}
	if l.server != nil {
		out = append(out,
			Door{Name: "text protocol", Ask: func(ctx context.Context, text string, args ...any) ([]string, error) {
				return AskConn(ctx, l.text, text, args...)
			}},
			Door{Name: "binary protocol", Ask: func(ctx context.Context, text string, args ...any) ([]string, error) {
				return AskPrepared(ctx, l.binary, text, args...)
			}})
	}
	return out
}

// Set runs a statement that changes the session at each door.
func (l *Lake) Set(tb testing.TB, text string) {
	tb.Helper()
	for _, d := range l.Doors() {
		if _, err := d.Ask(context.Background(), text); err != nil {
			tb.Fatalf("%s: %s: %v", d.Name, text, err)
		}
	}
}

// Explain returns the plan of a statement as one text.
func (l *Lake) Explain(tb testing.TB, text string) string {
	tb.Helper()
	lines, err := l.askSession(context.Background(), "EXPLAIN "+text)
	if err != nil {
		tb.Fatalf("EXPLAIN %s: %v", text, err)
	}
	return strings.Join(lines, "\n")
}

// AskConn asks over a connection.
func AskConn(ctx context.Context, conn *sql.Conn, text string, args ...any) ([]string, error) {
	rows, err := conn.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	return lines(rows)
}

// AskPrepared prepares a statement, runs it and forgets it.
func AskPrepared(ctx context.Context, conn *sql.Conn, text string, args ...any) (_ []string, err error) {
	st, err := conn.PrepareContext(ctx, text)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	rows, err := st.QueryContext(ctx, args...)
	if err != nil {
		return nil, err
	}
	return lines(rows)
}

func lines(rows *sql.Rows) (out []string, err error) {
	defer func() { err = errors.Join(err, rows.Close()) }()
	names, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	values, pointers := make([]sql.NullString, len(names)), make([]any, len(names))
	for i := range values {
		pointers[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(pointers...); err != nil {
			return nil, err
		}
		cells := make([]string, len(values))
		for i, v := range values {
			if cells[i] = v.String; !v.Valid {
				cells[i] = Null
			}
		}
		out = append(out, strings.Join(cells, "\t"))
	}
	return out, rows.Err()
}

func (l *Lake) askSession(ctx context.Context, text string, args ...any) ([]string, error) {
	out, _, err := AskSession(ctx, l.Session, text, args...)
	return out, err
}

// AskSession asks a session and also says whether one plan of ours made the whole answer.
func AskSession(ctx context.Context, s *engine.Session, text string, args ...any) (out []string, vectorized bool, err error) {
	res, err := s.Query(ctx, text, args...)
	if err != nil {
		return nil, false, err
	}
	defer func() { err = errors.Join(err, res.Close()) }()
	for res.HasRows() {
		batch, err := res.Operator.Next(res.Context())
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, false, err
		}
		for i := range int(batch.NumRows()) {
			cells := make([]string, batch.NumCols())
			for c := range cells {
				cells[c] = cell(batch.Column(c), i)
			}
			out = append(out, strings.Clone(strings.Join(cells, "\t"))) // the batch gives its memory back
		}
		batch.Release()
	}
	return out, res.Vectorized, nil
}

// cell spells a value as the wire does, lists aside.
func cell(a arrow.Array, i int) string {
	if a.IsNull(i) {
		return Null
	}
	switch a := a.(type) {
	case *array.Null:
		return Null
	case *array.String:
		return strings.Clone(a.Value(i)) // the batch goes back to the pool
	case *array.Binary:
		return string(a.Value(i))
	case *array.Boolean:
		if a.Value(i) {
			return "1"
		}
		return "0"
	case *array.Decimal128:
		return fixed(a.Value(i).BigInt(), a.DataType().(*arrow.Decimal128Type).Scale) //nolint:errcheck // the array's own type
	case *array.Decimal256:
		return fixed(a.Value(i).BigInt(), a.DataType().(*arrow.Decimal256Type).Scale) //nolint:errcheck // the array's own type
	}
	return strings.Clone(a.ValueStr(i))
}

// fixed prints a decimal with all digits of its scale.
func fixed(n *big.Int, scale int32) string {
	return new(big.Rat).SetFrac(n, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil)).FloatString(int(scale))
}

// Case is a statement and its answer. Without ORDER BY the answer is a set.
type Case struct {
	Name, Text string
	Args       []any
	Want       []string
	RowEngine  bool // the row engine makes part of the answer
}

// Check asks each case at each door.
func (l *Lake) Check(t *testing.T, cases []Case) {
	t.Helper()
	for _, c := range cases {
		for _, d := range l.Doors() {
			got, err := d.Ask(context.Background(), c.Text, c.Args...)
			if err != nil {
				t.Errorf("%s (%s): %.500s: %v", c.Name, d.Name, c.Text, err)
				continue
			}
			want := slices.Clone(c.Want)
			if !strings.Contains(strings.ToUpper(c.Text), "ORDER BY") {
				slices.Sort(got)
				slices.Sort(want)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s (%s): %.500s\ngot  %.1000q\nwant %.1000q", c.Name, d.Name, c.Text, got, want)
			}
		}
		if _, vectorized, err := AskSession(context.Background(), l.Session, c.Text, c.Args...); err == nil && !vectorized && !c.RowEngine {
			t.Errorf("%s: %.500s runs row by row", c.Name, c.Text)
		}
	}
}

// Quiet silences what servers log about connections that tests break on purpose.
func Quiet() { logrus.SetLevel(logrus.FatalLevel) }

// Rows asks a session and returns the rows as testutil spells them, by column name.
func Rows(ctx context.Context, s *engine.Session, text string) (out []map[string]any, err error) {
	res, err := s.Query(ctx, text)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, res.Close()) }()
	for res.HasRows() {
		batch, err := res.Operator.Next(res.Context())
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		for i := range int(batch.NumRows()) {
			row := make(map[string]any, batch.NumCols())
			for c, info := range res.Columns {
				row[info.Name] = testutil.Spell(batch.Column(c), i)
			}
			out = append(out, row)
		}
		batch.Release()
	}
	return out, nil
}
