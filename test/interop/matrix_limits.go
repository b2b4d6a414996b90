package interop

import (
	"fmt"
	"strings"
)

// refusal is a statement of lakesql that ends with an error which names what it cannot do. The table is that of refusalSetup.
type refusal struct{ statement, says, why string }

var refusalSetup = []string{
	"CREATE TABLE t (id BIGINT, l LIST<VARCHAR>, ll LIST<LIST<INT>>, s STRUCT<a INT>, v VECTOR(2), d VECTOR(2, DOUBLE)) WITH (file_version = '2.1')",
	"INSERT INTO t VALUES (1, ['a'], NULL, NULL, '[1,2]', '[1,2]')",
	"CREATE INDEX by_label ON t (l) USING LABEL_LIST",
}

func refusals() []refusal {
	return []refusal{
		{"CREATE TABLE m (m MAP<VARCHAR, INT>) WITH (file_version = '2.1')", "2.2", "files of 2.1 hold no maps"},
		{"CREATE TABLE old (id INT) WITH (file_version = '2.0')", "2.1", "2.0 is read, not written; CREATE TABLE ... AS SELECT makes a copy that takes rows"},
		{"CREATE INDEX i ON t (l) USING NGRAM", "NGRAM", "kinds that lakesql does not build stay as they are"},
		{"CREATE INDEX i ON t (ll) USING LABEL_LIST", "column \"ll\"", "labels are plain values"},
		{"CREATE INDEX i ON t (s) USING BTREE", "column \"s\"", "structs have no order"},
		{"CREATE INDEX i ON t (id) USING LABEL_LIST", "column \"id\"", "the column has no lists"},
		{"CREATE VECTOR INDEX i ON t (d) USING IVF_FLAT", "float64", "vectors of double are searched exactly"},
		{"INSERT INTO t (v) VALUES ('[1,null]')", "column 'v'", "vectors with NULL as an element cannot be compared; a vector may be NULL"},
		{"ALTER TABLE t DROP COLUMN l", "by_label", "the index goes first"},
		{"ALTER TABLE t MODIFY COLUMN l LIST<INT>", "by_label", "the index goes first"},
	}
}

// engineLimit is what the engine cannot do with what lakesql does.
type engineLimit struct{ what, tested string }

var engineLimits = []engineLimit{
	{"fixed-size lists of structs beside other columns: its reader takes the items for rows", "the error is asserted"},
	{"maps, and fixed-size lists of structs, in files before 2.2", "the error is asserted"},
	{"after its own index update of a table with stable row ids its indices may find updated rows by what they were (docs/format/label_list.md section 5): lakesql answers right through " +
		"the same segments; the engine is asked by index again once lakesql has updated them", "its scan and lakesql are compared meanwhile"},
	{"what differs from a value (NOT, <>) through a ZONEMAP, and of float32 columns through any index: its plan scans", "the answers are compared all the same"},
}

func renderLimits(b *strings.Builder) {
	b.WriteString(`
## Refused by name

| statement | why |
|---|---|
`)
	for _, r := range refusals() {
		fmt.Fprintf(b, "| `%s` | %s |\n", r.statement, r.why)
	}
	b.WriteString("| INSERT into a table of version 2.0 | as above |\n\n## Not possible in the engine\n\n| what | how it is tested |\n|---|---|\n")
	for _, l := range engineLimits {
		fmt.Fprintf(b, "| %s | %s |\n", l.what, l.tested)
	}
	b.WriteString(`
Indices of kinds that lakesql does not know (NGRAM, BLOOMFILTER, INVERTED in the matrix) stay listed, and the engine's answers through them stay right, whatever lakesql commits. Fragments that lakesql
compacts are no longer covered by them: the engine scans these until it updates the index.
`)
}
