package crash

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/lakesql/lakesql/engine"
	"github.com/lakesql/lakesql/planner/gms/mysqlerr"
	"github.com/lakesql/lakesql/storage/object"
)

// statement is one thing that a client does, of one or more statements in one session, the last of which makes the change.
type statement struct {
	name  string
	setup []string // run before, without faults
	texts []string
	disk  bool // wants a store with folders; others run in memory
	wire  bool // over the protocol

	// steps says that the statement is more than one commit by its nature, each of which leaves every table's rows as they were or as they will be; indices, tags and
	// branches may be between.
	steps bool
	// next is what the next writer does; "" = an INSERT into t.
	next  string
	again string // works whatever became of the statement, and makes table w
}

var statements = []statement{
	{name: "CREATE TABLE", again: "CREATE TABLE IF NOT EXISTS w (id BIGINT PRIMARY KEY, n BIGINT)", texts: []string{"CREATE TABLE w (id BIGINT PRIMARY KEY, n BIGINT)"}},
	{name: "CREATE TABLE with an index", again: "CREATE TABLE IF NOT EXISTS w (id BIGINT PRIMARY KEY, n BIGINT)", texts: []string{"CREATE TABLE w (id BIGINT PRIMARY KEY, n BIGINT, INDEX by_n (n) USING BTREE)"}, steps: true},
	{name: "CREATE TABLE AS SELECT", again: "CREATE TABLE IF NOT EXISTS w AS SELECT id, n FROM t", texts: []string{"CREATE TABLE w AS SELECT id, n FROM t WHERE id > 2"}},
	{name: "CREATE TABLE LIKE", again: "CREATE TABLE IF NOT EXISTS w LIKE t", texts: []string{"CREATE TABLE w LIKE t"}},
	{name: "INSERT VALUES", texts: []string{"INSERT INTO t VALUES (9, 90, 'i', ['x'], '[1,1]'), (10, 100, 'j', NULL, NULL)"}},
	{name: "INSERT SELECT", texts: []string{"INSERT INTO t (id, n) SELECT id + 20, n FROM t WHERE id < 6"}},
	{name: "REPLACE", texts: []string{"REPLACE INTO t VALUES (1, 11, 'A', ['z'], NULL), (11, 110, 'k', NULL, NULL)"}},
	{name: "INSERT ON DUPLICATE KEY UPDATE", texts: []string{"INSERT INTO t (id, n) VALUES (3, 1), (12, 2) ON DUPLICATE KEY UPDATE n = n + VALUES(n)"}},
	{name: "INSERT IGNORE", texts: []string{"INSERT IGNORE INTO t (id, n) VALUES (3, 1), (12, 2)"}},
	{name: "UPDATE", texts: []string{"UPDATE t SET n = n + 1, labels = ['x','w'] WHERE array_has(labels, 'x') OR id = 3"}},
	{name: "UPDATE of all rows", texts: []string{"UPDATE t SET name = 'same'"}},
	{name: "UPDATE over a join", texts: []string{"UPDATE t JOIN u ON t.id = u.id SET t.n = t.n + u.n"}},
	{name: "DELETE", texts: []string{"DELETE FROM t WHERE id IN (1, 4, 7)"}},
	{name: "DELETE over a join", texts: []string{"DELETE t FROM t JOIN u ON t.id = u.id"}},
	{name: "DELETE of all rows", texts: []string{"DELETE FROM t"}},
	{name: "TRUNCATE", texts: []string{"TRUNCATE TABLE t"}},
	{name: "LOAD DATA", wire: true, texts: []string{"LOAD DATA LOCAL INFILE 'Reader::crash' INTO TABLE t FIELDS TERMINATED BY ',' (id, n, name)"}},
	{name: "ADD COLUMN", texts: []string{"ALTER TABLE t ADD COLUMN extra BIGINT"}},
	{name: "ADD COLUMN with values", texts: []string{"ALTER TABLE t ADD COLUMN twice BIGINT DEFAULT (n * 2), ADD COLUMN word VARCHAR(5) NOT NULL DEFAULT 'w'"}},
	{name: "DROP COLUMN", texts: []string{"ALTER TABLE t DROP COLUMN name"}},
	{name: "ALTER TABLE of several kinds", texts: []string{"ALTER TABLE t DROP INDEX by_label, DROP COLUMN name, ADD COLUMN extra BIGINT DEFAULT 3, MODIFY COLUMN n VARCHAR(30), RENAME COLUMN v TO w, ADD INDEX again (labels)"}},
	{name: "INSERT into a branch", texts: []string{"INSERT INTO `t@side` (id, n) VALUES (50, 5)"}},
	{name: "RENAME COLUMN", texts: []string{"ALTER TABLE t RENAME COLUMN name TO title"}},
	{name: "MODIFY COLUMN", texts: []string{"ALTER TABLE t MODIFY COLUMN n VARCHAR(30)"}},
	{name: "CHANGE COLUMN", texts: []string{"ALTER TABLE t CHANGE COLUMN n m BIGINT DEFAULT 5"}},
	{name: "SET DEFAULT", texts: []string{"ALTER TABLE t ALTER COLUMN n SET DEFAULT 5"}},
	{name: "DROP DEFAULT", texts: []string{"ALTER TABLE t ALTER COLUMN name DROP DEFAULT"}},
	{name: "DROP PRIMARY KEY", texts: []string{"ALTER TABLE t DROP PRIMARY KEY"}},
	{name: "ADD PRIMARY KEY", setup: []string{"ALTER TABLE t DROP PRIMARY KEY"}, texts: []string{"ALTER TABLE t ADD PRIMARY KEY (id, n)"}, next: "INSERT INTO t (id, n) VALUES (77, 7)"},
	{name: "RENAME TABLE", disk: true, setup: []string{"CALL lakesql.delete_branch('t', 'side')"}, texts: []string{"RENAME TABLE t TO w"}, next: "INSERT INTO u (id) VALUES (77)"},
	{name: "ALTER TABLE RENAME", disk: true, setup: []string{"CALL lakesql.delete_branch('t', 'side')"}, texts: []string{"ALTER TABLE t RENAME TO w"}, next: "INSERT INTO u (id) VALUES (77)"},
	{name: "DROP TABLE", disk: true, texts: []string{"DROP TABLE t"}, next: "INSERT INTO u (id) VALUES (77)"},
	{name: "DROP TABLE without folders", texts: []string{"DROP TABLE t"}, next: "INSERT INTO u (id) VALUES (77)", steps: true},
	{name: "CREATE INDEX LABEL_LIST", setup: []string{"DROP INDEX by_label ON t"}, texts: []string{"CREATE INDEX again ON t (labels) USING LABEL_LIST"}},
	{name: "CREATE INDEX BITMAP", texts: []string{"CREATE INDEX by_n ON t (n) USING BITMAP"}},
	{name: "CREATE INDEX BTREE", texts: []string{"CREATE INDEX by_name ON t (name) USING BTREE"}},
	{name: "CREATE INDEX ZONEMAP", texts: []string{"ALTER TABLE t ADD INDEX by_n (n) USING ZONEMAP WITH (rows_per_zone = 2)"}},
	{name: "CREATE INDEX IVF_FLAT", texts: []string{"CREATE VECTOR INDEX by_v ON t (v) USING IVF_FLAT WITH (num_partitions = 2)"}},
	{name: "DROP INDEX", texts: []string{"DROP INDEX by_label ON t"}},
	{name: "OPTIMIZE TABLE", texts: []string{"OPTIMIZE TABLE t, u"}, steps: true},
	{name: "create_tag", texts: []string{"CALL lakesql.create_tag('t', 'second')"}},
	{name: "update_tag", texts: []string{"CALL lakesql.update_tag('t', 'first', 3)"}},
	{name: "delete_tag", texts: []string{"CALL lakesql.delete_tag('t', 'first')"}},
	{name: "create_branch", texts: []string{"CALL lakesql.create_branch('t', 'other', 2)"}},
	{name: "create_branch on disk", disk: true, texts: []string{"CALL lakesql.create_branch('t', 'other', 2)"}},
	{name: "delete_branch", texts: []string{"CALL lakesql.delete_branch('t', 'side')"}, steps: true},
	{name: "delete_branch on disk", disk: true, texts: []string{"CALL lakesql.delete_branch('t', 'side')"}, steps: true},
	{name: "restore", texts: []string{"CALL lakesql.restore('t', 2)"}},
	{name: "cleanup", disk: true, texts: []string{"CALL lakesql.cleanup('t', '0')"}},
	{name: "compact", texts: []string{"CALL lakesql.compact('t')"}},
	{name: "optimize_indices", texts: []string{"CALL lakesql.optimize_indices('t', 1)"}, steps: true},
	{name: "COMMIT", texts: []string{"BEGIN", "INSERT INTO t (id, n) VALUES (13, 1), (14, 2)", "UPDATE t SET n = 0 WHERE id IN (1, 13)", "DELETE FROM t WHERE id IN (3, 14)", "COMMIT"}},
	{name: "ROLLBACK", texts: []string{"BEGIN", "INSERT INTO t (id, n) VALUES (13, 1)", "DELETE FROM t WHERE id = 1", "ROLLBACK"}},
	{name: "autocommit off", texts: []string{"SET autocommit = 0", "DELETE FROM t WHERE id = 1", "REPLACE INTO t (id, n) VALUES (3, 33)", "COMMIT"}},
}

// TestEveryStatementAtEveryOperation is the table of statements against the ways in which a store fails.
func TestEveryStatementAtEveryOperation(t *testing.T) {
	memory := object.NewMemory("lake")
	inSession(t, memory, func(s *engine.Session) { must(t, Run(s, Base...)) })
	disk := onDisk{dir: t.TempDir()}
	inSession(t, openLocal(t, disk.dir), func(s *engine.Session) { must(t, Run(s, Base...)) })
	for _, st := range statements {
		t.Run(st.name, func(t *testing.T) {
			t.Parallel()
			from := medium(inMemory{memory})
			if st.disk {
				from = disk
			}
			c := &trial{statement: st, from: prepared(t, from, st.setup)}
			c.run(t)
		})
	}
}

// prepared is the medium after more statements.
func prepared(t *testing.T, from medium, setup []string) medium {
	t.Helper()
	if len(setup) == 0 {
		return from
	}
	store := from.clone(t)
	inSession(t, store, func(s *engine.Session) { must(t, Run(s, setup...)) })
	switch s := store.(type) {
	case *object.Memory:
		return inMemory{s}
	case *object.Local:
		return onDisk{s.Root()}
	}
	t.Fatalf("a store of type %T", store)
	return nil
}

// trial is one statement under all faults.
type trial struct {
	statement
	from     medium
	old, new string
	seen     map[string]int

	operations int64 // that the statement made
}

// learn finds out the state before and after the statement.
func (c *trial) learn(t *testing.T) {
	t.Helper()
	var err error
	c.old, err = state(t, c.from.clone(t))
	must(t, err)
	store := c.from.clone(t)
	must(t, c.perform(t, object.NewFaulty(store, object.FaultyOptions{}), object.FaultyOptions{}))
	c.new, err = state(t, store)
	must(t, err)
}

func (c *trial) run(t *testing.T) {
	t.Helper()
	c.learn(t)
	c.seen = make(map[string]int)
	modes := []object.FaultyOptions{{}, {AfterEffect: true}, {Crash: true}, {AfterEffect: true, Crash: true}}
	if everyOperation { // looking for what became of a commit fails, too
		modes = append(modes, object.FaultyOptions{Failures: 2}, object.FaultyOptions{AfterEffect: true, Failures: 2}, object.FaultyOptions{AfterEffect: true, Failures: 5})
	}
	for _, mode := range modes {
		mode.OnlyChanges = !everyOperation
		for n := int64(1); ; n++ {
			mode.FailAt = n
			if !c.at(t, mode) {
				break
			}
		}
	}
	if c.seen["old"] == 0 || c.seen["new"] == 0 {
		t.Errorf("%v", c.seen)
	}
}

// perform runs the statements over a store which fails from the last one on, or from BEGIN on, and says what the first failure was.
func (c *trial) perform(t *testing.T, store *object.Faulty, mode object.FaultyOptions) (err error) {
	t.Helper()
	e := open(t, store)
	defer func() { must(t, e.Close()) }()
	if c.wire {
		return c.overTheWire(t, e, store, mode)
	}
	s := e.NewSession(engine.SessionOptions{Database: "lake"})
	_, warm := Ask(s, "SELECT COUNT(*) FROM t")
	must(t, warm)
	store.Arm(mode)
	for _, text := range c.texts {
		if _, err = Ask(s, text); err != nil {
			break
		}
	}
	c.operations = store.Operations()
	if err != nil {
		checkError(t, err)
		if !mode.Crash {
			store.Arm(object.FaultyOptions{})
			usable(t, s)
		}
	}
	s.Close()
	if used := e.Budget().Used(); used != 0 {
		t.Errorf("%d bytes are still reserved", used)
	}
	return err
}

// checkError wants a number of MySQL's, and what failed and where.
func checkError(t *testing.T, err error) {
	t.Helper()
	my := mysqlerr.Convert(err)
	if my.Num != 1815 || !strings.Contains(my.Message, "injected fault") || !strings.Contains(my.Message, "lake") && !strings.Contains(my.Message, ".lance") {
		t.Errorf("%d %s", my.Num, my.Message)
	}
}

// usable says that the session goes on after an error.
func usable(t *testing.T, s *engine.Session) {
	t.Helper()
	if got, err := Ask(s, "SELECT COUNT(*) FROM u"); err != nil || got[0] == "0" {
		t.Errorf("the session afterwards: %v, %v", got, err)
	}
	if got, err := Ask(s, "ROLLBACK"); err != nil {
		t.Errorf("the session afterwards: %v, %v", got, err)
	}
}

// at runs the statement with one fault. It says whether the fault was met.
func (c *trial) at(t *testing.T, mode object.FaultyOptions) bool {
	t.Helper()
	store := c.from.clone(t)
	faulty := object.NewFaulty(store, object.FaultyOptions{})
	err := c.perform(t, faulty, mode)
	what := fmt.Sprintf("operation %d of %d, %+v: %v", mode.FailAt, c.operations, mode, err)
	if c.operations < mode.FailAt {
		if err != nil {
			t.Fatalf("%s: without a fault", what)
		}
		return false
	}
	c.reopen(t, store, mode, what, err)
	return true
}

// reopen looks at what a failed statement, or a process that died, has left, lets the next writer work and cleans up.
func (c *trial) reopen(t *testing.T, store object.Store, mode object.FaultyOptions, what string, err error) {
	t.Helper()
	inSession(t, store, func(s *engine.Session) {
		now, err2 := State(s, store)
		if err2 != nil {
			t.Fatalf("%s: %v", what, err2)
		}
		c.judge(t, mode, what, now, err)
		c.goOn(t, s, what)
	})
	for _, table := range []string{"t", "w"} {
		if err := Cleaned(store, table); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	if everyOperation {
		if _, err := state(t, store); err != nil {
			t.Fatalf("%s: after clean-up: %v", what, err)
		}
	}
}

// judge wants the old state after an error and the new one after success. Where an answer got lost it may be either.
func (c *trial) judge(t *testing.T, mode object.FaultyOptions, what, now string, err error) {
	t.Helper()
	switch {
	case now == c.new && (err == nil || mode.AfterEffect || c.steps || c.old == c.new):
		c.seen["new"]++
	case now == c.old && err != nil:
		c.seen["old"]++
	case c.steps && err != nil && slices.Contains([]string{rowsOf(c.old), rowsOf(c.new)}, rowsOf(now)):
		c.seen["between"]++
	default:
		t.Fatalf("%s: neither old nor new:\nold: %s\nnew: %s", what, difference(c.old, now), difference(c.new, now))
	}
	if c.old == c.new {
		c.seen["old"]++
	}
}

// rowsOf is a state without what it says of indices, tags and branches.
func rowsOf(state string) string {
	var out []string
	for _, line := range strings.Split(state, "\n") {
		if strings.HasPrefix(line, "SELECT table_name") {
			break
		}
		if !strings.HasPrefix(line, "  KEY ") && !strings.HasPrefix(line, "tag ") && !strings.HasPrefix(line, "branch ") {
			out = append(out, strings.TrimSuffix(line, ","))
		}
	}
	return strings.Join(out, "\n")
}

// difference lists the lines of two states that the other lacks.
func difference(a, b string) string {
	var out []string
	for _, side := range []struct{ sign, is, other string }{{"-", a, b}, {"+", b, a}} {
		other := strings.Split(side.other, "\n")
		for _, line := range strings.Split(side.is, "\n") {
			if !slices.Contains(other, line) {
				out = append(out, side.sign+line)
			}
		}
	}
	return strings.Join(out, "\n")
}

// goOn lets the next writer work.
func (c *trial) goOn(t *testing.T, s *engine.Session, what string) {
	t.Helper()
	next := c.next
	if next == "" {
		next = "INSERT INTO t (id) VALUES (77)"
	}
	if _, err := Ask(s, next); err != nil {
		t.Fatalf("%s: the next writer: %v", what, err)
	}
	table := strings.Fields(next)[2]
	if got, err := Ask(s, "SELECT COUNT(*) FROM "+table+" WHERE id = 77"); err != nil || got[0] != "1" {
		t.Fatalf("%s: the next writer's row: %v %v", what, got, err)
	}
	if c.again != "" {
		if _, err := Ask(s, c.again); err != nil {
			t.Fatalf("%s: once more: %v", what, err)
		}
		if got, err := Ask(s, "SELECT COUNT(*) FROM w"); err != nil {
			t.Fatalf("%s: once more: %v %v", what, got, err)
		}
	}
}

// rows is the file that LOAD DATA asks for.
const rows = "15,150,o\n16,160,p\n"

func (c *trial) overTheWire(t *testing.T, e *engine.Engine, store *object.Faulty, mode object.FaultyOptions) error {
	t.Helper()
	mysql.RegisterReaderHandler("crash", func() io.Reader { return strings.NewReader(rows) })
	db, done := serve(t, e)
	defer done()
	for _, text := range []string{"SET GLOBAL local_infile = 1", "SELECT COUNT(*) FROM t"} {
		_, err := db.ExecContext(context.Background(), text)
		must(t, err)
	}
	store.Arm(mode)
	for _, text := range c.texts {
		_, err := db.ExecContext(context.Background(), text)
		var my *mysql.MySQLError
		if err != nil && (!errors.As(err, &my) || my.Number != 1815) {
			t.Errorf("%s: %v", text, err)
		}
		if err != nil {
			c.operations = store.Operations()
			return err
		}
	}
	c.operations = store.Operations()
	return nil
}
