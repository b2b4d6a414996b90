package upkeep

import (
	"cmp"
	"slices"
	"time"
)

// The states of a table.
const (
	StateWaiting = "waiting" // for its next look
	StateRunning = "running" // a job
	StateStopped = "stopped" // its last job was ended by somebody
	StateFailed  = "failed"  // its last look or job failed, and is tried again
)

// Status is what upkeep has done with a table.
type Status struct {
	Lake, Table string
	Job         string // running, or that ran last: "compact", "extend index NAME" and so on; "" = none yet
	State       string
	Stage       string        // of the running job
	LastRun     time.Time     // when that job began; zero = none yet
	Duration    time.Duration // of the last job, or so far
	Rows        int64         // that it read or wrote
	Bytes       int64         // that it read and wrote
	LastError   string        // of the last look or job that failed, until one succeeds
	NextRun     time.Time
}

// Job is a running job, for the process list.
type Job struct {
	ID          uint32
	Lake, Table string
	Name        string
	Stage       string
	Started     time.Time
}

// Tables tells of every table that is maintained, by name.
func (r *Runner) Tables() []Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]Status, 0, len(r.tables))
	for _, t := range r.tables {
		s := t.status
		if r.running != nil && r.running.table == t {
			s.Stage, s.Rows = r.running.stage, r.running.rows
			s.Duration, s.Bytes = r.opts.Now().Sub(r.running.started), r.limits.TakenBytes()-r.running.bytesBefore
		}
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b Status) int { return cmp.Or(cmp.Compare(a.Lake, b.Lake), cmp.Compare(a.Table, b.Table)) })
	return out
}

// Running is the job that runs now; false where none does.
func (r *Runner) Running() (Job, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	j := r.running
	if j == nil {
		return Job{}, false
	}
	return Job{ID: j.id, Lake: j.table.key.lake, Table: j.table.key.table, Name: j.name, Stage: j.stage, Started: j.started}, true
}
