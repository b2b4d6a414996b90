package provider

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"

	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/dolthub/go-mysql-server/sql/variables"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/planner"
	"github.com/lakesql/lakesql/planner/dialect"
)

// Names of the session variables.
const (
	VarANN               = "ann"
	VarANNExactBytes     = "ann_exact_bytes"
	VarNProbes           = "nprobes"
	VarMaxNProbes        = "max_nprobes"
	VarRefineFactor      = "refine_factor"
	VarGLM               = "glm"
	VarPrefilter         = "prefilter"
	VarFreshness         = "freshness"
	VarQueryMemoryLimit  = "query_memory_limit"
	VarSearchParallelism = "search_parallelism"
	VarReadParallelism   = "read_parallelism"
	VarResourceGroup     = "resource_group"
	VarMaxExecutionTime  = "max_execution_time"

	VarTransactionIsolation = "transaction_isolation"
	varTxIsolation          = "tx_isolation" // its old name
	// VarWarningCount and VarErrorCount say how many warnings, errors included, and errors the last statement gave.
	VarWarningCount = "warning_count"
	VarErrorCount   = "error_count"

	varTransactionReadOnly = "transaction_read_only"
	varTxReadOnly          = "tx_read_only"
)

// version is what clients see: they choose their behaviour by it.
const version = "8.0.31"

// onlyGroup is the resource group of every statement: their shares are not kept apart, so that no other can be asked for.
const onlyGroup = "interactive"

// checkGroup refuses a resource group by its name.
func checkGroup(value any) error {
	if name, ok := value.(string); ok && !strings.EqualFold(name, onlyGroup) && !strings.EqualFold(name, "default") {
		return errs.New(errs.ErrUnsupported, "resource group %s: statements are not kept apart by groups, every one runs as %s", name, onlyGroup)
	}
	return nil
}

// noFiles is a folder that cannot exist: LOAD_FILE, SELECT INTO OUTFILE and LOAD DATA INFILE reach nothing.
const noFiles = "/dev/null/lakesql"

// registerOnce guards the registration: go-mysql-server keeps its variables per process.
var registerOnce sync.Once //nolint:gochecknoglobals // the registry behind it is global

// RegisterVariables adds lakesql's variables to go-mysql-server's. It must run before the first session exists; later calls do nothing.
func RegisterVariables() {
	registerOnce.Do(func() {
		variables.InitSystemVariables()
		variables.InitStatusVariables()
		sql.StatusVariables = processStatus{sql.StatusVariables}
		sql.SystemVariables.AddSystemVariables(systemVariables())
	})
}

// processStatus is go-mysql-server's status variables, which are counted per process. Each new engine sets them back, while those that run count on; so nothing sets them.
type processStatus struct{ sql.StatusVariableRegistry }

// SetGlobal implements sql.StatusVariableRegistry.
func (processStatus) SetGlobal(string, any) error { return nil }

func systemVariables() []sql.SystemVariable {
	both, global := sql.GetMysqlScope(sql.SystemVariableScope_Both), sql.GetMysqlScope(sql.SystemVariableScope_Global)
	add := func(out []sql.SystemVariable, name string, t sql.Type, def any) []sql.SystemVariable {
		return append(out, &sql.MysqlSystemVariable{Name: name, Scope: both, Dynamic: true, SetVarHintApplies: true, Type: t, Default: def})
	}
	number := func(name string) sql.Type { return types.NewSystemIntType(name, 0, math.MaxInt64, false) }
	words := func(name string, values ...string) sql.Type { return types.NewSystemEnumType(name, values...) }
	var out []sql.SystemVariable
	out = add(out, VarANN, words(VarANN, planner.Auto, planner.Off, planner.Force), planner.Auto)
	out = add(out, VarANNExactBytes, number(VarANNExactBytes), int64(planner.DefaultANNExactBytes))
	out = add(out, VarNProbes, number(VarNProbes), int64(planner.DefaultNProbes))
	out = add(out, VarMaxNProbes, number(VarMaxNProbes), int64(0))
	out = add(out, VarRefineFactor, number(VarRefineFactor), int64(1))
	out = add(out, VarGLM, words(VarGLM, planner.Auto, planner.On, planner.Off), planner.Auto)
	out = add(out, VarPrefilter, words(VarPrefilter, planner.Auto, planner.PrefilterIndex, planner.PrefilterScan, planner.PrefilterBruteForce), planner.Auto)
	out = add(out, VarFreshness, words(VarFreshness, planner.FreshnessComplete, planner.FreshnessIndexedOnly), planner.FreshnessComplete)
	out = add(out, VarQueryMemoryLimit, number(VarQueryMemoryLimit), int64(0))
	out = add(out, VarSearchParallelism, number(VarSearchParallelism), int64(0))
	out = add(out, VarReadParallelism, number(VarReadParallelism), int64(0))
	out = append(out, &sql.MysqlSystemVariable{
		Name: VarResourceGroup, Scope: sql.GetMysqlScope(sql.SystemVariableScope_Session), Dynamic: true, SetVarHintApplies: true,
		Type: types.NewSystemStringType(VarResourceGroup), Default: onlyGroup,
	})
	for _, name := range []string{VarWarningCount, VarErrorCount} {
		out = append(out, &sql.MysqlSystemVariable{Name: name, Scope: sql.GetMysqlScope(sql.SystemVariableScope_Session), Type: number(name), Default: int64(0)})
	}
	for _, name := range []string{VarTransactionIsolation, varTxIsolation} {
		out = add(out, name, words(name, "READ-UNCOMMITTED", "READ-COMMITTED", "REPEATABLE-READ", "SERIALIZABLE"), "READ-COMMITTED")
	}
	fixed := func(name, value string) {
		out = append(out, &sql.MysqlSystemVariable{Name: name, Scope: global, Type: types.NewSystemStringType(name), Default: value})
	}
	fixed("version", version)
	fixed("version_comment", "lakesql")
	fixed("secure_file_priv", noFiles)
	return out
}

// Values are the settings of one statement.
type Values struct {
	Planner            planner.Settings
	MemoryLimitBytes   int64 // 0 = the engine's
	MaxExecutionMillis int64 // 0 = none
	ResourceGroup      string
}

// ReadVariables reads the session's variables, with the hints of the statement over them. ErrInvalid for a hint with a value that its variable does not take.
func ReadVariables(ctx *sql.Context, hints []dialect.Hint) (Values, error) {
	over := make(map[string]any)
	for _, h := range hints {
		v, known, err := hintValue(ctx, h)
		if err != nil {
			return Values{}, err
		}
		if known {
			over[h.Name] = v
		}
	}
	var firstErr error
	get := func(name string) any {
		if v, ok := over[name]; ok {
			return v
		}
		v, err := ctx.GetSessionVariable(ctx, name)
		if err != nil && firstErr == nil {
			firstErr = err
		}
		return v
	}
	word := func(name string) string { s, _ := get(name).(string); return s }
	number := func(name string) int64 { return max(toInt(get(name)), 0) }
	refine := int(number(VarRefineFactor))
	if refine == 0 {
		refine = -1 // planner: negative = none
	}
	out := Values{
		Planner: planner.Settings{
			ANN: word(VarANN), ANNExactBytes: number(VarANNExactBytes), NProbes: int(number(VarNProbes)), MaxNProbes: int(number(VarMaxNProbes)), RefineFactor: refine,
			GLM: word(VarGLM), Prefilter: word(VarPrefilter), Freshness: word(VarFreshness),
			SearchParallelism: int(number(VarSearchParallelism)), ReadParallelism: int(number(VarReadParallelism)),
		},
		MemoryLimitBytes: number(VarQueryMemoryLimit), MaxExecutionMillis: number(VarMaxExecutionTime), ResourceGroup: word(VarResourceGroup),
	}
	return out, firstErr
}

// hintValue converts the text of a hint as SET would; unknown names are ignored, as MySQL does.
func hintValue(ctx *sql.Context, h dialect.Hint) (any, bool, error) {
	if h.Name == VarResourceGroup {
		if err := checkGroup(h.Value); err != nil {
			return nil, false, err
		}
	}
	v, _, known := sql.SystemVariables.GetGlobal(h.Name)
	if !known {
		return nil, false, nil
	}
	var value any = h.Value
	if n, err := strconv.ParseInt(h.Value, 10, 64); err == nil {
		value = n
	}
	converted, _, err := v.GetType().Convert(context.Context(ctx), value)
	if err != nil {
		return nil, false, errs.New(errs.ErrInvalid, "hint %s: %w", strings.ToUpper(h.Name), fmt.Errorf("cannot be %q: %w", h.Value, err))
	}
	return converted, true, nil
}
