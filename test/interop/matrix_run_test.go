//go:build interop

package interop

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/engine"
	"github.com/lakesql/lakesql/internal/testutil"
	"github.com/lakesql/lakesql/server"
	"github.com/lakesql/lakesql/source"
	"github.com/lakesql/lakesql/source/lance"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/test/lakes"
)

// story runs a case: the table, the model beside it, the engine and lakesql's doors.
type story struct {
	*testing.T
	c       Case
	eng     *Engine
	lake    *lakes.Lake
	dir     string
	name    string // of the table
	seed    *seed
	next    int // first row of the seed that was not used
	model   *model
	steps   int
	foreign string // the foreign index's name
	// engineIsWrong: the engine's own index update left entries of rows that it had updated (docs/format/label_list.md section 5); its answers by index are not asked for
	engineIsWrong bool
}

// runCase tells one story.
func runCase(t *testing.T, c Case, eng *Engine) {
	t.Helper()
	s := &story{T: t, c: c, eng: eng.On(t), dir: t.TempDir(), name: "t", model: &model{key: c.key(), column: "k", rows: map[int64]modelRow{}}}
	s.seed = newSeed(c.shape(), c.key(), c.version())
	s.openLake()
	s.ours("CREATE TABLE t LIKE seed.`rows`")
	s.insert(90)
	s.createIndex()
	s.foreign = "foreign_idx"
	s.eng.Do("create_index", Request{"path": s.path(), "column": "note", "kind": c.foreign(), "name": s.foreign}, nil)
	s.check("created and indexed")
	s.weDo(c.ours())
	s.check("lakesql: " + c.ours())
	s.theyDo(c.theirs())
	s.check("the engine: " + c.theirs())
	s.weGoOn()
	s.check("lakesql goes on")
	s.tidy()
	s.check("lakesql tidies up")
}

// openLake opens the lake, and beside it one with the seed in the table that all are made like.
func (s *story) openLake() {
	s.Helper()
	seeds := s.TempDir()
	writeSeed(s.T, seeds, s.c, s.seed)
	store, err := object.OpenLocal(seeds, object.LocalOptions{})
	if err != nil {
		s.Fatal(err)
	}
	s.lake = lakes.Open(s.T, s.dir, engine.Config{Catalogs: []source.Catalog{lance.Open("seed", store, lance.Options{})}}).Serve(s.T, server.Options{})
	s.lake.Set(s.T, "SET nprobes = 64")
}

func (s *story) path() string { return filepath.Join(s.dir, s.name+".lance") }

// ours runs a statement, at one door after the other.
func (s *story) ours(format string, args ...any) []string {
	s.Helper()
	doors := s.lake.Doors()
	text := fmt.Sprintf(format, args...)
	if !strings.HasPrefix(text, "SELECT") && !strings.HasPrefix(text, "INSERT") && !strings.HasPrefix(text, "UPDATE") && !strings.HasPrefix(text, "DELETE") {
		doors = doors[:2] // definitions are not prepared
	}
	s.steps++
	d := doors[s.steps%len(doors)]
	got, err := d.Ask(context.Background(), text)
	if err != nil {
		s.Fatalf("%s (%s): %v", text, d.Name, err)
	}
	return got
}

// take names the next n rows of the seed.
func (s *story) take(n int) (ids []int64) {
	for range n {
		ids = append(ids, int64(s.next))
		s.next++
	}
	return ids
}

// insert puts rows of the seed into the table by SQL.
func (s *story) insert(n int) {
	s.Helper()
	ids := s.take(n)
	s.ours("INSERT INTO %s SELECT * FROM seed.`rows` WHERE id BETWEEN %d AND %d", s.name, ids[0], ids[n-1])
	s.model.add(s.seed, ids...)
}

func (s *story) createIndex() {
	s.Helper()
	if s.c.kind() == "IVF_FLAT" {
		s.ours("CREATE VECTOR INDEX k_idx ON %s (%s) USING IVF_FLAT WITH (metric = '%s', num_partitions = 3)", s.name, s.model.column, s.c.key().metric)
		return
	}
	with := ""
	if s.c.kind() == "ZONEMAP" {
		with = " WITH (rows_per_zone = 16)"
	}
	s.ours("CREATE INDEX k_idx ON %s (%s) USING %s%s", s.name, s.model.column, s.c.kind(), with)
}

// engineCheck is what the engine answers to check.
type engineCheck struct {
	Answers []struct {
		Plan        string
		Index, Scan []int64
	}
	Texts   [][]int64
	Indices map[string]struct{ Covered, Uncovered, Segments int64 }
}

// nearest are the searches of a vector column.
func (s *story) nearest() (out []nearestQuestion) {
	function := map[string]string{"l2": "l2_distance", "cosine": "cosine_distance", "dot": "dot_distance"}[s.c.key().metric]
	for _, above := range []int64{-1, 60} {
		q := nearestQuestion{k: 12, above: above, theirs: map[string]any{"column": s.model.column, "q": queryVector, "k": 12, "metric": s.c.key().metric}}
		where := ""
		if above >= 0 {
			where = fmt.Sprintf("WHERE id > %d ", above)
			q.theirs["filter"] = fmt.Sprintf("id > %d", above)
		}
		q.ours = fmt.Sprintf("SELECT id FROM %s %sORDER BY %s(%s, '[40.3,3,2,1]') LIMIT %d", s.name, where, function, s.model.column, q.k)
		out = append(out, q)
	}
	return out
}

// check compares everything after a step.
func (s *story) check(after string) {
	s.Helper()
	if s.Failed() {
		s.FailNow()
	}
	asked := Request{"path": s.path()}
	var qs []question
	var ns []nearestQuestion
	if s.c.kind() == "IVF_FLAT" {
		ns = s.nearest()
		var theirs []map[string]any
		for _, n := range ns {
			theirs = append(theirs, n.theirs)
		}
		asked["nearest"] = theirs
	} else {
		qs = questions(s.c.kind(), s.c.key(), s.model.column)
	}
	var filters []string
	for _, q := range qs {
		filters = append(filters, q.theirs)
	}
	foreign := s.foreignQuestions()
	for _, q := range foreign {
		filters = append(filters, q.theirs)
	}
	asked["filters"] = filters
	if s.c.foreign() == "INVERTED" && s.foreign != "" {
		asked["texts"] = [][2]string{{"note", "number"}, {"note", "word"}}
	}
	asked["out"] = s.eng.newFile()
	var got engineCheck
	s.eng.Do("check", asked, &got)
	s.sameRows(after, asked["out"].(string))
	s.sameFilters(after, append(qs, foreign...), got)
	s.sameSearches(after, ns, got)
	s.sameTexts(after, got)
	s.sameCoverage(after, got)
}

// foreignQuestions ask the engine's index of a kind that lakesql does not know.
func (s *story) foreignQuestions() []question {
	if s.foreign == "" {
		return nil
	}
	switch s.c.foreign() {
	case "NGRAM":
		return []question{{theirs: "contains(note, 'number 3')"}, {theirs: "contains(note, 'changed')"}}
	case "BLOOMFILTER":
		return []question{{theirs: "note = 'note number 3 of '"}, {theirs: "note = 'changed'"}}
	}
	return nil
}

// sameRows compares all columns of all rows as lakesql and as the engine read them with the model.
func (s *story) sameRows(after, file string) {
	s.Helper()
	ours, err := lakes.Rows(context.Background(), s.lake.Session, "SELECT * FROM "+s.name)
	if err != nil {
		s.Fatalf("%s: %v", after, err)
	}
	s.sameAsModel(after+": lakesql", ours, s.model)
	s.sameAsModel(after+": the engine", tableRows(s.T, file), s.model)
}

func (s *story) sameAsModel(what string, got []map[string]any, m *model) {
	s.Helper()
	if len(got) != len(m.rows) {
		s.Fatalf("%s reads %d rows, want %d", what, len(got), len(m.rows))
	}
	for _, row := range got {
		id, want := idOf(row), modelRow{}
		want, ok := m.rows[id]
		if !ok {
			s.Fatalf("%s reads a row %d, or reads it twice", what, id)
		}
		testutil.CompareRow(s.T, fmt.Sprintf("%s: row %d", what, id), row, want.cells)
	}
	if n := len(slices.CompactFunc(slices.SortedFunc(slices.Values(got), func(a, b map[string]any) int { return int(idOf(a) - idOf(b)) }),
		func(a, b map[string]any) bool { return idOf(a) == idOf(b) })); n != len(got) {
		s.Fatalf("%s reads %d different rows, want %d", what, n, len(got))
	}
}

// sameFilters compares the engine by index and by scan, lakesql by index and by scan, and the model.
func (s *story) sameFilters(after string, qs []question, got engineCheck) {
	s.Helper()
	for i, q := range qs {
		a := got.Answers[i]
		slices.Sort(a.Index)
		slices.Sort(a.Scan)
		if q.ours == "" { // for the engine alone
			if !slices.Equal(a.Index, a.Scan) || got.Indices[s.foreign].Covered > 0 && !strings.Contains(a.Plan, s.foreign) {
				s.Errorf("%s, %s: the engine finds %v by its index, %v by scan: %s", after, q.theirs, a.Index, a.Scan, a.Plan)
			}
			continue
		}
		want := s.model.ids(func(_ int64, r modelRow) bool { return q.holds(r.key) == isTrue })
		if !slices.Equal(a.Scan, want) {
			s.Errorf("%s, %s: the engine's scan finds %v, want %v", after, q.theirs, a.Scan, want)
		}
		if !slices.Equal(a.Index, want) && !s.engineIsWrong {
			s.Errorf("%s, %s: the engine's index finds %v, want %v: %s", after, q.theirs, a.Index, want, a.Plan)
		}
		if q.named && got.Indices["k_idx"].Covered > 0 && !strings.Contains(a.Plan, "k_idx") {
			s.Errorf("%s, %s: the engine's plan does not name the index: %s", after, q.theirs, a.Plan)
		}
		for _, prefilter := range []string{"index", "scan"} {
			s.lake.Set(s.T, "SET prefilter = '"+prefilter+"'")
			if found := s.idsBy("SELECT id FROM %s WHERE %s", s.name, q.ours); !slices.Equal(found, want) {
				s.Errorf("%s, %s, prefilter %s: lakesql finds %v, want %v", after, q.ours, prefilter, found, want)
			}
		}
	}
	if s.lake.Set(s.T, "SET prefilter = 'index'"); len(qs) > 0 && qs[0].ours != "" {
		if plan := s.lake.Explain(s.T, fmt.Sprintf("SELECT id FROM %s WHERE %s", s.name, qs[0].ours)); !strings.Contains(plan, "k_idx") {
			s.Errorf("%s, %s: lakesql's plan does not name the index: %s", after, qs[0].ours, plan)
		}
	}
	s.lake.Set(s.T, "SET prefilter = 'auto'")
}

func (s *story) idsBy(format string, args ...any) []int64 {
	s.Helper()
	out := s.inOrder(format, args...)
	slices.Sort(out)
	return out
}

func (s *story) inOrder(format string, args ...any) (out []int64) {
	s.Helper()
	for _, line := range s.ours(format, args...) {
		var id int64
		if _, err := fmt.Sscan(line, &id); err != nil {
			s.Fatal(err)
		}
		out = append(out, id)
	}
	return out
}

// sameSearches compares the engine through the index and by brute force, and lakesql both ways, with the distances of the model: rows at one distance are alike.
func (s *story) sameSearches(after string, ns []nearestQuestion, got engineCheck) {
	s.Helper()
	for i, n := range ns {
		a := got.Answers[i+len(got.Answers)-len(ns)]
		want := s.model.nearest(n)
		same := func(who string, ids []int64) {
			s.Helper()
			ids = slices.DeleteFunc(slices.Clone(ids), func(id int64) bool { return s.model.rows[id].key.null }) // of a place without a vector MySQL knows, the engine does not
			if found := s.model.distances(n, ids); !slices.Equal(found, want) {
				s.Errorf("%s, %v: %s finds %v at %v, want %v", after, n.theirs, who, ids, found, want)
			}
		}
		same("the engine's index", a.Index)
		same("the engine's scan", a.Scan)
		if !strings.Contains(a.Plan, "k_idx") {
			s.Errorf("%s: the engine's plan does not name the index: %s", after, a.Plan)
		}
		for _, ann := range []string{"force", "off"} {
			s.lake.Set(s.T, "SET ann = '"+ann+"'")
			same("lakesql, ann "+ann+",", s.inOrder("%s", n.ours))
			if plan := s.lake.Explain(s.T, n.ours); strings.Contains(plan, "k_idx") != (ann == "force") {
				s.Errorf("%s, %s, ann %s: lakesql's plan: %s", after, n.ours, ann, plan)
			}
		}
		s.lake.Set(s.T, "SET ann = 'auto'")
	}
}

func (s *story) sameTexts(after string, got engineCheck) {
	s.Helper()
	for i, word := range []string{"number", "word"}[:len(got.Texts)] {
		slices.Sort(got.Texts[i])
		want := s.model.ids(func(_ int64, r modelRow) bool {
			note, _ := r.cells["note"].(string)
			return strings.Contains(note, word)
		})
		if !slices.Equal(got.Texts[i], want) {
			s.Errorf("%s: the engine's index of texts finds %v for %q, want %v", after, got.Texts[i], word, want)
		}
	}
}

// sameCoverage compares lakesql.indices with the engine's statistics.
func (s *story) sameCoverage(after string, got engineCheck) {
	s.Helper()
	want := make(map[string]string)
	for name, i := range got.Indices {
		want[name] = fmt.Sprintf("%d\t%d\t%d", i.Covered, i.Uncovered, i.Segments)
	}
	found := make(map[string]string)
	for _, line := range s.ours("SELECT index_name, covered_rows, uncovered_rows, segments FROM lakesql.indices WHERE database_name = 'lake' AND table_name = '%s'", s.name) {
		name, rest, _ := strings.Cut(line, "\t")
		found[name] = rest
	}
	for name := range want {
		if found[name] != want[name] {
			s.Errorf("%s: lakesql.indices says of %s %q, the engine %q", after, name, found[name], want[name])
		}
	}
	if len(found) != len(want) || found["k_idx"] == "" || s.foreign != "" && found[s.foreign] == "" {
		s.Errorf("%s: lakesql lists the indices %v, the engine %v", after, found, want)
	}
}

// idOf reads a row's id.
func idOf(row map[string]any) int64 {
	var id int64
	_, _ = fmt.Sscan(fmt.Sprint(row["id"]), &id)
	return id
}

// slice of the seed as a batch.
func (s *seed) slice(ids []int64) arrow.RecordBatch {
	return s.batch.NewSlice(ids[0], ids[len(ids)-1]+1)
}
