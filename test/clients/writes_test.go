//go:build clients

package clients

import (
	"net"
	"os/exec"
	"testing"

	"github.com/lakesql/lakesql/engine"
	"github.com/lakesql/lakesql/server"
	"github.com/lakesql/lakesql/test/lakes"
)

// TestPythonWrites: PyMySQL and SQLAlchemy turn autocommit off by themselves; what they roll back is gone and conflicts are theirs to handle.
func TestPythonWrites(t *testing.T) {
	l := lakes.Open(t, t.TempDir(), engine.Config{}).Serve(t, server.Options{})
	_, port, err := net.SplitHostPort(l.Addr())
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(installed(t, "venv", "bin", "python"), "writes.py", port).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	want := `many 5
after rollback (0,)
update [2, 0]
delete 1
((0, 'x', '["a"]'), (1, 'x', '["a"]'), (2, 'n2', '["a"]'), (3, 'n3', '["a"]'))
IntegrityError 1048 Column 'id' cannot be null
DataError 1406 Data too long for column 'name' at row 1
flushed 4
rolled back 0
p2 3.00 2026-11-30 01:02:03 True {'k': [2]}
update 2
[(0, 'p0', '1.00'), (1, 'up', '2.50'), (2, 'changed', '3.00')]
delete 2
OperationalError 1213
A
C
`
	if string(out) != want {
		t.Errorf("got\n%swant\n%s", out, want)
	}
}
