package upkeep

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path"
	"strings"
	"time"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage/object"
)

// Options says what is due when, and what it may take. Defaults returns what is good for most; zero fields mean zero.
type Options struct {
	Interval   time.Duration // between two looks at a table
	Jitter     float64       // share of Interval, 0 to 1, by which looks come earlier or later, so that servers of one lake do not look at once
	BackOffMax time.Duration // most time until a table that failed is looked at again; it doubles from Interval on
	Hours      Hours         // of the day in which jobs begin; the zero value is all day

	Cores             int   // goroutines of one job
	MemoryBytes       int64 // of all jobs, beside the statements' limits
	BytesPerSecond    int64 // read from and written to stores; 0 = no limit
	RequestsPerSecond int64 // to stores; 0 = no limit

	// Include and Exclude are patterns of LAKE.TABLE as in shells: prod.*, *.events_2?. Nothing included is all; what is excluded is left alone.
	Include, Exclude []string

	Indices    IndexThresholds
	Compaction CompactionThresholds
	Cleanup    CleanupThresholds

	// OpenStore opens the store of a base path outside a dataset's own store; nil = object.OpenURL.
	OpenStore func(ctx context.Context, url string) (object.Store, error)
	Now       func() time.Time // nil = time.Now
	Random    func() float64   // from 0 to 1; nil = math/rand
}

// IndexThresholds says when an index is extended. Any of them suffices.
type IndexThresholds struct {
	Off            bool
	UncoveredRows  int64   // so many rows are not covered,
	UncoveredShare float64 // or this share of all rows, above 0 up to 1,
	Segments       int     // or it has so many segments, which become one
}

// CompactionThresholds says when fragments are rewritten. Any of them suffices.
type CompactionThresholds struct {
	Off            bool
	SmallFragments int     // so many fragments would be rewritten,
	DeletedRows    int64   // or so many deleted rows would go
	DeletedShare   float64 // fragments of which more is deleted are rewritten, above 0 up to 1
}

// CleanupThresholds says which old versions go. Tags, branches and readers of this server keep theirs.
type CleanupThresholds struct {
	Off        bool
	OlderThan  time.Duration // versions of this age,
	KeepLatest int           // but not so many of the newest
	Every      time.Duration // at least this long between two clean-ups of a table
}

// Defaults are the options of a configuration that says nothing but that upkeep is on.
func Defaults() Options {
	return Options{
		Interval: 5 * time.Minute, Jitter: 0.2, BackOffMax: 6 * time.Hour,
		Cores: 1, MemoryBytes: 512 << 20, BytesPerSecond: 64 << 20, RequestsPerSecond: 100,
		Indices:    IndexThresholds{UncoveredRows: 100_000, UncoveredShare: 0.1, Segments: 8},
		Compaction: CompactionThresholds{SmallFragments: 16, DeletedRows: 100_000, DeletedShare: 0.1},
		Cleanup:    CleanupThresholds{OlderThan: 7 * 24 * time.Hour, KeepLatest: 10, Every: time.Hour},
	}
}

func (o Options) withDefaults() Options {
	if o.OpenStore == nil {
		o.OpenStore = object.OpenURL
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Random == nil {
		o.Random = rand.Float64
	}
	return o
}

// Limits of what can be asked for.
const (
	intervalMin = time.Second
	memoryMin   = 16 << 20
	coresMax    = 1024
)

// Validate refuses options that make no sense, by the name that they have in a configuration. Errors: ErrInvalid.
func (o Options) Validate() error {
	share := func(v float64) bool { return v > 0 && v <= 1 }
	for _, c := range []struct {
		ok          bool
		name        string
		value, want any
	}{
		{o.Interval >= intervalMin, "interval", o.Interval, "1s or more"},
		{o.Jitter >= 0 && o.Jitter <= 1, "jitter", o.Jitter, "from 0 to 1"},
		{o.BackOffMax >= o.Interval, "back_off_max", o.BackOffMax, fmt.Sprintf("not less than interval, %s", o.Interval)},
		{o.Cores >= 1 && o.Cores <= coresMax, "cores", o.Cores, fmt.Sprintf("from 1 to %d", coresMax)},
		{o.MemoryBytes >= memoryMin, "memory", o.MemoryBytes, "16MiB or more"},
		{o.BytesPerSecond >= 0, "bytes_per_second", o.BytesPerSecond, "0 (no limit) or more"},
		{o.RequestsPerSecond >= 0, "requests_per_second", o.RequestsPerSecond, "0 (no limit) or more"},
		{o.Indices.UncoveredRows >= 1, "indices.uncovered_rows", o.Indices.UncoveredRows, "1 or more"},
		{share(o.Indices.UncoveredShare), "indices.uncovered_share", o.Indices.UncoveredShare, "above 0, at most 1"},
		{o.Indices.Segments >= 2, "indices.segments", o.Indices.Segments, "2 or more"},
		{o.Compaction.SmallFragments >= 2, "compaction.small_fragments", o.Compaction.SmallFragments, "2 or more"},
		{o.Compaction.DeletedRows >= 1, "compaction.deleted_rows", o.Compaction.DeletedRows, "1 or more"},
		{share(o.Compaction.DeletedShare), "compaction.deleted_share", o.Compaction.DeletedShare, "above 0, at most 1"},
		{o.Cleanup.OlderThan >= 0, "cleanup.older_than", o.Cleanup.OlderThan, "0s or more"},
		{o.Cleanup.KeepLatest >= 1, "cleanup.keep_latest", o.Cleanup.KeepLatest, "1 or more"},
		{o.Cleanup.Every >= 0, "cleanup.every", o.Cleanup.Every, "0s or more"},
	} {
		if !c.ok {
			return errs.New(errs.ErrInvalid, "upkeep.%s: %v; it must be %v", c.name, c.value, c.want)
		}
	}
	for name, patterns := range map[string][]string{"include": o.Include, "exclude": o.Exclude} {
		for _, p := range patterns {
			if _, err := path.Match(p, ""); err != nil || strings.Count(p, ".") == 0 || strings.Contains(p, "/") {
				return errs.New(errs.ErrInvalid, "upkeep.%s: %q; write LAKE.TABLE, with * and ? for any characters, as prod.*", name, p)
			}
		}
	}
	return nil
}

// wants says that a table is to be maintained.
func (o Options) wants(lake, table string) bool {
	return (len(o.Include) == 0 || matches(o.Include, lake, table)) && !matches(o.Exclude, lake, table)
}

func matches(patterns []string, lake, table string) bool {
	for _, p := range patterns {
		if ok, _ := path.Match(strings.ToLower(p), strings.ToLower(lake+"."+table)); ok { // Validate has looked at the pattern
			return true
		}
	}
	return false
}

// Hours is a part of the day, which may go past midnight. The zero value is all of it.
type Hours struct{ From, To time.Duration } // since midnight

// ParseHours reads HH:MM-HH:MM. Errors: ErrInvalid.
func ParseHours(text string) (Hours, error) {
	if text == "" {
		return Hours{}, nil
	}
	var h [4]int
	var rest string
	n, _ := fmt.Sscanf(text+" .", "%d:%d-%d:%d %s", &h[0], &h[1], &h[2], &h[3], &rest)
	if n != 5 || rest != "." || h[0] < 0 || h[1] < 0 || h[2] < 0 || h[3] < 0 || h[0] > 23 || h[2] > 24 || h[1] > 59 || h[3] > 59 || h[2] == 24 && h[3] > 0 {
		return Hours{}, errs.New(errs.ErrInvalid, "upkeep.hours: %q; write a part of the day as 22:00-06:00", text)
	}
	at := func(hour, minute int) time.Duration {
		return time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute
	}
	out := Hours{From: at(h[0], h[1]), To: at(h[2], h[3])}
	if out.From == out.To {
		return Hours{}, errs.New(errs.ErrInvalid, "upkeep.hours: %q is no time at all", text)
	}
	return out, nil
}

// has says that a time lies in the hours.
func (h Hours) has(t time.Time) bool {
	since := time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute + time.Duration(t.Second())*time.Second
	switch {
	case h == Hours{}:
		return true
	case h.From < h.To:
		return since >= h.From && since < h.To
	}
	return since >= h.From || since < h.To
}
