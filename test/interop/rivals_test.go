//go:build interop

package interop

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/go-sql-driver/mysql"

	"github.com/lakesql/lakesql/engine"
	"github.com/lakesql/lakesql/test/crash"
	"github.com/lakesql/lakesql/test/lakes"
)

// rival lets the real engine do what a statement of crash.Rival says.
func rival(e *Engine, path string) crash.Asker {
	return func(_ context.Context, text string) ([]string, error) {
		var id, n int
		op, r := "compact", Request{"path": path}
		if _, err := fmt.Sscanf(text, "UPDATE rivals SET n = n + 1 WHERE id = %d", &id); err == nil {
			op, r["values"], r["filter"] = "update", map[string]string{"n": "n + 1"}, fmt.Sprintf("id = %d", id)
		} else if _, err := fmt.Sscanf(text, "DELETE FROM rivals WHERE id = %d", &id); err == nil {
			op, r["filter"] = "delete", fmt.Sprintf("id = %d", id)
		} else if _, err := fmt.Sscanf(text, "INSERT INTO rivals VALUES (%d, %d,", &id, &n); err == nil {
			op, r["in"], r["cast"] = "append", e.Send(rivalRow(id, n)), true
		} else if text != "OPTIMIZE TABLE rivals" {
			return nil, fmt.Errorf("the real engine does not know %q", text)
		}
		_, err := e.Try(op, r)
		if err != nil && strings.Contains(strings.ToLower(err.Error()), "conflict") {
			return nil, &mysql.MySQLError{Number: 1213, Message: err.Error()}
		}
		return nil, err
	}
}

func rivalRow(id, n int) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: "n", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		{Name: "labels", Type: arrow.ListOf(arrow.BinaryTypes.String), Nullable: true},
	}, nil))
	defer b.Release()
	b.Field(0).(*array.Int64Builder).Append(int64(id))
	b.Field(1).(*array.Int64Builder).Append(int64(n))
	list := b.Field(2).(*array.ListBuilder)
	list.Append(true)
	list.ValueBuilder().(*array.StringBuilder).AppendValues([]string{"own", "theirs"}, nil)
	return b.NewRecordBatch()
}

// TestRivalsOfBothKinds: sessions of two engines of ours and two processes of the real engine count up, insert, delete, index and compact one table; nothing that any
// of them was told is lost, and both read the same.
func TestRivalsOfBothKinds(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	path := filepath.Join(dir, "rivals.lance")
	lake := lakes.Open(t, dir, engine.Config{})
	if err := crash.Run(lake.Session, crash.Rivals...); err != nil {
		t.Fatal(err)
	}
	var rivals []*crash.Rival
	for _, l := range []*lakes.Lake{lake, lakes.Open(t, dir, engine.Config{})} {
		rivals = append(rivals, &crash.Rival{Number: len(rivals) + 1, Rounds: 12, Ask: func(_ context.Context, text string) ([]string, error) { return crash.Ask(l.Session, text) }})
	}
	other := StartPython(t)
	for _, e := range []*Engine{other, StartAnotherPython(t)} {
		rivals = append(rivals, &crash.Rival{Number: len(rivals) + 1, Rounds: 12, Plain: true, Ask: rival(e, path)})
	}
	if err := crash.Compete(ctx, rivals); err != nil {
		t.Fatal(err)
	}
	for _, r := range rivals {
		t.Logf("writer %d: counted %v, %d own rows, %d conflicts", r.Number, r.Counted, len(r.Own), r.Conflicts)
	}
	if err := crash.CheckRivals(ctx, rivals[0].Ask, rivals); err != nil {
		t.Fatal(err)
	}
	theirs := func(_ context.Context, text string) ([]string, error) {
		switch {
		case strings.HasPrefix(text, "SELECT id, n FROM rivals WHERE "):
			return idAndN(t, other, path, strings.TrimPrefix(text, "SELECT id, n FROM rivals WHERE ")), nil
		case strings.HasPrefix(text, "SELECT COUNT(*)"):
			return []string{fmt.Sprint(len(idAndN(t, other, path, "array_has(labels, 'own')")))}, nil
		}
		return idAndN(t, other, path, ""), nil
	}
	if err := crash.CheckRivals(ctx, theirs, rivals); err != nil {
		t.Fatalf("the real engine: %v", err)
	}
}

func idAndN(t *testing.T, e *Engine, path, filter string) (out []string) {
	t.Helper()
	r := Request{"path": path, "columns": []string{"id", "n"}}
	if filter != "" {
		r["filter"] = filter
	}
	table := e.Rows("scan", r)
	defer table.Release()
	ids, ns := Column(t, table, "id"), Column(t, table, "n")
	defer ids.Release()
	defer ns.Release()
	for i := range ids.Len() {
		out = append(out, fmt.Sprintf("%d\t%d", ids.(*array.Int64).Value(i), ns.(*array.Int64).Value(i)))
	}
	return out
}
