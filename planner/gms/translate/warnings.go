package translate

import (
	"sync"

	"github.com/dolthub/go-mysql-server/sql"

	"github.com/lakesql/lakesql/exec"
)

// warningCode is the number of lakesql's own warnings.
const warningCode = 1105

// Warnings gathers what planning and running a statement have to say, from any goroutine; the session may only be written to by the
// statement's own, with Flush. The first warning about a thing counts.
type Warnings struct {
	mu      sync.Mutex
	seen    map[string]bool
	pending []exec.Warning
}

// Add keeps a warning for Flush. A nil receiver drops it.
func (w *Warnings) Add(warning exec.Warning) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.seen[warning.About] {
		return
	}
	if w.seen == nil {
		w.seen = make(map[string]bool)
	}
	w.seen[warning.About] = true
	w.pending = append(w.pending, warning)
}

// Flush makes what came since the last call warnings of the session.
func (w *Warnings) Flush(ctx *sql.Context) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.pending {
		code := warningCode
		if p.Code != 0 {
			code = p.Code
		}
		ctx.Warn(code, "%s", p.Text)
	}
	w.pending = nil
}
