package crash

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"strconv"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/lakesql/lakesql/internal/spawn"
	"github.com/lakesql/lakesql/planner/gms/mysqlerr"
)

// Rivals is the table that rivals change: counters that all of them count up, and rows that each keeps for itself.
var Rivals = []string{
	"CREATE TABLE rivals (id BIGINT NOT NULL PRIMARY KEY, n BIGINT, labels LIST<VARCHAR>) WITH (rows_per_fragment = 16)",
	"INSERT INTO rivals VALUES (0, 0, ['counter']), (1, 0, ['counter']), (2, 0, ['counter']), (3, 0, ['counter'])",
	"CREATE INDEX by_id ON rivals (id) USING BTREE",
}

const counters = 4

// ownRows is where the ids of a writer's own rows begin: at its number times this.
const ownRows = 1000

// Asker runs one statement of a session and returns lines of cells.
type Asker func(ctx context.Context, text string) ([]string, error)

// Rival is one writer.
type Rival struct {
	Number int // from 1
	Ask    Asker
	Rounds int
	Seed   int64
	// MayFail says that errors other than a conflict leave open what became of the statement; without it they end the writer.
	MayFail bool
	// Plain says that the writer knows UPDATE, INSERT and DELETE of a row alone, and OPTIMIZE: it is no session of ours.
	Plain bool
	// Gone says that the session is lost and the writer has ended; nil = never.
	Gone func(error) bool

	Counted   map[int]int  // by counter: increments that were acknowledged
	Maybe     map[int]int  // those of which nobody knows
	Own       map[int]bool // own rows that are there
	MaybeOwn  map[int]bool // own rows that may be there
	Conflicts int
}

// Compete lets rivals write at the same time until all have ended.
func Compete(ctx context.Context, rivals []*Rival) error {
	g, ctx := spawn.WithContext(ctx, 0)
	for _, r := range rivals {
		r.Counted, r.Maybe, r.Own, r.MaybeOwn = map[int]int{}, map[int]int{}, map[int]bool{}, map[int]bool{}
		g.Go("rival", func() error { return r.write(ctx) })
	}
	return g.Wait()
}

// write works off the rounds.
func (r *Rival) write(ctx context.Context) error {
	rnd := rand.New(rand.NewSource(r.Seed + int64(r.Number)))
	for round := range r.Rounds {
		var err error
		switch k := rnd.Intn(10); {
		case k < 4:
			err = r.count(ctx, rnd.Intn(counters))
		case k < 5 && !r.Plain:
			err = r.countTwo(ctx, rnd.Intn(counters), rnd.Intn(counters))
		case k < 7:
			err = r.insert(ctx, r.Number*ownRows+round)
		case k < 8:
			err = r.remove(ctx, rnd)
		case k < 9 || r.Plain:
			err = r.aside(ctx, "OPTIMIZE TABLE rivals")
		default:
			name := fmt.Sprintf("by_label_%d", r.Number)
			if err = r.aside(ctx, "CREATE INDEX "+name+" ON rivals (labels) USING LABEL_LIST"); err == nil {
				err = r.aside(ctx, "DROP INDEX "+name+" ON rivals")
			}
		}
		if err != nil && r.Gone != nil && r.Gone(err) {
			return nil
		}
		if err != nil && !r.MayFail {
			return fmt.Errorf("writer %d, round %d: %w", r.Number, round, err)
		}
	}
	return nil
}

// outcome sorts what became of a statement.
type outcome int

const (
	done outcome = iota
	refused
	unknown
)

// do runs statements in turn. The error is that of an outcome that is unknown.
func (r *Rival) do(ctx context.Context, texts ...string) (outcome, error) {
	for _, text := range texts {
		if _, err := r.Ask(ctx, text); err != nil {
			if numberOf(err) == conflict {
				r.Conflicts++
				return refused, nil
			}
			return unknown, fmt.Errorf("%s: %w", text, err)
		}
	}
	return done, nil
}

const conflict = 1213

// numberOf is the MySQL number of an error, of a session's or of a connection's.
func numberOf(err error) int {
	var wire *mysql.MySQLError
	if errors.As(err, &wire) {
		return int(wire.Number)
	}
	return mysqlerr.Convert(err).Num
}

func (r *Rival) count(ctx context.Context, counter int) error {
	was, err := r.do(ctx, fmt.Sprintf("UPDATE rivals SET n = n + 1 WHERE id = %d", counter))
	r.tally(was, counter)
	return err
}

func (r *Rival) tally(was outcome, counters ...int) {
	for _, c := range counters {
		switch was {
		case done:
			r.Counted[c]++
		case unknown:
			r.Maybe[c]++
		case refused:
		}
	}
}

// countTwo counts in a transaction that reads what it has written.
func (r *Rival) countTwo(ctx context.Context, a, b int) error {
	was, err := r.do(ctx, "BEGIN", fmt.Sprintf("UPDATE rivals SET n = n + 1 WHERE id = %d", a), fmt.Sprintf("UPDATE rivals SET n = n + 1 WHERE id = %d", b), "COMMIT")
	r.tally(was, a, b)
	if was != done {
		_, end := r.Ask(ctx, "ROLLBACK")
		err = errors.Join(err, end)
	}
	return err
}

func (r *Rival) insert(ctx context.Context, id int) error {
	was, err := r.do(ctx, fmt.Sprintf("INSERT INTO rivals VALUES (%d, %d, ['own', 'w%d'])", id, id, r.Number))
	switch was {
	case done:
		r.Own[id] = true
	case unknown:
		r.MaybeOwn[id] = true
	case refused:
		return errors.Join(err, fmt.Errorf("an INSERT met a conflict"))
	}
	return err
}

// remove deletes a row of the writer's own, if there is one.
func (r *Rival) remove(ctx context.Context, rnd *rand.Rand) error {
	all := slices.Sorted(maps.Keys(r.Own))
	if len(all) == 0 {
		return nil
	}
	id := all[rnd.Intn(len(all))]
	was, err := r.do(ctx, fmt.Sprintf("DELETE FROM rivals WHERE id = %d", id))
	if was != refused {
		delete(r.Own, id)
	}
	if was == unknown {
		r.MaybeOwn[id] = true
	}
	return err
}

// aside is work that changes no row and may lose against others.
func (r *Rival) aside(ctx context.Context, text string) error {
	_, err := r.do(ctx, text)
	return err
}

// CheckRivals compares the table with what writers were told: no increment and no row is lost or there twice.
func CheckRivals(ctx context.Context, ask Asker, rivals []*Rival) error {
	least, most, rows, maybe := map[int]int{}, map[int]int{}, map[int]bool{}, map[int]bool{}
	for _, r := range rivals {
		for c := range counters {
			least[c] += r.Counted[c]
			most[c] += r.Counted[c] + r.Maybe[c]
		}
		maps.Copy(rows, r.Own)
		maps.Copy(maybe, r.MaybeOwn)
	}
	got, err := ask(ctx, "SELECT id, n FROM rivals ORDER BY id, n")
	if err != nil {
		return err
	}
	seen := map[int]bool{}
	for _, line := range got {
		var id, n int
		if _, err := fmt.Sscan(line, &id, &n); err != nil {
			return fmt.Errorf("%q: %w", line, err)
		}
		switch {
		case seen[id]:
			return fmt.Errorf("row %d is there twice", id)
		case id < counters && (n < least[id] || n > most[id]):
			return fmt.Errorf("counter %d says %d, %d to %d increments were made", id, n, least[id], most[id])
		case id >= counters && (n != id || !rows[id] && !maybe[id]):
			return fmt.Errorf("row %d with %d was deleted or never written", id, n)
		}
		seen[id] = true
	}
	for id := range counters {
		rows[id] = true
	}
	for id := range rows {
		if !seen[id] {
			return fmt.Errorf("row %d is lost", id)
		}
	}
	return indexed(ctx, ask, got)
}

// indexed asks by index for each row that a scan has seen.
func indexed(ctx context.Context, ask Asker, scanned []string) error {
	for _, line := range scanned {
		id, _, _ := strings.Cut(line, "\t")
		got, err := ask(ctx, "SELECT id, n FROM rivals WHERE id = "+id)
		if err != nil || !slices.Equal(got, []string{line}) {
			return fmt.Errorf("by index %q, by scan %q: %w", got, line, err)
		}
	}
	own := 0
	for _, line := range scanned {
		if id, _, _ := strings.Cut(line, "\t"); len(id) > 1 {
			own++
		}
	}
	got, err := ask(ctx, "SELECT COUNT(*) FROM rivals WHERE array_has(labels, 'own')")
	if err != nil || !slices.Equal(got, []string{strconv.Itoa(own)}) {
		return fmt.Errorf("%q rows by label, by scan %d: %w", got, own, err)
	}
	return nil
}
