package clients

import (
	"encoding/binary"
	"math"
	"strconv"
	"strings"
)

// Kinds of parameters; see doc.go.
const (
	kindText     = 's'
	kindInt      = 'i'
	kindUnsigned = 'u'
	kindFloat    = 'f'
	kindDecimal  = 'd'
	kindTime     = 't'
	kindBytes    = 'b'
	kindNull     = 'n'
)

type arg struct {
	kind  byte
	value string
}

// statement is one question and what is known of its answer.
type statement struct {
	name, sql  string
	prepared   string // the same with parameters; "" = sql
	args       []arg
	unordered  bool // the statement leaves the order open
	empty      bool // no rows
	vectorized bool // no row-engine node
	code       int  // the error, with its SQLSTATE
	state      string
}

func allStatements(needle string) []statement {
	out := openingStatements(needle)
	out = append(out, suiteStatements(needle)...)
	out = append(out, labelStatements()...)
	out = append(out, typeStatements(needle)...)
	out = append(out, parameterStatements()...)
	out = append(out, catalogStatements()...)
	return append(out, errorStatements()...)
}

const (
	openingHead = `SELECT o.carrier, count(*) AS n, sum(o.amount) AS total
FROM (SELECT parcel_id FROM images
      WHERE array_has_all(labels, `
	openingTail = `) LIMIT 100) hits
JOIN orders o ON o.parcel_id = hits.parcel_id
GROUP BY o.carrier ORDER BY n DESC`
)

// opening is the statement that lakesql was made for, with its parts spelled as given.
func opening(labels, tenant, since, needle string) string {
	return openingHead + labels + ") AND tenant = " + tenant + " AND captured_at >= " + since + "\n      ORDER BY l2_distance(embedding, " + needle + openingTail
}

// floats is a vector as little-endian float32.
func floats(needle string) string {
	var out []byte
	for s := range strings.SplitSeq(strings.Trim(needle, "[]"), ",") {
		f, err := strconv.ParseFloat(strings.TrimSpace(s), 32)
		if err != nil {
			panic(err)
		}
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(float32(f)))
	}
	return string(out)
}

func openingStatements(needle string) []statement {
	text := "'" + needle + "'"
	plain := opening("['damage','wet']", "'acme'", "'2026-07-01'", text)
	s := func(name, prepared string, args ...arg) statement {
		return statement{name: "opening: " + name, sql: plain, prepared: prepared, args: args, unordered: true, vectorized: true}
	}
	constant := func(name, sql string) statement {
		return statement{name: "opening: " + name, sql: sql, unordered: true, vectorized: true}
	}
	return []statement{
		s("vector as text", ""),
		constant("vector as a list", opening("['damage','wet']", "'acme'", "'2026-07-01'", needle)),
		constant("STRING_TO_VECTOR, JSON_ARRAY", opening("JSON_ARRAY('damage','wet')", "'acme'", "timestamp '2026-07-01 00:00:00'", "STRING_TO_VECTOR("+text+")")),
		s("vector as a text parameter", opening("['damage','wet']", "'acme'", "'2026-07-01'", "?"), arg{kindText, needle}),
		s("all as parameters", opening("make_array(?, ?)", "?", "?", "?"), arg{kindText, "damage"}, arg{kindText, "wet"}, arg{kindText, "acme"}, arg{kindTime, "2026-07-01 00:00:00"}, arg{kindText, needle}),
		s("labels as one JSON parameter", opening("?", "?", "?", "STRING_TO_VECTOR(?)"), arg{kindText, `["damage","wet"]`}, arg{kindText, "acme"}, arg{kindText, "2026-07-01"}, arg{kindText, needle}),
		s("vector as bytes", opening("['damage','wet']", "'acme'", "'2026-07-01'", "?"), arg{kindBytes, floats(needle)}),
	}
}

// The suite's parameters for the small lake.
const (
	labelCommon = "damage"
	label5pct   = "wet"
	label1pct   = "tear/back"
	labelRare   = "bent/corner"
)

func suiteStatements(needle string) []statement {
	d := "l2_distance(embedding, '" + needle + "')"
	top := func(hints, columns, where string, k string) string {
		if where != "" {
			where = " WHERE " + where
		}
		return "SELECT " + hints + columns + ", " + d + " AS dist FROM images" + where + " ORDER BY dist LIMIT " + k
	}
	const force = "/*+ SET_VAR(ann=force) SET_VAR(nprobes=20) */ "
	const refine = "/*+ SET_VAR(ann=force) SET_VAR(nprobes=20) SET_VAR(refine_factor=4) */ "
	joins := func(aggregate string) string {
		return "WITH k AS (" + top("", "parcel_id", "array_has(labels, '"+label5pct+"')", "100") + ") " + aggregate
	}
	count := func(where string) string { return "SELECT count(*) FROM images WHERE " + where }
	out := []statement{
		{name: "constants over rows", sql: "SELECT 1 AS one FROM orders LIMIT 3"},
		{name: "aggregate of a constant", sql: "SELECT sum(1), count(1), max('x') FROM orders HAVING count(1) > 0"},
		{name: "L1", sql: count("array_has(labels, '" + labelCommon + "')")},
		{name: "L2", sql: count("array_has(labels, '" + labelRare + "')")},
		{name: "L3", sql: count("array_has_any(labels, ['damage', 'wet', 'tear/back', 'crush/right', 'bent/corner'])")},
		{name: "L4", sql: count("array_has_all(labels, ['damage', 'wet', 'dent/corner'])")},
		{name: "L5", sql: count("NOT array_has(labels, '" + labelCommon + "')")},
		{name: "L6", sql: "SELECT id, note FROM images WHERE array_has(labels, 'damage') AND tenant = 'acme' AND captured_at >= timestamp '2026-09-01 00:00:00' AND captured_at < timestamp '2026-10-01 00:00:00' ORDER BY id LIMIT 1000"},
		{name: "V1", sql: top("", "id", "", "10")},
		{name: "V2", sql: top("", "id", "array_has(labels, '"+label1pct+"')", "100")},
		{name: "V3", sql: top(force, "id", "", "10")},
		{name: "V3r", sql: top("/*+ SET_VAR(ann=force) SET_VAR(nprobes=20) SET_VAR(refine_factor=10) */ ", "id", "", "10")},
		{name: "V4", sql: top("", "id", "array_has(labels, '"+label5pct+"') AND tenant = 'acme'", "100")},
		{name: "V4, approximate", sql: top(force, "id", "array_has(labels, '"+label5pct+"') AND tenant = 'acme'", "100")},
		{name: "V5", sql: top(refine, "id", "", "1000")},
		{name: "G1", sql: top(force, "id, trajectory", "", "1000")},
		{name: "G2", sql: top(force, "id", "", "1000")},
		{name: "R1", sql: "SELECT id, trajectory FROM images WHERE id IN (17, 3999, 4, 2048, 1, 999, 31)", unordered: true},
		{name: "J1", sql: joins("SELECT carrier, count(*), sum(amount) FROM k JOIN orders o ON k.parcel_id = o.parcel_id GROUP BY carrier ORDER BY carrier")},
		{name: "J2", sql: joins("SELECT s.route, count(DISTINCT k.parcel_id) AS n FROM k JOIN orders o ON k.parcel_id = o.parcel_id JOIN shipments s ON s.parcel_id = k.parcel_id GROUP BY s.route ORDER BY n DESC, s.route")},
		{name: "A1", sql: "SELECT carrier, count(*), sum(amount), avg(amount), min(ordered_at), max(amount) FROM orders GROUP BY carrier ORDER BY carrier"},
		{name: "A2", sql: "SELECT o.carrier, s.status, count(*), sum(o.amount) FROM orders o JOIN shipments s ON o.parcel_id = s.parcel_id GROUP BY o.carrier, s.status ORDER BY o.carrier, s.status"},
		{name: "A4", sql: "SELECT tenant, count(DISTINCT parcel_id) FROM images GROUP BY tenant ORDER BY tenant"},
		{name: "A5", sql: count("note LIKE '%forklift%'")},
	}
	for i := range out {
		out[i].vectorized = true
	}
	return out
}

func labelStatements() []statement {
	const from = " FROM fixtures.labels_v22_churn "
	return []statement{
		{name: "lists of text and numbers", sql: "SELECT id, labels, nums, name" + from + "ORDER BY id LIMIT 40", vectorized: true},
		{name: "Unicode label", sql: "SELECT id, labels" + from + "WHERE array_has(labels, '日本') ORDER BY id", prepared: "SELECT id, labels" + from + "WHERE array_has(labels, ?) ORDER BY id", args: []arg{{kindText, "日本"}}, vectorized: true},
		{name: "accented label", sql: "SELECT count(*)" + from + "WHERE 'naïve' MEMBER OF(labels)"},
		{name: "empty label", sql: "SELECT id" + from + "WHERE array_has(labels, '') ORDER BY id"},
		{name: "truth values", sql: "SELECT id, array_has(labels, 'ai') AS h, array_has_any(labels, ['ai','drama']) AS y, array_has_all(labels, ['ai','database']) AS a, array_length(labels) AS n" + from + "ORDER BY id LIMIT 60"},
		{name: "needle of another type", sql: "SELECT id, nums" + from + "WHERE array_has(nums, '7') ORDER BY id", prepared: "SELECT id, nums" + from + "WHERE array_has(nums, ?) ORDER BY id", args: []arg{{kindInt, "7"}}},
		{name: "no list", sql: "SELECT id" + from + "WHERE labels IS NULL ORDER BY id"},
		{name: "stable row ids", sql: "SELECT id FROM fixtures.labels_stable_churn WHERE NOT array_has(labels, 'ai') ORDER BY id"},
		{name: "an older version", sql: "SELECT count(*) FROM fixtures.history AS OF 2"},
	}
}

func typeStatements(needle string) []statement {
	const from = " FROM fixtures.scalars_v22_7 ORDER BY id"
	out := []statement{
		{name: "every scalar type", sql: "SELECT *" + from, vectorized: true},
		{name: "many rows of every type", sql: "SELECT * FROM fixtures.scalars_v22_5000 ORDER BY id LIMIT 1500", vectorized: true},
		{name: "expressions keep types", sql: "SELECT id, `dec` + 1 AS d1, `dec` * 2.5 AS d2, u64, u64 DIV 3 AS u3, i8 + 1 AS i9, f32, f64 / 2 AS half, upper(s) AS up, date_add(d, INTERVAL 1 DAY) AS tomorrow, ts, tsz, b AND TRUE AS both_true" + from},
		{name: "aggregates of exact types", sql: "SELECT sum(i64s) AS s, avg(`dec`) AS a, sum(`dec`) AS d, max(u64) AS u, min(ts) AS t, count(nul) AS n FROM (SELECT seq AS i64s, `dec`, u64, ts, nul FROM fixtures.scalars_v22_5000) x"},
		{name: "struct field", sql: "SELECT id, struct_field(st, 'y') AS y, st FROM fixtures.scalars_v22_7 ORDER BY id"},
		{name: "vectors with NULLs", sql: "SELECT id, v FROM fixtures.vec_ivf_flat_l2 ORDER BY id LIMIT 60", vectorized: true},
		{name: "no rows keep columns", sql: "SELECT * FROM fixtures.scalars_v22_0", empty: true},
		{name: "LIMIT 0", sql: "SELECT id, labels, embedding FROM images LIMIT 0", empty: true},
		{name: "NULL", sql: "SELECT NULL AS x, 1 AS y, 'ü' AS z, 1.50 AS d, 1e3 AS e, DATE '2026-10-01' AS day, TIMESTAMP '2026-10-01 12:34:56.789' AS at, CAST(NULL AS DECIMAL(10,2)) AS nd, 18446744073709551615 AS big"},
		{name: "characters beyond the basic plane", sql: "SELECT '🚚📦' AS s, char_length('🚚📦') AS n", prepared: "SELECT ? AS s, char_length(?) AS n", args: []arg{{kindText, "🚚📦"}, {kindText, "🚚📦"}}},
		{name: "quotes and escapes", sql: `SELECT 'it''s "so" \\ \n\t' AS s`},
		{name: "decimals and dates of the lake", sql: "SELECT order_id, amount, ordered_at, carrier FROM orders WHERE amount > 100.25 AND ordered_at < '2026-03-01' ORDER BY amount DESC, order_id LIMIT 50",
			prepared: "SELECT order_id, amount, ordered_at, carrier FROM orders WHERE amount > ? AND ordered_at < ? ORDER BY amount DESC, order_id LIMIT 50", args: []arg{{kindDecimal, "100.25"}, {kindTime, "2026-03-01 00:00:00"}}, vectorized: true},
		{name: "outer join with NULLs", sql: "SELECT i.id, o.order_id, o.amount FROM images i LEFT JOIN orders o ON o.parcel_id = i.parcel_id AND o.amount < 2 ORDER BY i.id, o.order_id LIMIT 200"},
		{name: "distances", sql: "SELECT id, l2_distance(embedding, '" + needle + "') AS l2, cosine_distance(embedding, '" + needle + "') AS c, inner_product(embedding, '" + needle + "') AS ip FROM images ORDER BY id LIMIT 20"},
	}
	return out
}

func parameterStatements() []statement {
	return []statement{
		{name: "integer parameters", sql: "SELECT id, site FROM images WHERE id IN (5, 7, 4000000000) ORDER BY id LIMIT 2", prepared: "SELECT id, site FROM images WHERE id IN (?, ?, ?) ORDER BY id LIMIT 2",
			args: []arg{{kindInt, "5"}, {kindInt, "7"}, {kindInt, "4000000000"}}, vectorized: true},
		{name: "unsigned parameter", sql: "SELECT id, u64 FROM fixtures.scalars_v22_7 WHERE u64 >= 13064056694810536062 ORDER BY id", prepared: "SELECT id, u64 FROM fixtures.scalars_v22_7 WHERE u64 >= ? ORDER BY id", args: []arg{{kindUnsigned, "13064056694810536062"}}},
		{name: "small unsigned parameter", sql: "SELECT id, u64 FROM fixtures.scalars_v22_7 WHERE u64 = 18446744073709551615 OR id = 3", prepared: "SELECT id, u64 FROM fixtures.scalars_v22_7 WHERE u64 = ? OR id = ?", args: []arg{{kindUnsigned, "18446744073709551615"}, {kindUnsigned, "3"}}},
		{name: "negative parameter", sql: "SELECT id, i8 FROM fixtures.scalars_v22_7 WHERE i8 < -126 ORDER BY id", prepared: "SELECT id, i8 FROM fixtures.scalars_v22_7 WHERE i8 < ? ORDER BY id", args: []arg{{kindInt, "-126"}}},
		{name: "LIMIT parameters", sql: "SELECT id FROM images ORDER BY id LIMIT 3 OFFSET 5", prepared: "SELECT id FROM images ORDER BY id LIMIT ? OFFSET ?", args: []arg{{kindInt, "3"}, {kindInt, "5"}}},
		{name: "NULL parameter", sql: "SELECT count(*) FROM images WHERE tenant = NULL OR NULL IS NULL", prepared: "SELECT count(*) FROM images WHERE tenant = ? OR ? IS NULL", args: []arg{{kindNull, ""}, {kindNull, ""}}},
		{name: "double parameter", sql: "SELECT id FROM fixtures.scalars_v22_7 WHERE f64 > 1000000.5 ORDER BY id", prepared: "SELECT id FROM fixtures.scalars_v22_7 WHERE f64 > ? ORDER BY id", args: []arg{{kindFloat, "1000000.5"}}},
		{name: "LIKE parameter", sql: "SELECT id, note FROM images WHERE note LIKE '%forklift%' ORDER BY id LIMIT 5", prepared: "SELECT id, note FROM images WHERE note LIKE ? ORDER BY id LIMIT 5", args: []arg{{kindText, "%forklift%"}}},
		{name: "binary parameter", sql: "SELECT id FROM fixtures.scalars_v22_7 WHERE bin = X'00FF00'", prepared: "SELECT id FROM fixtures.scalars_v22_7 WHERE bin = ?", args: []arg{{kindBytes, "\x00\xff\x00"}}},
		{name: "text in place of a number", sql: "SELECT id FROM images WHERE id = '12'", prepared: "SELECT id FROM images WHERE id = ?", args: []arg{{kindText, "12"}}},
	}
}

func catalogStatements() []statement {
	return []statement{
		{name: "SHOW DATABASES", sql: "SHOW DATABASES", unordered: true},
		{name: "SHOW TABLES", sql: "SHOW TABLES"},
		{name: "SHOW FULL TABLES", sql: "SHOW FULL TABLES FROM fixtures LIKE 'labels%'"},
		{name: "SHOW COLUMNS", sql: "SHOW COLUMNS FROM images"},
		{name: "SHOW FULL COLUMNS", sql: "SHOW FULL COLUMNS FROM fixtures.scalars_v22_7"},
		{name: "DESCRIBE", sql: "DESCRIBE orders"},
		{name: "SHOW CREATE TABLE", sql: "SHOW CREATE TABLE images"},
		{name: "SHOW INDEX", sql: "SHOW INDEX FROM images"},
		{name: "information_schema.tables", sql: "SELECT table_schema, table_name, table_type FROM information_schema.tables WHERE table_schema = 'demo' ORDER BY table_name"},
		{name: "information_schema.columns", sql: "SELECT table_name, ordinal_position, column_name, data_type, column_type, is_nullable, numeric_precision, numeric_scale, datetime_precision, character_set_name FROM information_schema.columns WHERE table_schema = 'demo' ORDER BY table_name, ordinal_position"},
		{name: "information_schema.schemata", sql: "SELECT schema_name FROM information_schema.schemata ORDER BY schema_name"},
		{name: "who serves", sql: "SELECT @@version_comment, @@transaction_isolation, DATABASE()"},
	}
}

func errorStatements() []statement {
	return []statement{
		{name: "no such table", sql: "SELECT * FROM nothing", code: 1146, state: "42S02"},
		{name: "no such database", sql: "SELECT * FROM nowhere.images", code: 1049, state: "42000"},
		{name: "no such column", sql: "SELECT nothing FROM images", code: 1054, state: "42S22"},
		{name: "ambiguous column", sql: "SELECT parcel_id FROM images JOIN orders ON images.parcel_id = orders.parcel_id", code: 1052, state: "23000"},
		{name: "syntax", sql: "SELEC 1", code: 1064, state: "42000"},
		{name: "no such function", sql: "SELECT nothing_of_the_kind(id) FROM images", code: 1305, state: "42000"},
		{name: "vector of another length", sql: "SELECT id FROM images ORDER BY l2_distance(embedding, '[1,2,3]') LIMIT 1", code: 1210, state: "HY000"},
		{name: "text that is no vector", sql: "SELECT id FROM images ORDER BY l2_distance(embedding, 'abc') LIMIT 1", code: 1210, state: "HY000"},
		{name: "needle that is no number", sql: "SELECT id FROM fixtures.labels_v22_churn WHERE array_has(nums, 'x')", code: 1210, state: "HY000"},
		{name: "the connection lives on", sql: "SELECT 1 AS alive"},
	}
}
