//go:build stores

package stores

import (
	"context"
	"fmt"
	"math/rand"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/lakesql/lakesql/engine"
	"github.com/lakesql/lakesql/internal/spawn"
	"github.com/lakesql/lakesql/planner/gms/mysqlerr"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/object/cloud"
	"github.com/lakesql/lakesql/test/crash"
)

// fault is what becomes of a request on its way.
type fault int

const (
	passed    fault = iota
	cut             // the connection ends before the server has seen the request
	swallowed       // it ends before the client has seen the answer
	refused         // the server has no conditional writes, and says so
	lied            // or takes no notice of the condition
)

// wire is a connection to the server that loses requests and answers.
type wire struct {
	*httptest.Server

	mu      sync.Mutex
	decide  func(n int, r *http.Request) fault
	changes int // requests that change something
}

// connect puts a wire before the server. decide is asked of every request that changes something, numbered from 1.
func (s *s3Server) connect(t *testing.T, decide func(n int, r *http.Request) fault) *wire {
	t.Helper()
	to, err := url.Parse("http://" + s.addr)
	must(t, err)
	w := &wire{decide: decide}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to); r.Out.Host = r.In.Host }, ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }}
	w.Server = httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		switch w.next(r) {
		case passed:
			proxy.ServeHTTP(out, r)
		case cut:
			panic(http.ErrAbortHandler)
		case swallowed:
			proxy.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		case refused:
			out.WriteHeader(http.StatusNotImplemented)
			_, _ = out.Write([]byte(`<?xml version="1.0"?><Error><Code>NotImplemented</Code><Message>A header you provided implies functionality that is not implemented.</Message></Error>`))
		case lied:
			proxy.ServeHTTP(httptest.NewRecorder(), r)
			out.Header().Set("ETag", `"0"`)
		}
	}))
	t.Cleanup(w.Server.Close)
	return w
}

func (w *wire) next(r *http.Request) fault {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.changes++
	}
	return w.decide(w.changes, r)
}

func changes(r *http.Request) bool { return r.Method != http.MethodGet && r.Method != http.MethodHead }

// through opens the store behind the wire.
func (s *s3Server) through(t *testing.T, w *wire, prefix string) object.Store {
	t.Helper()
	store, err := cloud.Open(context.Background(), strings.Replace(s.url(prefix), url.QueryEscape("http://"+s.addr), url.QueryEscape(w.URL), 1))
	must(t, err)
	return store
}

func sessionOf(t *testing.T, store object.Store) *engine.Session {
	t.Helper()
	s := openEngine(t, store, true).NewSession(engine.SessionOptions{Database: "lake"})
	t.Cleanup(s.Close)
	return s
}

func asker(s *engine.Session) crash.Asker {
	return func(_ context.Context, text string) ([]string, error) { return crash.Ask(s, text) }
}

// TestRivalsOverTheProtocol lets two and four engines write to one table, over a wire that loses no answer and over one that loses many.
func TestRivalsOverTheProtocol(t *testing.T) {
	s := startServer(t)
	ctx := context.Background()
	for _, c := range []struct {
		writers int
		lost    float64
	}{{2, 0}, {4, 0}, {2, 0.1}} {
		name := fmt.Sprintf("%d writers, %v lost", c.writers, c.lost)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			prefix := fmt.Sprintf("rivals%d-%v", c.writers, c.lost)
			direct := sessionOf(t, s.open(t, prefix))
			must(t, crash.Run(direct, crash.Rivals...))
			rnd := rand.New(rand.NewSource(1))
			w := s.connect(t, func(_ int, r *http.Request) fault {
				if !changes(r) || rnd.Float64() >= c.lost {
					return passed
				}
				return []fault{cut, swallowed}[rnd.Intn(2)]
			})
			var rivals []*crash.Rival
			for n := range c.writers {
				rivals = append(rivals, &crash.Rival{Number: n + 1, Rounds: lossRounds, MayFail: c.lost > 0, Ask: asker(sessionOf(t, s.through(t, w, prefix)))})
			}
			must(t, crash.Compete(ctx, rivals))
			must(t, crash.CheckRivals(ctx, asker(direct), rivals))
			counted := 0
			for _, r := range rivals {
				for _, n := range r.Counted {
					counted += n
				}
				t.Logf("writer %d: counted %v, perhaps %v, %d own rows, perhaps %d, %d conflicts", r.Number, r.Counted, r.Maybe, len(r.Own), len(r.MaybeOwn), r.Conflicts)
			}
			if counted == 0 {
				t.Error("nobody could count")
			}
		})
	}
}

// losses are statements over a wire that loses one request, one answer, or everything from one on.
var losses = []string{
	"INSERT INTO t VALUES (9, 90, 'i', ['x'], '[1,1]')",
	"UPDATE t SET n = n + 1, labels = ['x','w'] WHERE array_has(labels, 'x')",
	"CREATE TABLE w AS SELECT id, n FROM t WHERE id > 2",
	"CALL lakesql.create_tag('t', 'second')",
	"CREATE INDEX by_n ON t (n) USING BTREE",
}

// TestAnswersThatAreLost: a request or an answer that is lost once is repeated by the client and changes nothing; a conditional write that is refused because of what the
// client has written itself is known. Where everything is lost from some request on, the table is as before or as after.
func TestAnswersThatAreLost(t *testing.T) {
	s := startServer(t)
	must(t, crash.Run(sessionOf(t, s.open(t, "base")), crash.Base...))
	old, err := crash.State(sessionOf(t, s.open(t, "base")), s.open(t, "base"))
	must(t, err)
	asked := losses
	if !everyLoss {
		asked = losses[:3]
	}
	for i, text := range asked {
		t.Run(strings.Join(strings.Fields(text)[:2], " "), func(t *testing.T) {
			t.Parallel()
			l := &loss{server: s, text: text, old: old, prefix: fmt.Sprintf("loss%d", i)}
			all, state, err := l.run(t, func(int, *http.Request) fault { return passed })
			must(t, err)
			l.new = state
			g, _ := spawn.WithContext(context.Background(), 24)
			for n := 1; n <= all; n++ {
				for name, lose := range map[string]struct {
					first fault
					rest  fault
				}{"a request": {cut, passed}, "an answer": {swallowed, passed}, "all from an answer on": {swallowed, cut}} {
					if lose.first == cut && !everyLoss {
						continue // the client sends it again, and that is all
					}
					g.Go("trial", func() error {
						_, state, err := l.run(t, func(k int, r *http.Request) fault {
							switch {
							case k == n && changes(r):
								return lose.first
							case k >= n:
								return lose.rest
							}
							return passed
						})
						what := fmt.Sprintf("%s is lost at %d of %d: %v", name, n, all, err)
						switch {
						case err == nil && state == l.new:
						case err != nil && lose.rest == cut && (state == l.old || state == l.new):
							if my := mysqlerr.Convert(err); my.Num != 1815 {
								return fmt.Errorf("%s: number %d", what, my.Num)
							}
						default:
							return fmt.Errorf("%s: neither old nor new, or an error:\n%s", what, state)
						}
						return nil
					})
				}
			}
			must(t, g.Wait())
			t.Logf("%d requests that change something", all)
		})
	}
}

// loss is one statement of losses.
type loss struct {
	server   *s3Server
	text     string
	prefix   string
	old, new string

	mu   sync.Mutex
	runs int
}

// run runs the statement in a copy of the lake over a wire and returns how many requests would change something, and the state that others then see.
func (l *loss) run(t *testing.T, decide func(int, *http.Request) fault) (n int, state string, err error) {
	t.Helper()
	l.mu.Lock()
	l.runs++
	prefix := fmt.Sprintf("%s-%d", l.prefix, l.runs)
	l.mu.Unlock()
	for _, root := range []string{l.server.dir, l.server.side} {
		if _, err := os.Stat(filepath.Join(root, bucket, "base")); err != nil {
			return 0, "", err
		}
		if err := os.CopyFS(filepath.Join(root, bucket, prefix), os.DirFS(filepath.Join(root, bucket, "base"))); err != nil {
			return 0, "", err
		}
	}
	w := l.server.connect(t, decide)
	_, err = crash.Ask(sessionOf(t, l.server.through(t, w, prefix)), l.text)
	direct := l.server.open(t, prefix)
	s := sessionOf(t, direct)
	state, stateErr := crash.State(s, direct)
	if stateErr != nil {
		return 0, "", fmt.Errorf("state after %w: %w", stateErr, err)
	}
	if _, next := crash.Ask(s, "INSERT INTO t (id) VALUES (77)"); next != nil {
		return 0, "", fmt.Errorf("the next writer: %w", next)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.changes, state, err
}

// TestAStoreWithoutConditionalWrites is refused by name, before anything is written to a table.
func TestAStoreWithoutConditionalWrites(t *testing.T) {
	s := startServer(t)
	must(t, crash.Run(sessionOf(t, s.open(t, "lake")), crash.Base...))
	for name, how := range map[string]fault{"refused": refused, "ignored": lied} {
		w := s.connect(t, func(_ int, r *http.Request) fault {
			if r.Header.Get("If-None-Match") != "" {
				return how
			}
			return passed
		})
		session := sessionOf(t, s.through(t, w, "lake"))
		for _, text := range []string{"INSERT INTO t (id) VALUES (99)", "CREATE TABLE w (id BIGINT)", "CALL lakesql.create_tag('t', 'x')", "CREATE INDEX by_n ON t (n)"} {
			_, err := crash.Ask(session, text)
			if my := mysqlerr.Convert(err); err == nil || my.Num != 1235 || !strings.Contains(my.Message, "conditional writes") {
				t.Errorf("%s: %s: %v", name, text, err)
			}
		}
		if got, err := crash.Ask(session, "SELECT COUNT(*) FROM t"); err != nil || got[0] != "6" {
			t.Errorf("%s: reading: %v %v", name, got, err)
		}
	}
}
