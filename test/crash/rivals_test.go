package crash

import (
	"context"
	"testing"

	"github.com/lakesql/lakesql/engine"
	"github.com/lakesql/lakesql/storage/object"
)

// TestRivals lets sessions of several engines write to one table, each engine with caches of its own, in a folder and in a store without folders.
func TestRivals(t *testing.T) {
	for _, c := range []struct {
		name     string
		engines  int
		sessions int // of each
		disk     bool
	}{
		{"two engines, in memory", 2, 1, false}, {"two engines of two sessions, on disk", 2, 2, true}, {"four engines, on disk", 4, 1, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var store object.Store = object.NewMemory("rivals")
			dir := t.TempDir()
			if c.disk {
				store = openLocal(t, dir)
			}
			inSession(t, store, func(s *engine.Session) { must(t, Run(s, Rivals...)) })
			var rivals []*Rival
			for range c.engines {
				if c.disk {
					store = openLocal(t, dir)
				}
				e := open(t, store)
				t.Cleanup(func() { must(t, e.Close()) })
				for range c.sessions {
					s := e.NewSession(engine.SessionOptions{Database: "lake"})
					t.Cleanup(s.Close)
					rivals = append(rivals, &Rival{Number: len(rivals) + 1, Rounds: rounds, Ask: asker(s)})
				}
			}
			ctx := context.Background()
			must(t, Compete(ctx, rivals))
			conflicts := 0
			for _, r := range rivals {
				conflicts += r.Conflicts
			}
			t.Logf("%d conflicts in %d rounds", conflicts, len(rivals)*rounds)
			inSession(t, store, func(s *engine.Session) { must(t, CheckRivals(ctx, asker(s), rivals)) })
			must(t, CheckRivals(ctx, rivals[0].Ask, rivals)) // whose caches are warm
			must(t, Cleaned(store, "rivals"))
		})
	}
}

func asker(s *engine.Session) Asker {
	return func(_ context.Context, text string) ([]string, error) { return Ask(s, text) }
}
