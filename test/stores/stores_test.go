//go:build stores

package stores

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/engine"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/spawn"
	"github.com/lakesql/lakesql/internal/testutil"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/object/cloud"
	"github.com/lakesql/lakesql/storage/object/objecttest"
	"github.com/lakesql/lakesql/write"
)

// drain reads a result to its end.
func drain(res *engine.Result) (out []string, err error) {
	for res.HasRows() {
		b, err := res.Operator.Next(res.Context())
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return out, err
		}
		for i := range int(b.NumRows()) {
			cells := make([]string, b.NumCols())
			for c := range cells {
				cells[c] = b.Column(c).ValueStr(i)
			}
			out = append(out, strings.Clone(strings.Join(cells, "\t")))
		}
		b.Release()
	}
	return out, nil
}

func TestTheServerKeepsTheContractOfStores(t *testing.T) {
	s := startServer(t)
	var n atomic.Int64
	objecttest.Run(t, func(t *testing.T) object.Store { return s.open(t, fmt.Sprintf("contract/%d", n.Add(1))) })
}

// TestOneOfManyConditionalWritesWins is what commits rest on.
func TestOneOfManyConditionalWritesWins(t *testing.T) {
	s := startServer(t)
	for round := range 5 {
		var won atomic.Int64
		g, ctx := spawn.WithContext(context.Background(), 0)
		for i := range 8 {
			g.Go("put", func() error {
				store, err := cloud.Open(ctx, s.url("race"))
				if err != nil {
					return err
				}
				defer func() { _ = store.Close() }()
				err = store.Put(ctx, fmt.Sprintf("%d.manifest", round), fmt.Appendf(nil, "writer %d", i), true)
				if err == nil {
					won.Add(1)
				}
				if errors.Is(err, errs.ErrExists) {
					return nil
				}
				return err
			})
		}
		must(t, g.Wait())
		if won.Load() != 1 {
			t.Errorf("round %d: %d writers won", round, won.Load())
		}
	}
}

var datasets = []string{"labels_v21_churn", "labels_v20_churn", "labels_stable_churn", "vec_ivf_flat_l2", "vec_ivf_pq_l2", "wide_v22", "history", "scalars_v22_7"}

// question is a statement that has one answer wherever the lake lies.
type question struct {
	settings []string
	text     string
}

func questions() []question {
	q := strings.TrimSuffix(strings.Repeat("0.25,", 16), ",")
	nearest := " ORDER BY l2_distance(v, [" + q + "]), id LIMIT "
	force := []string{"SET ann = 'force'", "SET nprobes = 1000", "SET refine_factor = 20"}
	out := []question{
		{nil, "SELECT * FROM labels_v21_churn ORDER BY id"}, {nil, "SELECT * FROM labels_v20_churn ORDER BY id"}, {nil, "SELECT * FROM wide_v22 ORDER BY id"}, {nil, "SELECT * FROM scalars_v22_7"},
		{nil, "SELECT id FROM labels_v21_churn WHERE array_has(labels, 'ai') AND NOT array_has_any(labels, ['comedy','drama']) ORDER BY id"},
		{nil, "SELECT id FROM labels_stable_churn WHERE array_has_all(labels, ['ai','database']) OR array_has(labels, 'editor') ORDER BY id"},
		{nil, "SELECT id, l2_distance(v, [" + q + "]) FROM vec_ivf_flat_l2" + nearest + "25"},
		{force, "SELECT id FROM vec_ivf_flat_l2 WHERE array_has(labels, 'ai')" + nearest + "25"},
		{force, "SELECT id FROM vec_ivf_pq_l2" + nearest + "10"},
		{[]string{"SET glm = 'on'"}, "SELECT id, wide FROM vec_ivf_flat_l2" + nearest + "40"},
		{[]string{"SET glm = 'off'"}, "SELECT id, wide FROM vec_ivf_flat_l2" + nearest + "40"},
		{nil, "SELECT * FROM history AS OF 'v_first' ORDER BY id"},
		{nil, "SELECT a.tenant, COUNT(*), MIN(b.name) FROM (SELECT id, tenant FROM vec_ivf_flat_l2" + nearest + "200) a JOIN labels_v21_churn b ON a.id = b.id GROUP BY a.tenant ORDER BY a.tenant"},
	}
	for v := 1; v <= 7; v++ {
		out = append(out, question{nil, fmt.Sprintf("SELECT id, labels FROM history AS OF %d ORDER BY id", v)})
	}
	return out
}

// TestAnswersAreThoseOfTheLakeOnDisk asks one session after the other, then all questions from many sessions at one time.
func TestAnswersAreThoseOfTheLakeOnDisk(t *testing.T) {
	s := startServer(t)
	s.upload(t, "lake/of/parcels", datasets...)
	local, err := object.OpenLocal(filepath.Join(testutil.Root(t), "testdata", "lance"), object.LocalOptions{})
	must(t, err)
	disk := openEngine(t, local, false)
	want := make(map[string][]string)
	for _, q := range questions() {
		rows, err := rowsOf(context.Background(), disk, q.settings, q.text)
		must(t, err)
		if len(rows) == 0 {
			t.Fatalf("%s has no rows", q.text)
		}
		want[fmt.Sprint(q)] = rows
	}
	check := func(ctx context.Context, e *engine.Engine, q question) error {
		got, err := rowsOf(ctx, e, q.settings, q.text)
		if err == nil && !slices.Equal(got, want[fmt.Sprint(q)]) {
			err = fmt.Errorf("%s: %d rows, on disk %d, and they differ", q.text, len(got), len(want[fmt.Sprint(q)]))
		}
		return err
	}
	e := openEngine(t, s.open(t, "lake/of/parcels"), true)
	for _, q := range questions() {
		start := time.Now()
		if err := check(context.Background(), e, q); err != nil {
			t.Error(err)
		}
		t.Logf("%v: %.60s", time.Since(start).Round(time.Millisecond), q.text)
	}
	fresh := openEngine(t, s.open(t, "lake/of/parcels"), true) // its caches are empty when all start
	g, ctx := spawn.WithContext(context.Background(), 0)
	for worker := range 12 {
		g.Go("ask", func() error {
			all := questions()
			rand.New(rand.NewSource(int64(worker))).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			for _, q := range all {
				if err := check(ctx, fresh, q); err != nil {
					return err
				}
			}
			return nil
		})
	}
	must(t, g.Wait())
	if used := fresh.Budget().Used(); used != 0 {
		t.Errorf("%d bytes are still reserved", used)
	}
}

// TestCredentials: they come from the environment, or from a profile that the URL names; wrong ones are a clear refusal.
func TestCredentials(t *testing.T) {
	s := startServer(t)
	s.upload(t, "lake", "history")
	count := func(where string) (string, error) {
		store, err := cloud.Open(context.Background(), where)
		must(t, err)
		rows, err := rowsOf(context.Background(), openEngine(t, store, true), nil, "SELECT COUNT(*) FROM history")
		return strings.Join(rows, ","), err
	}
	if n, err := count(s.url("lake")); err != nil || n != "140" {
		t.Errorf("by the environment: %s %v", n, err)
	}
	t.Setenv("AWS_SECRET_ACCESS_KEY", "wrong")
	if _, err := count(s.url("lake")); !errors.Is(err, errs.ErrPermission) {
		t.Errorf("with a wrong secret: %v", err)
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "nobody")
	if _, err := count(s.url("lake")); err == nil || !strings.Contains(err.Error(), "access key") { // the server has a code of its own for it
		t.Errorf("as nobody: %v", err)
	}
	file := filepath.Join(t.TempDir(), "credentials")
	must(t, os.WriteFile(file, fmt.Appendf(nil, "[parcels]\naws_access_key_id = %s\naws_secret_access_key = %s\n", accessKey, secretKey), 0o600))
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", file)
	for _, v := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} {
		must(t, os.Unsetenv(v)) // t.Setenv above puts the old value back
	}
	if n, err := count(s.url("lake", "profile", "parcels")); err != nil || n != "140" {
		t.Errorf("by a profile: %s %v", n, err)
	}
}

const (
	fragments    = 8
	fragmentRows = 4000
)

var columns = arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: "wide", Type: arrow.BinaryTypes.Binary, Nullable: true}}, nil)

// rows yields one batch of values that cannot be compressed for each fragment.
type rows struct{ at int }

func (r *rows) Next(context.Context) (arrow.RecordBatch, error) {
	if r.at == fragments {
		return nil, io.EOF
	}
	rnd := rand.New(rand.NewSource(int64(r.at)))
	b := array.NewRecordBuilder(memory.DefaultAllocator, columns)
	defer b.Release()
	value := make([]byte, 2048)
	for i := range fragmentRows {
		b.Field(0).(*array.Int64Builder).Append(int64(r.at*fragmentRows + i))
		rnd.Read(value)
		b.Field(1).(*array.BinaryBuilder).Append(value)
	}
	r.at++
	return b.NewRecordBatch(), nil
}

// TestAServerThatGoesAway writes a table of 64 MiB over the protocol, then kills the server while statements read it: they end with an error that names what was
// read, the engine goes on, and the same engine answers again when the server is back.
func TestAServerThatGoesAway(t *testing.T) {
	s := startServer(t)
	store := s.open(t, "lake")
	ctx := context.Background()
	_, err := write.CreateTable(ctx, write.Target{Store: store, Dir: "t.lance"}, columns, write.CreateOptions{Parts: []write.Batches{&rows{}}, Rows: write.RowOptions{FragmentRows: fragmentRows}})
	must(t, err)
	e := openEngine(t, store, true)
	if n, err := rowsOf(ctx, e, nil, "SELECT COUNT(*), SUM(id), SUM(LENGTH(wide)) FROM t"); err != nil || n[0] != fmt.Sprintf("%d\t%d\t%d", fragments*fragmentRows, fragments*fragmentRows*(fragments*fragmentRows-1)/2, fragments*fragmentRows*2048) {
		t.Fatalf("%v %v", n, err)
	}
	for _, text := range []string{"SELECT id, wide FROM t", "SELECT id, wide FROM t ORDER BY wide LIMIT 500"} {
		started := time.Now()
		err := killDuring(t, s, e, text)
		t.Logf("%s: after %v: %v", text, time.Since(started).Round(time.Millisecond), err)
		if !errors.Is(err, errs.ErrIO) || !strings.Contains(err.Error(), "t.lance/data/") {
			t.Errorf("%s: %v", text, err)
		}
		if took := time.Since(started); took > 90*time.Second {
			t.Errorf("%s: the error took %v", text, took)
		}
		if got, err := rowsOf(ctx, e, nil, "SELECT 1"); err != nil || len(got) != 1 {
			t.Errorf("while the server is away: %v %v", got, err)
		}
		s.start(t)
		if got, err := rowsOf(ctx, e, nil, "SELECT COUNT(wide) FROM t"); err != nil || got[0] != fmt.Sprint(fragments*fragmentRows) {
			t.Errorf("when the server is back: %v %v", got, err)
		}
		if used := e.Budget().Used(); used != 0 {
			t.Errorf("%d bytes are still reserved", used)
		}
	}
}

// killDuring kills the server once the statement runs: at its first batch, or a little after its start where the first batch comes last.
func killDuring(t *testing.T, s *s3Server, e *engine.Engine, text string) (err error) {
	t.Helper()
	session := e.NewSession(engine.SessionOptions{Database: "lake"})
	defer session.Close()
	res, err := session.Query(context.Background(), text)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, res.Close()) }()
	if strings.Contains(text, "ORDER BY") {
		s.kill(t)
	} else {
		b, err := res.Operator.Next(res.Context())
		if err != nil {
			return err
		}
		b.Release()
		s.kill(t)
	}
	_, err = drain(res)
	return err
}

// TestCommitsOverTheProtocol appends from two writers at one time: every row of both is there, each version is whole.
func TestCommitsOverTheProtocol(t *testing.T) {
	s := startServer(t)
	ctx := context.Background()
	first := s.open(t, "lake")
	_, err := write.CreateTable(ctx, write.Target{Store: first, Dir: "t.lance"}, columns, write.CreateOptions{Parts: []write.Batches{&rows{at: fragments - 1}}})
	must(t, err)
	must(t, first.Close())
	g, gctx := spawn.WithContext(ctx, 0)
	for range 2 {
		g.Go("append", func() error {
			store, err := cloud.Open(gctx, s.url("lake"))
			if err != nil {
				return err
			}
			defer func() { _ = store.Close() }()
			for range 3 {
				if _, err := write.Append(gctx, write.Target{Store: store, Dir: "t.lance"}, &rows{at: fragments - 1}, write.AppendOptions{}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	must(t, g.Wait())
	store := s.open(t, "lake")
	e := openEngine(t, store, true)
	for v := 1; v <= 7; v++ {
		got, err := rowsOf(ctx, e, nil, fmt.Sprintf("SELECT COUNT(*), COUNT(DISTINCT id) FROM t AS OF %d", v))
		if err != nil || got[0] != fmt.Sprintf("%d\t%d", v*fragmentRows, fragmentRows) {
			t.Errorf("version %d: %v %v", v, got, err)
		}
	}
}

// TestABucketThatIsNotThere is told apart from an empty one.
func TestABucketThatIsNotThere(t *testing.T) {
	s := startServer(t)
	store, err := cloud.Open(context.Background(), strings.Replace(s.url("lake"), bucket, "nosuchbucket", 1))
	must(t, err)
	e := openEngine(t, store, true)
	if _, err := rowsOf(context.Background(), e, nil, "SHOW TABLES"); !errors.Is(err, errs.ErrNotFound) {
		t.Errorf("tables of a bucket that is not there: %v", err)
	}
	empty := openEngine(t, s.open(t, "nothing/here"), true)
	if got, err := rowsOf(context.Background(), empty, nil, "SHOW TABLES"); err != nil || len(got) != 0 {
		t.Errorf("tables of an empty folder: %v %v", got, err)
	}
}
