package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/exec"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/planner/gms/mysqlerr"
	"github.com/lakesql/lakesql/source"
	"github.com/lakesql/lakesql/source/memory"
)

// moving is a catalog whose tables a and b have a new version, of one row that is its number, after each commit.
type moving struct {
	t       *testing.T
	version atomic.Uint64
	broken  error // of table b
}

func (m *moving) Name() string                                 { return "lake" }
func (m *moving) Kind() string                                 { return "moving" }
func (m *moving) Close() error                                 { return nil }
func (m *moving) TableNames(context.Context) ([]string, error) { return []string{"a", "b"}, nil }
func (m *moving) Table(_ context.Context, name string, asOf source.AsOf) (exec.Table, error) {
	if name == "b" && m.broken != nil {
		return nil, m.broken
	}
	n := m.version.Load()
	if !asOf.IsLatest() {
		n = asOf.Version
	}
	return version(n, table(m.t, name, fmt.Sprintf(`[{"v":%d}]`, n), field("v", arrow.PrimitiveTypes.Int64))), nil
}

func openMoving(t *testing.T) (*moving, *Session) {
	t.Helper()
	m := &moving{t: t}
	m.version.Store(1)
	e, err := Open(context.Background(), Config{Catalogs: []source.Catalog{m}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	s := e.NewSession(SessionOptions{Database: "lake"})
	t.Cleanup(s.Close)
	return m, s
}

// TestTransactionsKeepWhatTheyRead runs statements; "commit!" is another client's, "a" and "b" read the tables, and what they answer is written after "=".
func TestTransactionsKeepWhatTheyRead(t *testing.T) {
	const repeatable = "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ"
	for name, steps := range map[string][]string{
		"every statement reads anew":                         {"a=1", "commit!", "a=2"},
		"READ COMMITTED reads anew in a transaction":         {"BEGIN", "a=1", "commit!", "a=2", "COMMIT"},
		"a consistent snapshot holds every table":            {"START TRANSACTION WITH CONSISTENT SNAPSHOT", "commit!", "a=1", "commit!", "b=1", "a=1", "COMMIT", "a=3"},
		"also with other characteristics":                    {"START TRANSACTION READ ONLY, WITH CONSISTENT SNAPSHOT", "commit!", "a=1", "ROLLBACK", "a=2"},
		"comments and case do not matter":                    {"start /* now */ transaction with consistent snapshot , read write", "commit!", "a=1", "COMMIT WORK", "a=2"},
		"a second snapshot replaces the first":               {"START TRANSACTION WITH CONSISTENT SNAPSHOT", "commit!", "a=1", "START TRANSACTION WITH CONSISTENT SNAPSHOT", "commit!", "a=2"},
		"REPEATABLE READ holds from the first read":          {repeatable, "BEGIN", "commit!", "a=2", "commit!", "a=2", "b=3", "commit!", "b=3", "COMMIT", "a=4"},
		"ROLLBACK ends it":                                   {repeatable, "BEGIN", "a=1", "commit!", "ROLLBACK", "a=2"},
		"SERIALIZABLE holds, too":                            {"SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE", "BEGIN", "a=1", "commit!", "a=1", "COMMIT"},
		"the variable's names are one":                       {"SET tx_isolation = 'REPEATABLE-READ'", "BEGIN", "a=1", "commit!", "a=1", "COMMIT"},
		"the level is that of BEGIN":                         {"BEGIN", repeatable, "a=1", "commit!", "a=2", "COMMIT", "BEGIN", "a=2", "commit!", "a=2", "COMMIT"},
		"autocommit = 0 holds until COMMIT":                  {"SET autocommit = 0", repeatable, "a=1", "commit!", "a=1", "COMMIT", "a=2", "commit!", "a=2", "ROLLBACK", "a=3"},
		"switching autocommit on commits":                    {repeatable, "SET autocommit = 0", "a=1", "commit!", "SET autocommit = 1", "a=2", "commit!", "a=3"},
		"SET TRANSACTION is for one transaction":             {"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", "BEGIN", "a=1", "commit!", "a=1", "COMMIT", "BEGIN", "a=2", "commit!", "a=3", "COMMIT"},
		"SET TRANSACTION is for the next statement, outside": {"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", "a=1", "BEGIN", "a=1", "commit!", "a=2", "COMMIT"},
		"a version that is asked for is that version":        {"commit!", "START TRANSACTION WITH CONSISTENT SNAPSHOT", "commit!", "a AS OF 1=1", "a AS OF 3=3", "a=2", "COMMIT"},
		"an error does not end a transaction":                {"START TRANSACTION WITH CONSISTENT SNAPSHOT", "commit!", "a=1", "missing!", "a=1", "COMMIT", "a=2"},
		"an error outside is no transaction":                 {repeatable, "missing!", "a=1", "commit!", "a=2"},
		"savepoints keep what was read":                      {repeatable, "BEGIN", "a=1", "SAVEPOINT s", "commit!", "ROLLBACK TO s", "a=1", "RELEASE SAVEPOINT s", "COMMIT"},
	} {
		t.Run(name, func(t *testing.T) {
			m, s := openMoving(t)
			for _, step := range steps {
				table, want, isRead := strings.Cut(step, "=")
				switch {
				case step == "commit!":
					m.version.Add(1)
				case step == "missing!":
					if failure(s, "SELECT * FROM missing") == nil {
						t.Fatal("a missing table is no error")
					}
				case isRead && !strings.HasPrefix(step, "SET"):
					if got, _ := run(t, s, "SELECT v FROM "+table); !slices.Equal(got, []string{want}) {
						t.Fatalf("%s of %q: %v", step, steps, got)
					}
				default:
					run(t, s, step)
				}
			}
		})
	}
}

func TestASnapshotOfADamagedLake(t *testing.T) {
	m, s := openMoving(t)
	m.broken = errs.New(errs.ErrCorrupt, "table b")
	run(t, s, "START TRANSACTION WITH CONSISTENT SNAPSHOT")
	m.version.Add(1)
	if got, _ := run(t, s, "SELECT v FROM a"); !slices.Equal(got, []string{"1"}) {
		t.Errorf("got %v", got)
	}
	m.broken = errs.New(errs.ErrIO, "timeout")
	if err := failure(s, "START TRANSACTION WITH CONSISTENT SNAPSHOT"); !errors.Is(err, errs.ErrIO) {
		t.Errorf("a store that does not answer: %v", err)
	}
}

func TestTransactionCharacteristics(t *testing.T) {
	_, s := openMoving(t)
	for _, c := range []struct {
		before []string
		text   string
		want   int
	}{
		{[]string{"START TRANSACTION READ ONLY"}, "INSERT INTO a VALUES (1)", 1792},
		{[]string{"START TRANSACTION READ ONLY, WITH CONSISTENT SNAPSHOT"}, "CREATE INDEX i ON a (v) USING BITMAP", 1792},
		{[]string{"SET SESSION TRANSACTION READ ONLY"}, "DELETE FROM a", 1792},
		{[]string{"SET SESSION TRANSACTION READ ONLY", "START TRANSACTION READ WRITE"}, "DELETE FROM a", 1235},
		{[]string{"SET SESSION TRANSACTION READ WRITE", "SET TRANSACTION READ ONLY", "BEGIN"}, "UPDATE a SET v = 1", 1792},
		{[]string{"BEGIN", "SAVEPOINT s", "ROLLBACK TO S"}, "ROLLBACK TO r", 1305},
		{[]string{"BEGIN", "SAVEPOINT r", "SAVEPOINT s", "ROLLBACK TO r"}, "RELEASE SAVEPOINT s", 1305},
		{[]string{"BEGIN"}, "SET TRANSACTION ISOLATION LEVEL READ COMMITTED", 1568},
		{nil, "START TRANSACTION READ ONLY, READ WRITE", 1064},
		{nil, "START TRANSACTION WITH SNAPSHOT", 1064},
	} {
		run(t, s, "ROLLBACK")
		for _, text := range c.before {
			run(t, s, text)
		}
		if err := mysqlerr.Convert(failure(s, c.text)); err == nil || err.Num != c.want {
			t.Errorf("%q after %q: %v, want %d", c.text, c.before, err, c.want)
		}
	}
	run(t, s, "ROLLBACK")
	if tx := s.Base().GetTransaction(); tx != nil {
		t.Errorf("%v is left", tx)
	}
}

// TestSystemTablesTellOfNow: lakesql's own tables are made anew in a transaction, too.
func TestSystemTablesTellOfNow(t *testing.T) {
	_, s := openMoving(t)
	run(t, s, "START TRANSACTION WITH CONSISTENT SNAPSHOT")
	count := "SELECT COUNT(*) FROM lakesql.catalogs"
	if got, _ := run(t, s, count); !slices.Equal(got, []string{"1"}) {
		t.Errorf("got %v", got)
	}
	if err := s.engine.Provider().Add(memory.NewCatalog("more")); err != nil {
		t.Fatal(err)
	}
	if got, _ := run(t, s, count); !slices.Equal(got, []string{"2"}) {
		t.Errorf("got %v", got)
	}
}
