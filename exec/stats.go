package exec

import (
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// Stats collects what each node of a running plan did, for EXPLAIN ANALYZE. It is safe for concurrent use.
type Stats struct {
	mu    sync.Mutex
	nodes map[any]*NodeStats // by Plan or CandidatePlan
}

// NewStats returns an empty collection.
func NewStats() *Stats { return &Stats{nodes: make(map[any]*NodeStats)} }

// Node returns the figures of p; nil (which counts nothing) where nobody asked for figures.
func (s *Stats) Node(p Plan) *NodeStats { return s.of(p) }

// Candidate is Node for candidate plans.
func (s *Stats) Candidate(p CandidatePlan) *NodeStats { return s.of(p) }

func (s *Stats) of(p any) *NodeStats {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n, ok := s.nodes[p]
	if !ok {
		n = &NodeStats{extra: make(map[string]int64), notes: make(map[string]string)}
		s.nodes[p] = n
	}
	return n
}

// NodeStats are the figures of one plan node over all its workers. All methods accept nil.
type NodeStats struct {
	rows, batches atomic.Int64
	nanos         atomic.Int64 // summed over workers, inputs included
	mu            sync.Mutex
	extra         map[string]int64
	notes         map[string]string
}

// Batch counts one output batch.
func (n *NodeStats) Batch(rows int64, took time.Duration) {
	if n == nil {
		return
	}
	n.rows.Add(rows)
	n.batches.Add(1)
	n.nanos.Add(int64(took))
}

// Spent counts time that gave no batch, such as the call that found the end.
func (n *NodeStats) Spent(took time.Duration) {
	if n != nil {
		n.nanos.Add(int64(took))
	}
}

// Add adds to a named counter, such as "bytes" or "lists_probed".
func (n *NodeStats) Add(key string, v int64) {
	if n == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.extra[key] += v
}

// Note sets a named text, such as the reason of a choice.
func (n *NodeStats) Note(key, text string) {
	if n == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.notes[key] = text
}

// Props returns the figures as key=value pairs: rows, batches, time, then the rest by name.
func (n *NodeStats) Props() []Prop {
	if n == nil {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	out := []Prop{
		{"rows", formatInt(n.rows.Load())}, {"batches", formatInt(n.batches.Load())},
		{"time", time.Duration(n.nanos.Load()).Round(time.Microsecond).String()},
	}
	for _, k := range slices.Sorted(maps.Keys(n.extra)) {
		out = append(out, Prop{k, formatInt(n.extra[k])})
	}
	for _, k := range slices.Sorted(maps.Keys(n.notes)) {
		out = append(out, Prop{k, n.notes[k]})
	}
	return out
}

func formatInt(v int64) string { return strconv.FormatInt(v, 10) }
