package sql

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lakesql/lakesql/engine"
	"github.com/lakesql/lakesql/server"
	"github.com/lakesql/lakesql/test/lakes"
	"github.com/lakesql/lakesql/upkeep"
)

// until asks again until the answer is right.
func until(t *testing.T, c *sql.Conn, text string, right func(string) bool) string {
	t.Helper()
	for begun := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		got := ask(t, c, text)
		if right(got) {
			return got
		}
		if time.Since(begun) > 20*time.Second {
			t.Fatalf("%s: still\n%s", text, got)
		}
	}
}

// labelled fills lake.t with rows in many fragments, of which an index covers the first.
func labelled(t *testing.T, c *sql.Conn, fragments int) {
	t.Helper()
	perform(t, c, "CREATE TABLE t (id BIGINT, labels LIST<VARCHAR>)")
	insert := func(from, n int) {
		t.Helper()
		values := make([]string, n)
		for i := range values {
			values[i] = fmt.Sprintf("(%d, ['l%d', 'all'])", from+i, (from+i)%5)
		}
		perform(t, c, "INSERT INTO t VALUES "+strings.Join(values, ","))
	}
	insert(0, 200)
	perform(t, c, "CREATE INDEX by_label ON t (labels) USING LABEL_LIST")
	for i := range fragments {
		insert(200+20*i, 20)
	}
}

// TestUpkeepBesideStatements: a server that maintains its tables shows what it does, and gives way when it is told to.
func TestUpkeepBesideStatements(t *testing.T) {
	o := upkeep.Defaults()
	o.Interval, o.Jitter, o.BackOffMax = time.Second, 0, time.Hour
	o.Compaction.SmallFragments = 4
	o.Cleanup.Off = true
	o.BytesPerSecond = 6000 // jobs take seconds, so that they can be looked at
	l := lakes.Open(t, t.TempDir(), engine.Config{Upkeep: &o}).Serve(t, server.Options{})
	a, b := l.Connect(t, true), l.Connect(t, true)
	if got := ask(t, a, "CALL lakesql.upkeep('off')"); got != "off" {
		t.Errorf("off: %s", got)
	}
	labelled(t, a, 6)
	count := "SELECT COUNT(*), SUM(array_has(labels, 'l1')) FROM t"
	want := ask(t, a, count)
	// What it has done before is off here already; nothing begins.
	if got := ask(t, a, "SELECT table_name, job, state, next_run FROM lakesql.upkeep"); got != "" && !strings.HasPrefix(got, "t\t"+lakes.Null+"\toff") {
		t.Errorf("lakesql.upkeep: %s", got)
	}
	perform(t, a, "CALL lakesql.upkeep('on')")
	got := until(t, b, "SHOW PROCESSLIST", func(s string) bool { return strings.Contains(s, "upkeep of t") && strings.Contains(s, "rewrite rows") })
	fields := strings.Split(lineWith(got, "upkeep of t"), "\t")
	if len(fields) != 8 || fields[1] != "upkeep" || fields[3] != "lake" || fields[4] != "Daemon" || fields[7] != "upkeep of t: compact 6 fragments" {
		t.Fatalf("the job in the process list: %q", fields)
	}
	if line := ask(t, b, "SELECT user, command, state, info FROM information_schema.processlist WHERE id = "+fields[0]); !strings.HasPrefix(line, "upkeep\tDaemon\t") {
		t.Errorf("information_schema.processlist: %q", line)
	}
	if row := ask(t, b, "SELECT job, state FROM lakesql.upkeep"); row != "compact 6 fragments\trunning" {
		t.Errorf("lakesql.upkeep: %q", row)
	}
	perform(t, b, "KILL "+fields[0])
	stopped := until(t, b, "SELECT job, state, last_error, next_run IS NULL FROM lakesql.upkeep", func(s string) bool { return strings.Contains(s, "stopped") })
	if !strings.HasPrefix(stopped, "compact 6 fragments\tstopped\tstopped by") {
		t.Errorf("after KILL: %q", stopped)
	}
	if _, err := b.ExecContext(context.Background(), "KILL "+fields[0]); codeOf(err) != 1094 {
		t.Errorf("killed twice: %v", err)
	}
	if got := ask(t, a, "SELECT COUNT(*) FROM lakesql.indices WHERE uncovered_rows = 120"); got != "1" {
		t.Error("the job that was killed changed the table")
	}
	perform(t, b, "CALL lakesql.upkeep('run', 'lake.t')")
	until(t, b, "SELECT uncovered_rows FROM lakesql.indices", func(s string) bool { return s == "0" })
	if got := ask(t, a, count); got != want {
		t.Errorf("%s: %s, want %s", count, got, want)
	}
	if plan := ask(t, a, "EXPLAIN SELECT id FROM t WHERE array_has(labels, 'l1')"); !strings.Contains(plan, "by_label") {
		t.Errorf("the plan does without the index:\n%s", plan)
	}
	for text, code := range map[string]uint16{
		"CALL lakesql.upkeep()": 1210, "CALL lakesql.upkeep('stop')": 1210, "CALL lakesql.upkeep('run', 'nothing')": 1210, "CALL lakesql.upkeep('run', 'lake.u')": 1146,
	} {
		if _, err := a.ExecContext(context.Background(), text); codeOf(err) != code {
			t.Errorf("%s: %v, want error %d", text, err, code)
		}
	}
	without := lakes.Open(t, t.TempDir(), engine.Config{}).Serve(t, server.Options{}).Connect(t, true)
	if _, err := without.ExecContext(context.Background(), "CALL lakesql.upkeep('on')"); codeOf(err) != 1235 {
		t.Errorf("a server without upkeep: %v", err)
	}
	if rows := ask(t, without, "SELECT * FROM lakesql.upkeep"); rows != "" {
		t.Errorf("a server without upkeep tells of %s", rows)
	}
}

func lineWith(text, part string) string {
	for _, l := range strings.Split(text, "\n") {
		if strings.Contains(l, part) {
			return l
		}
	}
	return ""
}

// TestStagesOfStatementsInTheProcessList: what builds an index tells how far it is.
func TestStagesOfStatementsInTheProcessList(t *testing.T) {
	l, _ := writing(t)
	a, b := l.Connect(t, true), l.Connect(t, true)
	perform(t, a, "CREATE TABLE n (x BIGINT)")
	perform(t, a, "INSERT INTO n VALUES (1),(2),(3),(4),(5),(6),(7),(8),(9),(10)")
	perform(t, a, "CREATE TABLE t AS SELECT a.x * 1000 + b.x AS id, ['x', 'y'] AS labels FROM n a, n b, n c, n d, n e")
	ended := make(chan error, 1)
	seen := make(map[string]bool)
	go func() {
		for _, text := range []string{"CREATE INDEX l ON t (labels) USING LABEL_LIST", "INSERT INTO t SELECT id, labels FROM t", "OPTIMIZE TABLE t", "CREATE INDEX i ON t (id) USING BTREE"} {
			rows, err := a.QueryContext(context.Background(), text)
			if err == nil {
				err = rows.Close()
			}
			if err != nil {
				ended <- fmt.Errorf("%s: %w", text, err)
				return
			}
		}
		ended <- nil
	}()
	for running := true; running; {
		select {
		case err := <-ended:
			if running = false; err != nil {
				t.Error(err)
			}
		default:
			for _, state := range strings.Split(ask(t, b, "SELECT state FROM information_schema.processlist WHERE id <> CONNECTION_ID() AND command = 'Query'"), "\n") {
				stage, _, _ := strings.Cut(state, ":")
				seen[stage] = true
			}
		}
	}
	if !seen["read rows"] && !seen["write index"] && !seen["rewrite rows"] {
		t.Errorf("states: %v", seen)
	}
	if state := ask(t, b, "SELECT state FROM information_schema.processlist WHERE command = 'Sleep' AND state <> ''"); state != "" {
		t.Errorf("a connection that does nothing says %q", state)
	}
}
