package expr

import (
	"sort"
	"strings"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/internal/errs"
)

// kernel computes a function for all rows of a call.
type kernel func(x *call) (vector, error)

// call is one application of a function to vectors.
type call struct {
	*state
	args   []vector // converted to impl.params; for lazy kernels empty
	nodes  []node   // lazy kernels evaluate these themselves
	n      int      // rows to compute; 1 where every argument is constant
	t      arrow.DataType
	valid  []byte // rows where no argument is NULL; nil = all
	name   string
	source Expr // for error messages
}

// impl is a function resolved for argument types.
type impl struct {
	t        arrow.DataType
	vt       arrow.DataType   // the type of run's vectors where it has more digits than t; nil = t
	params   []arrow.DataType // what the arguments are converted to; nil = as they are; a shorter list repeats its last
	args     []Expr           // if set, stand in place of the call's arguments
	rewrite  Expr             // if set, stands in place of the whole call
	run      kernel
	lazy     kernel   // evaluates its argument nodes itself
	nulls    bool     // run sees NULL arguments; otherwise NULL in, NULL out
	exact    bool     // run reads decimals of any scale: quotients keep their extra digits
	volatile bool     // of function
	mode     castMode // how arguments are converted to params
}

// request is what a function resolves from.
type request struct {
	name  string
	args  []Expr
	types []arrow.DataType
}

// function describes a name that NewCall knows.
type function struct {
	name string
	as   string // canonical name, "" = name
	min  int
	max  int // -1 = any number
	// volatile says that the function gives a new value for every row.
	volatile bool
	resolve  func(r *request) (impl, error)
}

// The list of functions by name, made once and never changed. It cannot be a package variable's initial value: functions call NewCall.
var (
	tableOnce sync.Once            //nolint:gochecknoglobals // guards byName
	byName    map[string]*function //nolint:gochecknoglobals // immutable once made
)

func table() map[string]*function {
	tableOnce.Do(func() {
		byName = make(map[string]*function)
		for _, family := range families() {
			for i := range family {
				byName[family[i].name] = &family[i]
			}
		}
	})
	return byName
}

func families() [][]function {
	return [][]function{
		compareFunctions(), logicFunctions(), caseFunctions(), arithmeticFunctions(), inFunctions(), patternFunctions(), stringFunctions(), mathFunctions(), dateFunctions(),
		listFunctions(), jsonFunctions(), vectorFunctions(),
	}
}

// Functions lists what NewCall knows, sorted.
func Functions() []string {
	names := make([]string, 0, len(table()))
	for n := range table() {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}

// Has reports whether NewCall knows the function.
func Has(name string) bool { return table()[strings.ToLower(name)] != nil }

// Volatile says that an expression may give another value each time it is computed, so that it may be neither moved nor computed twice.
func Volatile(es ...Expr) bool {
	found := false
	for _, e := range es {
		Walk(e, func(n Expr) bool {
			if c, ok := n.(*Call); ok {
				f := table()[c.Func]
				found = found || f != nil && f.volatile
			}
			return !found
		})
	}
	return found
}

// NewCall applies a function or operator. It resolves the overload, converts literals to the type of the column that they are compared with where
// the value survives, and computes the exact result type. Some names are rewritten: "between" becomes a pair of comparisons, "in" over expressions a
// chain of "=", aliases their first name. ErrInvalid names the function and the types, ErrUnsupported an unknown function.
func NewCall(name string, args ...Expr) (Expr, error) {
	name = strings.ToLower(name)
	f := table()[name]
	if f == nil {
		return nil, errs.New(errs.ErrUnsupported, "function %s does not exist", name)
	}
	if len(args) < f.min || (f.max >= 0 && len(args) > f.max) {
		return nil, errs.New(errs.ErrInvalid, "incorrect parameter count in the call to function %s: %d given", name, len(args))
	}
	im, err := f.apply(args, nil)
	if err != nil {
		return nil, err
	}
	if im.rewrite != nil {
		return im.rewrite, nil
	}
	if im.args != nil {
		args = im.args
	}
	canonicalName := f.name
	if f.as != "" {
		canonicalName = f.as
	}
	return &Call{Func: canonicalName, Args: args, T: im.t}, nil
}

func (f *function) apply(args []Expr, types []arrow.DataType) (impl, error) {
	if types == nil {
		types = make([]arrow.DataType, len(args))
		for i, a := range args {
			if a == nil {
				return impl{}, errs.New(errs.ErrInternal, "argument %d of %s is missing", i+1, f.name)
			}
			types[i] = a.Type()
		}
	}
	name := f.name
	if f.as != "" {
		name = f.as
	}
	im, err := f.resolve(&request{name: name, args: args, types: types})
	im.volatile = f.volatile
	return im, err
}

func (c *compiler) compileCall(e *Call) (node, error) {
	if e.Func == "cast" {
		return c.compileCast(e, castExplicit)
	}
	if e.Func == "coerce" {
		return c.compileCast(e, castStrict)
	}
	f := table()[e.Func]
	if f == nil {
		return nil, errs.New(errs.ErrUnsupported, "function %s does not exist", e.Func)
	}
	if len(e.Args) < f.min || (f.max >= 0 && len(e.Args) > f.max) {
		return nil, errs.New(errs.ErrInvalid, "incorrect parameter count in the call to function %s: %d given", e.Func, len(e.Args))
	}
	nodes := make([]node, len(e.Args))
	types := make([]arrow.DataType, len(e.Args))
	wider := false
	for i, a := range e.Args {
		n, err := c.compile(a)
		if err != nil {
			return nil, err
		}
		nodes[i], types[i] = n, a.Type()
		if classOf(a.Type()).decimal() && !sameVectorType(n.typ(), a.Type()) {
			wider = true
			types[i] = n.typ()
		}
	}
	im, err := f.apply(e.Args, nil)
	if err != nil {
		return nil, err
	}
	if wider && im.exact {
		if im, err = f.apply(e.Args, types); err != nil {
			return nil, err
		}
	} else if wider {
		for i, a := range e.Args {
			if nodes[i], err = c.castTo(nodes[i], a.Type(), castImplicit); err != nil {
				return nil, err
			}
		}
	}
	return c.finishCall(e, im, nodes)
}

func (c *compiler) finishCall(e *Call, im impl, nodes []node) (node, error) {
	if im.rewrite != nil {
		return c.compile(im.rewrite)
	}
	var err error
	for i, a := range im.args {
		if i < len(e.Args) && a == e.Args[i] {
			continue
		}
		n, err := c.compile(a)
		if err != nil {
			return nil, err
		}
		if i < len(nodes) {
			nodes[i] = n
		} else {
			nodes = append(nodes, n)
		}
	}
	if im.args != nil {
		nodes = nodes[:len(im.args)]
	}
	for i := range nodes {
		if len(im.params) == 0 {
			break
		}
		if nodes[i], err = c.castTo(nodes[i], im.params[min(i, len(im.params)-1)], im.mode); err != nil {
			return nil, errs.New(errs.ErrInvalid, "argument %d of %s: %w", i+1, e.Func, err)
		}
	}
	t := im.t
	if im.vt != nil {
		t = im.vt
	}
	return c.exactNanos(&callNode{name: e.Func, source: e, args: nodes, t: t, im: im}), nil
}

// fixed resolves to one signature whatever the argument types are.
func fixed(t arrow.DataType, run kernel, params ...arrow.DataType) func(*request) (impl, error) {
	return func(r *request) (impl, error) {
		if err := r.castable(params); err != nil {
			return impl{}, err
		}
		return impl{t: t, params: params, run: run}, nil
	}
}

// castable refuses arguments that have no conversion to what the function takes.
func (r *request) castable(params []arrow.DataType) error {
	for i, t := range r.types {
		if len(params) == 0 {
			return nil
		}
		p := params[min(i, len(params)-1)]
		if p == nil {
			continue
		}
		if err := checkCast(t, p); err != nil {
			return r.typesError(err)
		}
	}
	return nil
}

// typesError names the function and its argument types.
func (r *request) typesError(cause error) error {
	names := make([]string, len(r.types))
	for i, t := range r.types {
		names[i] = sqlName(t)
	}
	if cause == nil {
		return errs.New(errs.ErrInvalid, "%s(%s) is not defined", r.name, strings.Join(names, ", "))
	}
	return errs.New(errs.ErrInvalid, "%s(%s) is not defined: %w", r.name, strings.Join(names, ", "), cause)
}

// classes returns the classes of the arguments.
func (r *request) class(i int) class { return classOf(r.types[i]) }

// literal returns argument i if it is a constant.
func (r *request) literal(i int) (*Literal, bool) {
	if i >= len(r.args) {
		return nil, false
	}
	l, ok := r.args[i].(*Literal)
	return l, ok
}
