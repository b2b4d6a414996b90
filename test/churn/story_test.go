package churn

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lakesql/lakesql/engine"
	"github.com/lakesql/lakesql/server"
	"github.com/lakesql/lakesql/test/lakes"
)

// TestStory tells the story by statements and checks each chapter at each door.
func TestStory(t *testing.T) {
	covered := []string{"index=l_idx, kind=LABEL_LIST, predicate=l HAS a, fragments=1 by index, 0 by scan", "fragments=1 by index, 1 by scan"} // after the first chapters
	for _, version := range []string{"2.1", "2.2"} {
		for _, stable := range []bool{false, true} {
			t.Run(fmt.Sprintf("files %s, stable ids %t", version, stable), func(t *testing.T) {
				lake := lakes.Open(t, t.TempDir(), engine.Config{}).Serve(t, server.Options{})
				for i, c := range Story(version, stable) {
					c.Tell(t, lake, i)
					c.Check(t, lake)
					lake.Set(t, "SET prefilter = 'index'")
					if plan := lake.Explain(t, "SELECT id FROM t WHERE array_has(l, 'a')"); i < len(covered) && !strings.Contains(plan, covered[i]) {
						t.Errorf("%s: the plan does not say %q: %s", c.Name, covered[i], plan)
					}
				}
			})
		}
	}
}
