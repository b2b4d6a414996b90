package sql

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/engine"
	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/server"
	"github.com/lakesql/lakesql/test/lakes"
)

// TestExactTypes is case 25: decimals, times with and without zone, dates outside TIMESTAMP's range, microseconds.
func TestExactTypes(t *testing.T) {
	times := lakes.Table{
		Name: "times", Fields: []arrow.Field{
			lakes.Field("id", lakes.Int64), lakes.Field("ts", &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}),
			lakes.Field("plain", &arrow.TimestampType{Unit: arrow.Microsecond}), lakes.Field("day", arrow.FixedWidthTypes.Date32), lakes.Field("u", arrow.PrimitiveTypes.Uint64),
			lakes.Field("big", &arrow.Decimal128Type{Precision: 38}),
		},
		Rows: `[{"id":1,"ts":"2026-03-29 00:59:59Z","plain":"2026-03-29 00:59:59.123456","day":"1900-01-01","u":18446744073709551615,"big":"99999999999999999999999999999999999999"},
			{"id":2,"ts":"2026-03-29 01:30:00Z","plain":"1900-01-01 00:00:00","day":"9999-12-31","u":1,"big":"99999999999999999999999999999999999999"}]`,
		Indices: []lakes.Index{{Column: "ts", Kind: index.KindBTree}, {Column: "plain", Kind: index.KindBTree}, {Column: "u", Kind: index.KindBTree}},
	}
	for _, path := range lakes.Paths {
		t.Run(string(path), func(t *testing.T) {
			dir := t.TempDir()
			lakes.Build(t, dir, path, times)
			lake := lakes.Open(t, dir, engine.Config{}).Serve(t, server.Options{})
			lake.Check(t, []lakes.Case{
				{Name: "a sum of more than 38 digits", Text: "SELECT SUM(big) FROM times", Want: []string{"199999999999999999999999999999999999998"}},
				{Name: "unsigned", Text: "SELECT u FROM times WHERE u > 9223372036854775807", Want: []string{"18446744073709551615"}},
				{Name: "dates", Text: "SELECT CAST(day AS CHAR) FROM times ORDER BY id", Want: []string{"1900-01-01", "9999-12-31"}},
				{Name: "microseconds, no zone", Text: "SELECT CAST(plain AS CHAR) FROM times WHERE plain = '2026-03-29 00:59:59.123456'", Want: []string{"2026-03-29 00:59:59.123456"}},
			})
			lake.Set(t, "SET time_zone = 'Europe/Berlin'")
			lake.Check(t, []lakes.Case{
				{Name: "shown in Berlin", Text: "SELECT CAST(ts AS CHAR) FROM times ORDER BY id", Want: []string{"2026-03-29 01:59:59.000000", "2026-03-29 03:30:00.000000"}},
				{Name: "compared in Berlin", Text: "SELECT id FROM times WHERE ts >= '2026-03-29 03:00:00' ORDER BY id", Want: ids(2)},
				{Name: "compared in Berlin by parameter", Text: "SELECT id FROM times WHERE ts >= ? ORDER BY id", Args: []any{"2026-03-29 03:00:00"}, Want: ids(2)},
				{Name: "no zone never shifts", Text: "SELECT CAST(plain AS CHAR) FROM times ORDER BY id", Want: []string{"2026-03-29 00:59:59.123456", "1900-01-01 00:00:00.000000"}},
			})
			for _, d := range lake.Doors()[1:] {
				got, err := d.Ask(t.Context(), "SELECT ts, plain, day FROM times ORDER BY id")
				if err != nil || len(got) != 2 || got[0] != "2026-03-29 01:59:59.000000\t2026-03-29 00:59:59.123456\t1900-01-01" {
					t.Errorf("%s: %q, %v", d.Name, got, err)
				}
			}
			lake.Set(t, "SET time_zone = '+00:00'")
			lake.Check(t, []lakes.Case{
				{Name: "shown in UTC", Text: "SELECT CAST(ts AS CHAR) FROM times ORDER BY id", Want: []string{"2026-03-29 00:59:59.000000", "2026-03-29 01:30:00.000000"}},
				{Name: "compared in UTC", Text: "SELECT id FROM times WHERE ts >= '2026-03-29 01:00:00' ORDER BY id", Want: ids(2)},
			})
		})
	}
}
