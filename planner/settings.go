package planner

import (
	"github.com/lakesql/lakesql/exec"
	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/internal/errs"
)

// The values of the settings that are words.
const (
	Auto  = "auto"
	On    = "on"
	Off   = "off"
	Force = "force"

	PrefilterIndex      = "index"
	PrefilterScan       = "scan"
	PrefilterBruteForce = "brute_force"

	FreshnessComplete    = "complete"
	FreshnessIndexedOnly = "indexed_only"
)

// Settings are the session variables that planning depends on. The zero value of each field means its default.
type Settings struct {
	ANN               string // auto (default), off, force
	ANNExactBytes     int64  // vectors below this many bytes are compared exactly under auto; 0 = 256 MiB
	NProbes           int    // lists probed in the first round; 0 = 20
	MaxNProbes        int    // 0 = all
	RefineFactor      int    // k x RefineFactor rows are compared again exactly; negative = 0 = none; 0 = 1
	GLM               string // auto (default), on, off
	Prefilter         string // auto (default), index, scan, brute_force
	Freshness         string // complete (default), indexed_only
	SearchParallelism int    // search tasks at a time; 0 = workers
	ReadParallelism   int    // 0 = workers

	Expr expr.Env // the session's time zone and the statement's time: what constants are computed with
	// Run, if not nil, runs uncorrelated scalar subqueries while planning; otherwise they stay joins.
	Run *exec.Env
}

// DefaultANNExactBytes is the default of Settings.ANNExactBytes.
const DefaultANNExactBytes = 256 << 20

// DefaultNProbes is the default of Settings.NProbes.
const DefaultNProbes = 20

func (s Settings) withDefaults() Settings {
	word := func(p *string, d string) {
		if *p == "" {
			*p = d
		}
	}
	word(&s.ANN, Auto)
	word(&s.GLM, Auto)
	word(&s.Prefilter, Auto)
	word(&s.Freshness, FreshnessComplete)
	if s.ANNExactBytes == 0 {
		s.ANNExactBytes = DefaultANNExactBytes
	}
	if s.NProbes == 0 {
		s.NProbes = DefaultNProbes
	}
	if s.RefineFactor == 0 {
		s.RefineFactor = 1
	}
	return s
}

// Validate names the setting that has a value it cannot have.
func (s Settings) Validate() error {
	check := func(name, value string, allowed ...string) error {
		for _, a := range allowed {
			if value == a || value == "" {
				return nil
			}
		}
		return errs.New(errs.ErrInvalid, "%s cannot be %q; it is one of %v", name, value, allowed)
	}
	for _, err := range []error{
		check("ann", s.ANN, Auto, Off, Force), check("glm", s.GLM, Auto, On, Off),
		check("prefilter", s.Prefilter, Auto, PrefilterIndex, PrefilterScan, PrefilterBruteForce),
		check("freshness", s.Freshness, FreshnessComplete, FreshnessIndexedOnly),
	} {
		if err != nil {
			return err
		}
	}
	if s.NProbes < 0 || s.MaxNProbes < 0 || s.ANNExactBytes < 0 {
		return errs.New(errs.ErrInvalid, "nprobes, max_nprobes and ann_exact_bytes cannot be negative")
	}
	return nil
}
