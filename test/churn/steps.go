package churn

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lakesql/lakesql/test/lakes"
)

// past is a version to go back to.
type past struct {
	rows    Rows
	columns []string
}

// kinds are the steps and how often each is taken.
var kinds = []struct {
	name   string
	weight int
	do     func(t *Table)
}{
	{"append", 14, func(t *Table) { t.append(1 + t.r.Intn(40)) }},
	{"append of a query", 4, (*Table).appendQuery},
	{"delete", 13, (*Table).delete},
	{"update", 18, (*Table).update},
	{"merge", 10, (*Table).merge},
	{"compact", 10, func(t *Table) { t.do("CALL lakesql.compact('c', %d)", 30+t.r.Intn(300)) }},
	{"index update", 10, (*Table).updateIndices},
	{"index", 3, (*Table).rebuildIndex},
	{"restore", 4, (*Table).restore},
	{"transaction", 5, (*Table).transaction},
	{"tag", 4, (*Table).tag},
	{"branch", 2, (*Table).branch},
	{"schema change", 4, (*Table).changeSchema},
	{"cleanup", 2, (*Table).cleanup},
}

// Step runs one random step, and checks.
func (t *Table) Step() {
	t.tb.Helper()
	total := 0
	for _, k := range kinds {
		total += k.weight
	}
	at := t.r.Intn(total)
	for _, k := range kinds {
		if at -= k.weight; at < 0 {
			t.done = append(t.done, fmt.Sprintf("-- step %d: %s", t.step, k.name))
			k.do(t)
			t.Counts[k.name]++
			break
		}
	}
	if len(t.rows) < 60 {
		t.append(100)
	}
	t.remember()
	t.check()
}

const modelColumns = "id, labels, tag, n, z, v"

// line is a row as a session spells it.
func (r Row) line(id int64) string {
	cells := []string{fmt.Sprint(id), lakes.Null, lakes.Null, lakes.Null, lakes.Null, lakes.Null}
	if r.Labels != nil {
		b, _ := json.Marshal(*r.Labels) //nolint:errchkjson // strings
		cells[1] = string(b)
	}
	if r.Tag != nil {
		cells[2] = *r.Tag
	}
	if r.N != nil {
		cells[3] = fmt.Sprint(*r.N)
	}
	if r.Z != nil {
		cells[4] = fmt.Sprint(*r.Z)
	}
	if r.V != nil {
		cells[5] = fmt.Sprintf("[%g,%g,%g]", r.V[0], r.V[1], r.V[2])
	}
	return strings.Join(cells, "\t")
}

// append inserts new rows.
func (t *Table) append(n int) {
	t.tb.Helper()
	values := make([]string, n)
	for i := range values {
		row := drawRow(t.r, t.next)
		t.rows[t.next] = row
		values[i] = row.values(t.next)
		t.next++
	}
	t.change(uint64(n), "INSERT INTO c (%s) VALUES %s", modelColumns, strings.Join(values, ","))
}

// appendQuery inserts rows that the table has, with new ids.
func (t *Table) appendQuery() {
	t.tb.Helper()
	p := draw(t.r, 1, t.next)
	if len(t.rows) > 600 {
		p = both(p, compared("n = 30", NumberIndex, nOf, func(v int64) bool { return v == 30 }))
	}
	ids := p.Holds(t.rows)
	shift := t.next
	for _, id := range ids {
		t.rows[id+shift] = t.rows[id]
	}
	t.next += shift
	t.change(uint64(len(ids)), "INSERT INTO c (%s) SELECT id + %d, labels, tag, n, z, v FROM c WHERE %s", modelColumns, shift, p.Text)
}

// some draws a predicate that finds about a tenth of the rows, or whole fragments.
func (t *Table) some() Predicate {
	switch t.r.Intn(4) {
	case 0:
		return both(draw(t.r, 1, t.next), Predicate{"id % 4 = 1", "", func(id int64, _ Row) truth { return truthOf(id%4 == 1) }})
	case 1: // neighbours, as they were inserted
		ids := t.rows.ids()
		at := t.r.Intn(len(ids))
		low, high := ids[at], ids[min(len(ids)-1, at+t.r.Intn(70))]
		return Predicate{fmt.Sprintf("id BETWEEN %d AND %d", low, high), "", func(id int64, _ Row) truth { return truthOf(id >= low && id <= high) }}
	case 2:
		return both(Labels()[t.r.Intn(len(Labels()))], draw(t.r, 0, t.next))
	}
	ids := t.rows.ids()
	var picked []int64
	var texts []string
	for range 1 + t.r.Intn(9) {
		picked = append(picked, ids[t.r.Intn(len(ids))])
		texts = append(texts, fmt.Sprint(picked[len(picked)-1]))
	}
	return Predicate{"id IN (" + strings.Join(texts, ",") + ")", "", func(id int64, _ Row) truth { return truthOf(slices.Contains(picked, id)) }}
}

func (t *Table) delete() {
	t.tb.Helper()
	p := t.some()
	ids := p.Holds(t.rows)
	for _, id := range ids {
		delete(t.rows, id)
	}
	t.change(uint64(len(ids)), "DELETE FROM c WHERE %s", p.Text)
}

// update changes one to three columns of some rows; a row that is the same afterwards does not count.
func (t *Table) update() {
	t.tb.Helper()
	p := t.some()
	ids := p.Holds(t.rows)
	drawn, before := drawRow(t.r, t.r.Int63n(t.next)), maps.Clone(t.rows)
	which := 1 + t.r.Intn(15)
	var sets []string
	for i, set := range []string{"labels = " + listOf(drawn.Labels), "tag = " + textOf(drawn.Tag), "n = n + 1", "v = " + vectorOf(drawn.V)} {
		if which&(1<<i) != 0 {
			sets = append(sets, set)
		}
	}
	if t.r.Intn(3) == 0 {
		sets = append(sets, "z = "+numberOf(drawn.Z))
	}
	for _, id := range ids {
		row := t.rows[id]
		if which&1 != 0 {
			row.Labels = drawn.Labels
		}
		if which&2 != 0 {
			row.Tag = drawn.Tag
		}
		if which&4 != 0 && row.N != nil {
			n := *row.N + 1
			row.N = &n
		}
		if which&8 != 0 {
			row.V = drawn.V
		}
		if strings.HasPrefix(sets[len(sets)-1], "z = ") {
			row.Z = drawn.Z
		}
		t.rows[id] = row
	}
	t.change(t.rows.changed(before), "UPDATE c SET %s WHERE %s", strings.Join(sets, ", "), p.Text)
}

// merge inserts rows of which some are there: they are replaced, or changed.
func (t *Table) merge() {
	t.tb.Helper()
	ids := t.rows.ids()
	fresh := map[int64]Row{}
	for range 1 + t.r.Intn(20) {
		id := t.next
		if t.r.Intn(2) == 0 {
			id = ids[t.r.Intn(len(ids))]
		} else {
			t.next++
		}
		fresh[id] = drawRow(t.r, id)
	}
	var values []string
	replace := t.r.Intn(2) == 0
	affected := uint64(0)
	for _, id := range slices.Sorted(maps.Keys(fresh)) {
		row := fresh[id]
		values = append(values, row.values(id))
		old, there := t.rows[id]
		affected++
		switch {
		case there && replace:
			affected++ // deleted and inserted
		case there:
			row = Row{Labels: row.Labels, Tag: old.Tag, N: row.N, Z: old.Z, V: old.V}
			if row.line(id) == old.line(id) {
				affected--
			} else {
				affected++
			}
		}
		t.rows[id] = row
	}
	text := fmt.Sprintf("(%s) VALUES %s", modelColumns, strings.Join(values, ","))
	if replace {
		t.do("REPLACE INTO c %s", text)
		return
	}
	t.change(affected, "INSERT INTO c %s ON DUPLICATE KEY UPDATE labels = VALUES(labels), n = VALUES(n)", text)
}

func (t *Table) updateIndices() {
	t.tb.Helper()
	if t.r.Intn(4) == 0 {
		t.do("OPTIMIZE TABLE c")
	} else {
		t.do("CALL lakesql.optimize_indices('c', %d)", t.r.Intn(6))
	}
	have := t.indices()
	for _, name := range []string{LabelIndex, TagIndex, NumberIndex, ZoneIndex, VectorIndex} {
		if !have[name] { // it went with the last of its fragments
			t.createIndex(name)
		}
	}
}

func (t *Table) indices() map[string]bool {
	t.tb.Helper()
	lines, _, err := lakes.AskSession(context.Background(), t.lake.Session, "SELECT index_name FROM lakesql.indices WHERE table_name = 'c'")
	if err != nil {
		t.fail("%v", err)
	}
	out := make(map[string]bool)
	for _, l := range lines {
		out[l] = true
	}
	return out
}

func (t *Table) createIndex(name string) {
	t.tb.Helper()
	t.do("%s", map[string]string{
		LabelIndex: "CREATE INDEX labels_idx ON c (labels) USING LABEL_LIST", TagIndex: "CREATE INDEX tag_idx ON c (tag) USING BITMAP",
		NumberIndex: "CREATE INDEX n_idx ON c (n) USING BTREE", ZoneIndex: "CREATE INDEX z_idx ON c (z) USING ZONEMAP WITH (rows_per_zone = 16)",
		VectorIndex: "CREATE VECTOR INDEX v_idx ON c (v) USING IVF_FLAT WITH (metric = 'l2', num_partitions = 4)",
	}[name])
}

// rebuildIndex drops an index and makes it anew.
func (t *Table) rebuildIndex() {
	t.tb.Helper()
	name := []string{LabelIndex, TagIndex, NumberIndex, ZoneIndex, VectorIndex}[t.r.Intn(5)]
	if t.indices()[name] {
		t.do("DROP INDEX %s ON c", name)
	}
	t.createIndex(name)
}

func (t *Table) restore() {
	t.tb.Helper()
	versions := slices.Sorted(maps.Keys(t.old))
	if len(versions) == 0 {
		return
	}
	v := versions[t.r.Intn(len(versions))]
	t.do("CALL lakesql.restore('c', '%d')", v)
	t.rows, t.columns = maps.Clone(t.old[v].rows), slices.Clone(t.old[v].columns)
}

// transaction makes several changes at once, or none of them.
func (t *Table) transaction() {
	t.tb.Helper()
	before, next := maps.Clone(t.rows), t.next
	t.do("BEGIN")
	for range 2 + t.r.Intn(3) {
		[]func(){func() { t.append(1 + t.r.Intn(20)) }, t.delete, t.update, t.merge}[t.r.Intn(4)]()
		if t.r.Intn(3) == 0 && len(t.rows) > 0 { // what the session sees of itself
			t.sameRows("c", t.rows)
			p := draw(t.r, 2, t.next)
			if got, want := t.ask("SELECT id FROM c WHERE "+p.Text+" ORDER BY id"), p.Holds(t.rows); !slices.Equal(got, want) {
				t.fail("%s within the transaction: finds %s", p.Text, differing(got, want))
			}
		}
		if len(t.rows) < 10 {
			break
		}
	}
	if t.r.Intn(3) == 0 {
		t.do("ROLLBACK")
		t.rows, t.next = before, next
		return
	}
	t.do("COMMIT")
}

// tag names the newest version, and reads the tags that are there.
func (t *Table) tag() {
	t.tb.Helper()
	for name, rows := range t.tags {
		t.sameRows("c AS OF '"+name+"'", rows)
		p := Labels()[t.r.Intn(len(Labels()))]
		if got, want := t.ask(fmt.Sprintf("SELECT id FROM c AS OF '%s' WHERE %s ORDER BY id", name, p.Text)), p.Holds(rows); !slices.Equal(got, want) {
			t.fail("%s of tag %s: finds %s", p.Text, name, differing(got, want))
		}
	}
	if len(t.tags) > 3 {
		name := slices.Min(slices.Collect(maps.Keys(t.tags)))
		t.do("CALL lakesql.delete_tag('c', '%s')", name)
		delete(t.tags, name)
	}
	name := fmt.Sprintf("tag_%04d", t.step)
	t.do("CALL lakesql.create_tag('c', '%s')", name)
	t.tags[name] = maps.Clone(t.rows)
}

// branch makes a branch and takes it away again: the table does not change.
func (t *Table) branch() {
	t.tb.Helper()
	name := fmt.Sprintf("branch_%d", t.step)
	t.do("CALL lakesql.create_branch('c', '%s')", name)
	t.append(3)
	t.check()
	t.do("CALL lakesql.delete_branch('c', '%s')", name)
}

// changeSchema adds, renames or drops a column that the model does not have.
func (t *Table) changeSchema() {
	t.tb.Helper()
	for _, name := range t.columns {
		if wrong := t.ask("SELECT id FROM c WHERE " + name + " IS NULL OR " + name + " <> 7"); len(wrong) > 0 {
			t.fail("column %s of %v is not what it was filled with", name, wrong)
		}
	}
	switch k := t.r.Intn(3); {
	case k == 0 || len(t.columns) == 0:
		t.extra++
		name := fmt.Sprintf("x%d", t.extra)
		t.do("ALTER TABLE c ADD COLUMN %s BIGINT DEFAULT 7", name)
		t.columns = append(slices.Clone(t.columns), name)
	case k == 1:
		t.extra++
		name := fmt.Sprintf("x%d", t.extra)
		t.do("ALTER TABLE c RENAME COLUMN %s TO %s", t.columns[0], name)
		t.columns = append(slices.Clone(t.columns[1:]), name)
	default:
		t.do("ALTER TABLE c DROP COLUMN %s", t.columns[0])
		t.columns = slices.Clone(t.columns[1:])
	}
}

// cleanup removes all versions but the newest and those with a tag.
func (t *Table) cleanup() {
	t.tb.Helper()
	t.do("CALL lakesql.cleanup('c', '0')")
	clear(t.old)
	for name, rows := range t.tags {
		t.sameRows("c AS OF '"+name+"'", rows)
	}
}

// remember keeps the newest version for a restore.
func (t *Table) remember() {
	if len(t.old) > 12 {
		delete(t.old, slices.Min(slices.Collect(maps.Keys(t.old))))
	}
	t.old[t.version()] = past{maps.Clone(t.rows), slices.Clone(t.columns)}
}
