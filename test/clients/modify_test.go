//go:build clients

package clients

import (
	"slices"
	"strings"
	"testing"
)

// modification is a statement of TestEveryClientWrites. T stands for the table.
type modification struct {
	name, text, prepared string
	args                 []arg
	code                 int
	asText               bool // in the prepared form, too
}

func modifications() []modification {
	return []modification{
		{name: "create", asText: true, text: "CREATE TABLE T (id BIGINT NOT NULL PRIMARY KEY, big BIGINT UNSIGNED, d DECIMAL(12,3), f DOUBLE, name VARCHAR(20), at DATETIME, " +
			"raw VARBINARY(20), labels LIST<VARCHAR>, v VECTOR(2), INDEX by_label (labels) USING LABEL_LIST)"},
		{
			name: "every type", prepared: "INSERT INTO T VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
			text: `INSERT INTO T VALUES (1, 18446744073709551615, 12.345, 0.1, 'wörld', '2026-01-02 03:04:05', X'00ff41', '["a","b"]', '[1,2.5]')`,
			args: []arg{
				{kindInt, "1"}, {kindUnsigned, "18446744073709551615"}, {kindDecimal, "12.345"}, {kindFloat, "0.1"}, {kindText, "wörld"}, {kindTime, "2026-01-02 03:04:05"},
				{kindBytes, "\x00\xffA"}, {kindText, `["a","b"]`}, {kindText, "[1,2.5]"},
			},
		},
		{
			name: "nulls", prepared: "INSERT INTO T (id, big, d, name, labels) VALUES (?, ?, ?, ?, ?), (?, 7, 1, 'c', '[]')", text: "INSERT INTO T (id, big, d, name, labels) VALUES (2, NULL, NULL, NULL, NULL), (3, 7, 1, 'c', '[]')",
			args: []arg{{kindInt, "2"}, {kind: kindNull}, {kind: kindNull}, {kind: kindNull}, {kind: kindNull}, {kindInt, "3"}},
		},
		{
			name: "update", prepared: "UPDATE T SET name = ?, d = d + ? WHERE array_has(labels, ?)", text: "UPDATE T SET name = 'up', d = d + 0.005 WHERE array_has(labels, 'b')",
			args: []arg{{kindText, "up"}, {kindDecimal, "0.005"}, {kindText, "b"}},
		},
		{
			name: "upsert", prepared: "INSERT INTO T (id, name) VALUES (?, ?), (?, ?) ON DUPLICATE KEY UPDATE name = VALUES(name)", text: "INSERT INTO T (id, name) VALUES (2, 'two'), (4, 'four') ON DUPLICATE KEY UPDATE name = VALUES(name)",
			args: []arg{{kindInt, "2"}, {kindText, "two"}, {kindInt, "4"}, {kindText, "four"}},
		},
		{name: "replace", prepared: "REPLACE INTO T (id, big) VALUES (?, ?)", text: "REPLACE INTO T (id, big) VALUES (3, 8)", args: []arg{{kindInt, "3"}, {kindUnsigned, "8"}}},
		{name: "delete", prepared: "DELETE FROM T WHERE id = ?", text: "DELETE FROM T WHERE id = 4", args: []arg{{kindInt, "4"}}},
		{name: "commit", text: "COMMIT", asText: true},
		{name: "null key", prepared: "INSERT INTO T (id) VALUES (?)", text: "INSERT INTO T (id) VALUES (NULL)", args: []arg{{kind: kindNull}}, code: 1048},
		{name: "begin", text: "BEGIN", asText: true},
		{name: "staged", prepared: "DELETE FROM T WHERE id > ?", text: "DELETE FROM T WHERE id > 0", args: []arg{{kindInt, "0"}}},
		{name: "rollback", text: "ROLLBACK", asText: true},
	}
}

// modified is what they leave, as the engine spells it.
const modified = `1|18446744073709551615|12.350|0.1|up|2026-01-02 03:04:05.000000|00ff41|["a", "b"]|[1, 2.5]
2|NULL|NULL|NULL|two|NULL|NULL|NULL|NULL
3|8|NULL|NULL|NULL|NULL|NULL|NULL|NULL
`

// TestEveryClientWrites: values of every kind get into a table by text and as parameters, errors arrive, and what is rolled back is gone.
func TestEveryClientWrites(t *testing.T) {
	l := startLake(t)
	clients := append(allClients(), client{"go-sql-driver", []string{modeText, modePrepared}, runGoDriver})
	for _, c := range clients {
		for _, mode := range c.modes {
			if mode == modeCursor || !slices.Contains(c.modes, modePrepared) { // the command line connects for each statement anew
				continue
			}
			t.Run(c.name+", "+mode, func(t *testing.T) {
				table := "w_" + strings.ToLower(strings.NewReplacer(" ", "_", "-", "_", "/", "_").Replace(c.name)) + "_" + mode
				all := modifications()
				work := make([]request, len(all))
				for i, m := range all {
					work[i] = request{name: m.name, mode: mode, sql: m.prepared, args: m.args}
					if m.asText || mode == modeText {
						work[i] = request{name: m.name, mode: modeText, sql: m.text}
					}
					work[i].sql = strings.Replace(strings.Replace(work[i].sql, " T ", " "+table+" ", 1), "FROM T", "FROM "+table, 1)
				}
				got := c.run(t, l, work)
				if len(got) != len(work) {
					t.Fatalf("%d answers to %d statements", len(got), len(work))
				}
				for i, a := range got {
					if a.Code != all[i].code {
						t.Errorf("%s: error %d %s, want %d\n%s", all[i].name, a.Code, a.Message, all[i].code, work[i].sql)
					}
				}
				if text := l.spell(t, "SELECT * FROM "+table+" ORDER BY id"); text != modified {
					t.Errorf("the table holds\n%swant\n%s", text, modified)
				}
				if text := l.spell(t, "SELECT id FROM "+table+" WHERE array_has(labels, 'a')"); text != "1\n" {
					t.Errorf("by label: %q", text)
				}
			})
		}
	}
}

// spell prints the engine's own answer, a line a row.
func (l *lake) spell(t *testing.T, sql string) string {
	t.Helper()
	a := l.ask(t, sql)
	if a.Message != "" {
		t.Fatal(a.Message)
	}
	var out strings.Builder
	for _, row := range a.Rows {
		for i, cell := range row {
			if i > 0 {
				out.WriteByte('|')
			}
			if cell == nil {
				out.WriteString("NULL")
			} else {
				out.WriteString(*cell)
			}
		}
		out.WriteByte('\n')
	}
	return out.String()
}
