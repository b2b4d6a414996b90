package main

import (
	"strconv"
	"strings"
	"time"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/upkeep"
)

// upkeepConfig is the section upkeep of a configuration. What it does not say is as in upkeep.Defaults.
type upkeepConfig struct {
	Enabled    bool    `yaml:"enabled"`
	Interval   age     `yaml:"interval"`
	Jitter     float64 `yaml:"jitter"`
	BackOffMax age     `yaml:"back_off_max"`
	Hours      string  `yaml:"hours"`

	Cores             int      `yaml:"cores"`
	Memory            byteSize `yaml:"memory"`
	BytesPerSecond    byteSize `yaml:"bytes_per_second"`
	RequestsPerSecond int64    `yaml:"requests_per_second"`

	Include []string `yaml:"include"`
	Exclude []string `yaml:"exclude"`

	Indices struct {
		Off            bool    `yaml:"off"`
		UncoveredRows  int64   `yaml:"uncovered_rows"`
		UncoveredShare float64 `yaml:"uncovered_share"`
		Segments       int     `yaml:"segments"`
	} `yaml:"indices"`
	Compaction struct {
		Off            bool    `yaml:"off"`
		SmallFragments int     `yaml:"small_fragments"`
		DeletedRows    int64   `yaml:"deleted_rows"`
		DeletedShare   float64 `yaml:"deleted_share"`
	} `yaml:"compaction"`
	Cleanup struct {
		Off        bool `yaml:"off"`
		OlderThan  age  `yaml:"older_than"`
		KeepLatest int  `yaml:"keep_latest"`
		Every      age  `yaml:"every"`
	} `yaml:"cleanup"`
}

// age is a time span, written as 90s, 5m, 36h, 7d.
type age time.Duration

// UnmarshalText implements encoding.TextUnmarshaler.
func (a *age) UnmarshalText(text []byte) error {
	s := strings.TrimSpace(string(text))
	bad := errs.New(errs.ErrInvalid, "%q is no time span: write 90s, 5m, 36h or 7d", text)
	if days, ok := strings.CutSuffix(s, "d"); ok {
		n, err := strconv.ParseInt(days, 10, 64)
		if err != nil || n < 0 || n > 100_000 {
			return bad
		}
		*a = age(n) * age(24*time.Hour)
		return nil
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return bad
	}
	*a = age(d)
	return nil
}

func upkeepDefaults() upkeepConfig {
	d := upkeep.Defaults()
	c := upkeepConfig{
		Interval: age(d.Interval), Jitter: d.Jitter, BackOffMax: age(d.BackOffMax),
		Cores: d.Cores, Memory: byteSize(d.MemoryBytes), BytesPerSecond: byteSize(d.BytesPerSecond), RequestsPerSecond: d.RequestsPerSecond,
	}
	c.Indices.UncoveredRows, c.Indices.UncoveredShare, c.Indices.Segments = d.Indices.UncoveredRows, d.Indices.UncoveredShare, d.Indices.Segments
	c.Compaction.SmallFragments, c.Compaction.DeletedRows, c.Compaction.DeletedShare = d.Compaction.SmallFragments, d.Compaction.DeletedRows, d.Compaction.DeletedShare
	c.Cleanup.OlderThan, c.Cleanup.KeepLatest, c.Cleanup.Every = age(d.Cleanup.OlderThan), d.Cleanup.KeepLatest, age(d.Cleanup.Every)
	return c
}

// options are those of the engine; nil where upkeep is not enabled. What is written is checked all the same. Errors: ErrInvalid.
func (c upkeepConfig) options() (*upkeep.Options, error) {
	hours, err := upkeep.ParseHours(c.Hours)
	if err != nil {
		return nil, err
	}
	o := upkeep.Options{
		Interval: time.Duration(c.Interval), Jitter: c.Jitter, BackOffMax: time.Duration(c.BackOffMax), Hours: hours,
		Cores: c.Cores, MemoryBytes: int64(c.Memory), BytesPerSecond: int64(c.BytesPerSecond), RequestsPerSecond: c.RequestsPerSecond,
		Include: c.Include, Exclude: c.Exclude,
		Indices: upkeep.IndexThresholds{
			Off: c.Indices.Off, UncoveredRows: c.Indices.UncoveredRows, UncoveredShare: c.Indices.UncoveredShare, Segments: c.Indices.Segments,
		},
		Compaction: upkeep.CompactionThresholds{
			Off: c.Compaction.Off, SmallFragments: c.Compaction.SmallFragments, DeletedRows: c.Compaction.DeletedRows, DeletedShare: c.Compaction.DeletedShare,
		},
		Cleanup: upkeep.CleanupThresholds{
			Off: c.Cleanup.Off, OlderThan: time.Duration(c.Cleanup.OlderThan), KeepLatest: c.Cleanup.KeepLatest, Every: time.Duration(c.Cleanup.Every),
		},
		OpenStore: openStore,
	}
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if !c.Enabled {
		return nil, nil //nolint:nilnil // as said above
	}
	return &o, nil
}
