package clients

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lakesql/lakesql/internal/testutil"
)

// What the engine that wrote a dataset reads back must arrive, spelled as MySQL spells it: the other tests compare lakesql with itself.
func TestValuesArriveAsTheirWriterReadsThem(t *testing.T) {
	l := startLake(t)
	for _, name := range []string{"scalars_v20_7", "scalars_v21_7", "scalars_v22_7", "scalars_v22_5000"} {
		expected := testutil.LoadExpected(t, testutil.Lance(t, name))
		for _, mode := range []string{modeText, modePrepared} {
			t.Run(name+", "+mode, func(t *testing.T) {
				got, err := goQuery(l.open(t), request{mode: mode, sql: "SELECT * FROM fixtures." + name + " ORDER BY id"})
				if err != nil {
					t.Fatal(err)
				}
				if len(got.Rows) != len(expected.Rows) || len(got.Rows) == 0 {
					t.Fatalf("%d rows, want %d", len(got.Rows), len(expected.Rows))
				}
				for i, row := range got.Rows {
					for c, field := range expected.Schema {
						if want := expected.Rows[i][field.Name]; !arrives(want, field.Type, row[c]) {
							t.Fatalf("row %d, column %s: %s, want %v", i, field.Name, text(row[c]), want)
						}
					}
				}
			})
		}
	}
}

// arrives compares the writer's value with the text of a cell.
func arrives(want any, typ string, cell *string) bool {
	if s, ok := want.(string); ok && strings.HasPrefix(typ, "Float") {
		if s == "-0" {
			want = json.Number("-0")
		} else { // NaN and the infinities
			want = nil
		}
	}
	if want == nil || cell == nil {
		return want == nil && cell == nil
	}
	got := *cell
	kind, parameters, _ := strings.Cut(typ, "<")
	switch {
	case strings.HasPrefix(kind, "Decimal["):
		var precision, scale int
		if _, err := fmt.Sscanf(kind, "Decimal[%de+%d]", &precision, &scale); err != nil {
			return false
		}
		unscaled, ok := new(big.Int).SetString(want.(string), 10)
		return ok && got == new(big.Rat).SetFrac(unscaled, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil)).FloatString(scale)
	case kind == "Bool":
		return got == map[bool]string{true: "1", false: "0"}[want.(bool)]
	case kind == "Binary":
		b, err := base64.StdEncoding.DecodeString(want.(string))
		return err == nil && got == hex.EncodeToString(b)
	case kind == "Date32":
		days, err := want.(json.Number).Int64()
		return err == nil && got == time.Unix(days*86400, 0).UTC().Format(time.DateOnly)
	case kind == "Timestamp":
		n, err := strconv.ParseInt(want.(string), 10, 64)
		if strings.HasPrefix(parameters, "MILLISECOND") {
			n *= 1000
		}
		whole, fraction, _ := strings.Cut(got, ".")
		return err == nil && whole+"."+(fraction + "000000")[:6] == time.UnixMicro(n).UTC().Format("2006-01-02 15:04:05.000000")
	case kind == "Float32" || kind == "Float64":
		return sameNumber(fmt.Sprint(want), got, kind == "Float32")
	case kind == "Struct", kind == "List", strings.HasPrefix(kind, "FixedSizeList"):
		d := json.NewDecoder(strings.NewReader(got))
		d.UseNumber()
		var v any
		return d.Decode(&v) == nil && sameJSON(want, v)
	}
	return got == fmt.Sprint(want)
}

func sameNumber(a, b string, single bool) bool {
	x, errX := strconv.ParseFloat(a, 64)
	y, errY := strconv.ParseFloat(b, 64)
	if errX != nil || errY != nil || math.IsNaN(x) || math.IsNaN(y) {
		return false
	}
	return x == y || single && float32(x) == float32(y)
}

// sameJSON compares trees; numbers are float32 at most, and the writer spells -0 as a string.
func sameJSON(want, got any) bool {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok || len(g) != len(w) {
			return false
		}
		for k := range w {
			if v, found := g[k]; !found || !sameJSON(w[k], v) {
				return false
			}
		}
		return true
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return false
		}
		for i := range w {
			if !sameJSON(w[i], g[i]) {
				return false
			}
		}
		return true
	case nil:
		return got == nil
	}
	if n, ok := got.(json.Number); ok {
		return sameNumber(fmt.Sprint(want), n.String(), true)
	}
	return want == got
}
