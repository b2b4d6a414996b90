//go:build linux

package crash

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"go.uber.org/goleak"

	"github.com/lakesql/lakesql/engine"
	"github.com/lakesql/lakesql/internal/spawn"
	"github.com/lakesql/lakesql/server"
	"github.com/lakesql/lakesql/source"
	"github.com/lakesql/lakesql/source/lance"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/test/lakes"
)

// What a process of this test binary is to do, where it is a child.
const (
	envChild  = "LAKESQL_CRASH_CHILD" // serve: serve the folder; perform: run a statement and die at an operation; refused: write without rights
	envFolder = "LAKESQL_CRASH_FOLDER"
	envName   = "LAKESQL_CRASH_STATEMENT"
	envAt     = "LAKESQL_CRASH_AT"
	envAfter  = "LAKESQL_CRASH_AFTER"
)

func TestMain(m *testing.M) {
	lakes.Quiet()
	if kind := os.Getenv(envChild); kind != "" {
		if err := child(kind); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m, goleak.IgnoreCurrent())
}

func child(kind string) error {
	ctx := context.Background()
	local, err := object.OpenLocal(os.Getenv(envFolder), object.LocalOptions{})
	if err != nil {
		return err
	}
	faulty := object.NewFaulty(local, object.FaultyOptions{})
	e, err := engine.Open(ctx, engine.Config{Workers: 1, Catalogs: []source.Catalog{lance.Open("lake", faulty.WithFolders(), lance.Options{})}})
	if err != nil {
		return err
	}
	switch kind {
	case "perform":
		return performAndDie(e, faulty)
	case "refused":
		return runRefused(e, local)
	}
	srv, err := server.Start(ctx, e, server.Options{})
	if err != nil {
		return err
	}
	fmt.Println(srv.Addr())
	_, err = io.Copy(io.Discard, os.Stdin) // until the parent has enough
	return errors.Join(err, srv.Close(), e.Close())
}

// performAndDie runs a statement of the table; the process kills itself at one of its operations. Without that many operations it ends well.
func performAndDie(e *engine.Engine, faulty *object.Faulty) error {
	at, err := strconv.ParseInt(os.Getenv(envAt), 10, 64)
	if err != nil {
		return err
	}
	s := e.NewSession(engine.SessionOptions{Database: "lake"})
	if err := Run(s, "SELECT COUNT(*) FROM t"); err != nil {
		return err
	}
	faulty.Arm(object.FaultyOptions{FailAt: at, OnlyChanges: true, AfterEffect: os.Getenv(envAfter) != "", Instead: func() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL) }})
	for _, st := range statements {
		if st.name == os.Getenv(envName) {
			return Run(s, st.texts...)
		}
	}
	return fmt.Errorf("no statement %q", os.Getenv(envName))
}

// start starts a child.
func start(t *testing.T, kind, folder string, more ...string) (*exec.Cmd, io.WriteCloser, *bufio.Reader) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), envChild+"="+kind, envFolder+"="+folder), more...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // where the test failed before it had ended
	return cmd, in, bufio.NewReader(out)
}

// killed says that a process died of SIGKILL. Errors of others are the test's.
func killed(t *testing.T, err error) bool {
	t.Helper()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() && status.Signal() == syscall.SIGKILL {
			return true
		}
	}
	must(t, err)
	return false
}

// TestAProcessThatDies kills a process at an operation of a statement, after each of them in turn.
func TestAProcessThatDies(t *testing.T) {
	base := onDisk{dir: t.TempDir()}
	inSession(t, openLocal(t, base.dir), func(s *engine.Session) { must(t, Run(s, Base...)) })
	names := map[string]bool{"UPDATE": true, "DROP TABLE": true}
	for _, st := range statements {
		if !names[st.name] && (!everyOperation || st.wire || len(st.setup) > 0) {
			continue
		}
		t.Run(st.name, func(t *testing.T) {
			t.Parallel()
			c := &trial{statement: st, from: base, seen: make(map[string]int)}
			c.learn(t)
			for at := 0; c.killAt(t, at); at++ {
			}
			if c.seen["old"] == 0 || c.seen["new"] == 0 {
				t.Errorf("%v", c.seen)
			}
		})
	}
}

// killAt kills a process after an operation, or before the first one. It says whether the statement had so many.
func (c *trial) killAt(t *testing.T, at int) bool {
	t.Helper()
	local, ok := c.from.clone(t).(*object.Local)
	if !ok {
		t.Fatal("not on disk")
	}
	env := []string{envName + "=" + c.name, envAt + "=" + strconv.Itoa(max(at, 1)), envAfter + "=1"}
	if at == 0 {
		env[2] = envAfter + "="
	}
	cmd, _, _ := start(t, "perform", local.Root(), env...)
	err := cmd.Wait()
	if !killed(t, err) {
		return false
	}
	c.reopen(t, local, object.FaultyOptions{AfterEffect: true}, fmt.Sprintf("killed after operation %d", at), err)
	return true
}

// TestServersThatAreKilled lets clients of two servers write to one table; one server is killed while it works, again and again. What was acknowledged is there.
func TestServersThatAreKilled(t *testing.T) {
	dir := t.TempDir()
	inSession(t, openLocal(t, dir), func(s *engine.Session) { must(t, Run(s, Rivals...)) })
	var all []*Rival
	for n := range kills {
		var now []*Rival
		steady, in, addr := start(t, "serve", dir)
		victim, _, victimAddr := start(t, "serve", dir)
		now = append(now, connected(t, addr, len(all)+1, 2)...)
		now = append(now, connected(t, victimAddr, len(all)+3, 2)...)
		for _, r := range now[2:] {
			r.MayFail, r.Rounds = true, 1<<20
			r.Gone = func(err error) bool { var my *mysql.MySQLError; return !errors.As(err, &my) }
		}
		all = append(all, now...)
		g, ctx := spawn.WithContext(context.Background(), 0)
		g.Go("rivals", func() error { return Compete(ctx, now) })
		g.Go("kill", func() error {
			time.Sleep(time.Duration(100+rand.Intn(300)) * time.Millisecond)
			return victim.Process.Kill()
		})
		must(t, g.Wait())
		if !killed(t, victim.Wait()) {
			t.Error("the victim lives")
		}
		must(t, in.Close())
		must(t, steady.Wait())
		inSession(t, openLocal(t, dir), func(s *engine.Session) {
			if err := CheckRivals(context.Background(), asker(s), all); err != nil {
				t.Fatalf("after kill %d: %v", n+1, err)
			}
		})
	}
	acknowledged := 0
	for i, r := range all {
		for _, n := range r.Counted {
			if i%4 >= 2 { // of the servers that were killed
				acknowledged += n
			}
		}
	}
	if acknowledged == 0 {
		t.Error("no server that was killed had done anything")
	}
	must(t, Cleaned(openLocal(t, dir), "rivals"))
}

// connected makes rivals of connections to a child.
func connected(t *testing.T, from *bufio.Reader, first, n int) (out []*Rival) {
	t.Helper()
	addr, err := from.ReadString('\n')
	must(t, err)
	db, err := sql.Open("mysql", "root@tcp("+strings.TrimSpace(addr)+")/lake")
	must(t, err)
	t.Cleanup(func() { must(t, db.Close()) })
	for i := range n {
		conn, err := db.Conn(context.Background())
		must(t, err)
		t.Cleanup(func() { _ = conn.Close() }) // its server may be gone
		out = append(out, &Rival{Number: first + i, Seed: rand.Int63(), Rounds: rounds, Ask: func(ctx context.Context, text string) ([]string, error) {
			return lakes.AskConn(ctx, conn, text)
		}})
	}
	return out
}
