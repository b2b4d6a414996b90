package sql

import (
	"context"
	"strings"
	"testing"

	"github.com/lakesql/lakesql/engine"
	"github.com/lakesql/lakesql/server"
	"github.com/lakesql/lakesql/test/lakes"
)

// TestErrorsWhileCandidatesAreRead: what ends a statement before its first row is the client's error, not the end of the statement's context that follows from it.
func TestErrorsWhileCandidatesAreRead(t *testing.T) {
	l := lakes.Open(t, t.TempDir(), engine.Config{}).Serve(t, server.Options{})
	for _, text := range []string{"CREATE TABLE z (id BIGINT, n INT)", "INSERT INTO z VALUES (1,1), (2,2)", "CREATE INDEX ni ON z (n) USING BTREE"} {
		if _, err := l.Doors()[0].Ask(context.Background(), text); err != nil {
			t.Fatal(err)
		}
	}
	l.Set(t, "SET prefilter = 'index'")
	for _, d := range l.Doors() {
		_, err := d.Ask(context.Background(), "SELECT id FROM z WHERE n < 5 AND id + 9223372036854775807 > 0")
		if err == nil || !strings.Contains(err.Error(), "out of range") {
			t.Errorf("%s: %v", d.Name, err)
		}
	}
}
