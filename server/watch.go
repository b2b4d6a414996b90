package server

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/dolthub/vitess/go/mysql"
)

// watchInterval is how often the connections of running statements are looked at.
const watchInterval = 200 * time.Millisecond

var errClientGone = errors.New("the client is gone")

// clientWatch cancels the statements whose clients have gone. One goroutine looks after all of them, so that a short statement costs two map operations.
type clientWatch struct {
	mu      sync.Mutex
	running map[*watched]struct{}
}

// watched is one running statement.
type watched struct {
	peek   *peeker
	cancel context.CancelCauseFunc
}

func newClientWatch() *clientWatch { return &clientWatch{running: make(map[*watched]struct{})} }

// add watches c until the returned function is called.
func (w *clientWatch) add(c *mysql.Conn, cancel context.CancelCauseFunc) (remove func()) {
	f, ok := c.Conn.(*filterConn)
	if !ok || f.peek == nil { // encrypted
		return func() {}
	}
	one := &watched{peek: f.peek, cancel: cancel}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running[one] = struct{}{}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.running, one)
	}
}

// run looks at the clients until ctx ends.
func (w *clientWatch) run(ctx context.Context) error {
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	var all []*watched
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		w.mu.Lock()
		for one := range w.running {
			all = append(all, one)
		}
		w.mu.Unlock()
		for _, one := range all {
			if one.peek.gone() {
				one.cancel(errClientGone) // nothing to cancel where the statement has ended meanwhile
			}
		}
		clear(all)
		all = all[:0]
	}
}
