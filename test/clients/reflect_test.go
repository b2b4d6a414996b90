//go:build clients

package clients

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// column is what a tool shows of a column: name, type, whether it may be NULL.
type column struct {
	name, typ string
	nullable  bool
}

func demoColumns() map[string][]column {
	return map[string][]column{
		"images": {
			{"id", "BIGINT", false},
			{"parcel_id", "BIGINT", false},
			{"captured_at", "DATETIME", false},
			{"tenant", "VARCHAR(16383)", false},
			{"site", "INTEGER", false},
			{"labels", "JSON", true},
			{"embedding", "JSON", false},
			{"note", "VARCHAR(16383)", false},
			{"trajectory", "LONGBLOB", false},
		},
		"orders": {
			{"order_id", "BIGINT", false},
			{"parcel_id", "BIGINT", false},
			{"carrier", "VARCHAR(16383)", false},
			{"batch", "VARCHAR(16383)", false},
			{"amount", "DECIMAL(12, 2)", false},
			{"ordered_at", "DATETIME", false},
		},
		"shipments": {
			{"parcel_id", "BIGINT", false},
			{"route", "VARCHAR(16383)", false},
			{"warehouse", "VARCHAR(16383)", false},
			{"status", "VARCHAR(16383)", false},
			{"updated_at", "DATETIME", false},
		},
	}
}

func demoIndices() []string {
	return []string{"captured_at_idx", "embedding_idx", "labels_idx", "tenant_idx"}
}

func TestSQLAlchemyReflectsTheLake(t *testing.T) {
	l := startLake(t)
	var got struct {
		Schemas, Tables, Views, Indexes []string
		Columns                         map[string][][3]any
		Other                           [][3]any
		Core                            [][]*string
		Labels                          []any
	}
	if err := json.Unmarshal(script(t, "", installed(t, "venv", "bin", "python"), "client.py", "reflect", l.port, "demo"), &got); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"demo", "fixtures", "information_schema"} {
		if !slices.Contains(got.Schemas, name) {
			t.Errorf("schemas %q lack %s", got.Schemas, name)
		}
	}
	if !slices.Equal(got.Tables, []string{"images", "orders", "shipments"}) || len(got.Views) > 0 {
		t.Errorf("tables %q, views %q", got.Tables, got.Views)
	}
	for table, want := range demoColumns() {
		mustHaveColumns(t, table, got.Columns[table], want)
	}
	if len(got.Other) != 24 {
		t.Errorf("%d columns of fixtures.scalars_v22_7, want 24", len(got.Other))
	}
	if !slices.Equal(got.Indexes, demoIndices()) {
		t.Errorf("indices %q, want %q", got.Indexes, demoIndices())
	}
	want := l.ask(t, `SELECT o.carrier, count(*) AS n, sum(o.amount) FROM orders o JOIN images i ON i.parcel_id = o.parcel_id
		WHERE array_has(i.labels, 'damage') AND i.captured_at >= '2026-10-01' AND o.amount > 1.50 GROUP BY o.carrier ORDER BY n DESC, o.carrier LIMIT 5`)
	if diff := difference(statement{}, want, answer{Rows: got.Core}); diff != "" || len(want.Rows) != 5 {
		t.Errorf("core: %s (%d rows)", diff, len(want.Rows))
	}
	if len(got.Labels) == 0 {
		t.Error("a reflected JSON column is not decoded")
	}
}

func mustHaveColumns(t *testing.T, table string, got [][3]any, want []column) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d columns, want %d", table, len(got), len(want))
		return
	}
	for i, w := range want {
		// The collation behind a type is not this test's matter.
		typ, _, _ := strings.Cut(got[i][1].(string), " COLLATE")
		if got[i][0] != w.name || typ != w.typ || got[i][2] != w.nullable {
			t.Errorf("%s: column %v, want %+v", table, got[i], w)
		}
	}
}

// The codes of java.sql.Types.
const (
	javaInteger       = "4"
	javaBigint        = "-5"
	javaVarchar       = "12"
	javaLongVarchar   = "-1"
	javaLongVarbinary = "-4"
	javaDecimal       = "3"
	javaTimestamp     = "93"
)

func TestConnectorJDescribesTheLake(t *testing.T) {
	l := startLake(t)
	got := make(map[string]answer)
	for _, a := range decodeAnswers(t, script(t, "", "java", javaArgs(t, l.port, "demo", "metadata")...)) {
		got[a.Name] = a
	}
	for name, want := range map[string]string{
		"tables":  "images TABLE, orders TABLE, shipments TABLE",
		"indices": "captured_at_idx captured_at, embedding_idx embedding, labels_idx labels, tenant_idx tenant",
		"keys":    "", "imported": "", "procedures": "", "privileges": "",
	} {
		if text := flat(got[name]); text != want {
			t.Errorf("%s: %s, want %s", name, text, want)
		}
	}
	for _, name := range []string{"demo", "fixtures"} {
		if !strings.Contains(flat(got["catalogs"]), name) {
			t.Errorf("catalogs %s lack %s", flat(got["catalogs"]), name)
		}
	}
	if text := flat(got["product"]); !strings.HasPrefix(text, "MySQL 8.") {
		t.Errorf("product %s", text)
	}
	types := map[string]string{
		"BIGINT": javaBigint, "INTEGER": javaInteger, "VARCHAR(16383)": javaVarchar, "JSON": javaLongVarchar, "LONGBLOB": javaLongVarbinary,
		"DECIMAL(12, 2)": javaDecimal, "DATETIME": javaTimestamp,
	}
	var want []string
	for _, table := range []string{"images", "orders", "shipments"} {
		for _, c := range demoColumns()[table] {
			nullable := "NO"
			if c.nullable {
				nullable = "YES"
			}
			want = append(want, strings.Join([]string{table, c.name, types[c.typ], nullable}, " "))
		}
	}
	var columns []string
	for _, r := range got["columns"].Rows {
		columns = append(columns, strings.Join([]string{text(r[0]), text(r[1]), text(r[2]), text(r[6])}, " "))
		if text(r[1]) == "amount" && (text(r[4]) != "12" || text(r[5]) != "2") {
			t.Errorf("amount has size %s and %s digits", text(r[4]), text(r[5]))
		}
	}
	if !slices.Equal(columns, want) {
		t.Errorf("columns\n%s\nwant\n%s", strings.Join(columns, "\n"), strings.Join(want, "\n"))
	}
	if n := len(got["scalars"].Rows); n != 24 {
		t.Errorf("%d columns of fixtures.scalars_v22_7, want 24", n)
	}
}
