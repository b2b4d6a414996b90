package clients

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
)

const (
	modeText     = "text"
	modePrepared = "prepared"
	modeCursor   = "cursor" // prepared, the rows fetched in steps
)

// clientWait is far beyond what any client needs for all statements.
const clientWait = 5 * time.Minute

// client sends statements and returns the answers in their order.
type client struct {
	name  string
	modes []string
	run   func(t *testing.T, l *lake, work []request) []answer
}

// request is one statement to one client.
type request struct {
	name, mode, sql string
	args            []arg
}

// answers gives the engine's own answers by name.
func (l *lake) answers(t *testing.T, statements []statement) map[string]answer {
	t.Helper()
	out := make(map[string]answer, len(statements))
	for _, s := range statements {
		a := l.ask(t, s.sql)
		check(t, s, a)
		out[s.name] = a
	}
	return out
}

// mustAgree sends the statements in every mode of the client and compares.
func (c client) mustAgree(t *testing.T, l *lake, statements []statement, want map[string]answer) {
	t.Helper()
	var work []request
	var asked []statement
	for _, s := range statements {
		for _, mode := range c.modes {
			r := request{name: s.name, mode: mode, sql: s.sql}
			if mode != modeText && s.prepared != "" {
				r.sql, r.args = s.prepared, s.args
			}
			work, asked = append(work, r), append(asked, s)
		}
	}
	got := c.run(t, l, work)
	if len(got) != len(work) {
		t.Fatalf("%d answers to %d statements", len(got), len(work))
	}
	for i, a := range got {
		if diff := difference(asked[i], want[asked[i].name], a); diff != "" {
			t.Errorf("%s, %s: %s\n%s", asked[i].name, work[i].mode, diff, work[i].sql)
		}
	}
}

// check makes sure that the engine's own answer says something.
func check(t *testing.T, s statement, a answer) {
	t.Helper()
	switch {
	case s.code != 0:
		if a.Message == "" {
			t.Errorf("%s: the engine takes it\n%s", s.name, s.sql)
		}
	case a.Message != "":
		t.Errorf("%s: %s\n%s", s.name, a.Message, s.sql)
	case len(a.Rows) == 0 && !s.empty:
		t.Errorf("%s: no rows\n%s", s.name, s.sql)
	case len(a.Rows) > 0 && s.empty:
		t.Errorf("%s: %d rows\n%s", s.name, len(a.Rows), s.sql)
	case s.vectorized && !a.vectorized:
		t.Errorf("%s: a row-engine node\n%s", s.name, s.sql)
	}
}

// difference compares a client's answer with the engine's; "" = equal.
func difference(s statement, want, got answer) string {
	if s.code != 0 {
		switch {
		case got.Code != s.code:
			return fmt.Sprintf("error %d %q, want %d", got.Code, got.Message, s.code)
		case got.State != "" && got.State != s.state:
			return fmt.Sprintf("SQLSTATE %s, want %s", got.State, s.state)
		}
		return ""
	}
	if got.Code != 0 {
		return fmt.Sprintf("error %d %s: %s", got.Code, got.State, got.Message)
	}
	if len(got.Rows) != len(want.Rows) {
		return fmt.Sprintf("%d rows, want %d", len(got.Rows), len(want.Rows))
	}
	if got.Columns != nil && !slices.Equal(got.Columns, want.Columns) {
		return fmt.Sprintf("columns %q, want %q", got.Columns, want.Columns)
	}
	g, w := canonical(got.Rows, want.types), canonical(want.Rows, want.types)
	if s.unordered {
		slices.Sort(g)
		slices.Sort(w)
	}
	for i := range w {
		if g[i] != w[i] {
			return fmt.Sprintf("row %d:\n got %s\nwant %s", i, g[i], w[i])
		}
	}
	return ""
}

// canonical prints rows so that two clients' spellings of one value are one text.
func canonical(rows [][]*string, types []arrow.DataType) []string {
	out := make([]string, len(rows))
	for i, r := range rows {
		cells := make([]string, len(r))
		for c, v := range r {
			cells[c] = "NULL"
			if v != nil {
				cells[c] = strconv.Quote(canonicalCell(*v, types[c]))
			}
		}
		out[i] = strings.Join(cells, " ")
	}
	return out
}

func canonicalCell(v string, t arrow.DataType) string {
	switch t.ID() {
	case arrow.FLOAT16, arrow.FLOAT32:
		// Drivers widen FLOAT to double.
		if f, err := strconv.ParseFloat(v, 64); err == nil {
			return strconv.FormatFloat(float64(float32(f)), 'g', -1, 32)
		}
	case arrow.FLOAT64:
		if f, err := strconv.ParseFloat(v, 64); err == nil {
			return strconv.FormatFloat(f, 'g', -1, 64)
		}
	case arrow.BOOL:
		switch strings.ToLower(v) {
		case "true":
			return "1"
		case "false":
			return "0"
		}
	case arrow.TIMESTAMP, arrow.DURATION, arrow.TIME32, arrow.TIME64:
		// Some drivers print no fraction where it is zero.
		if whole, fraction, ok := strings.Cut(v, "."); ok {
			return strings.TrimSuffix(whole+"."+strings.TrimRight(fraction, "0"), ".")
		}
	}
	return v
}

func text(c *string) string {
	if c == nil {
		return "NULL"
	}
	return *c
}

// flat prints rows in order of their text.
func flat(a answer) string {
	var rows []string
	for _, r := range a.Rows {
		var cells []string
		for _, c := range r {
			cells = append(cells, text(c))
		}
		rows = append(rows, strings.Join(cells, " "))
	}
	slices.Sort(rows)
	return strings.Join(rows, ", ")
}
