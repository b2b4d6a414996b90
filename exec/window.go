package exec

import (
	"context"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/internal/errs"
)

// WindowFunc is a function over the rows around each row.
type WindowFunc string

// The window functions. WindowAggregate is an aggregate over the frame; ranks and offsets do not look at it.
const (
	WindowAggregate   WindowFunc = "aggregate"
	WindowRowNumber   WindowFunc = "row_number"
	WindowRank        WindowFunc = "rank"
	WindowDenseRank   WindowFunc = "dense_rank"
	WindowPercentRank WindowFunc = "percent_rank"
	WindowCumeDist    WindowFunc = "cume_dist"
	WindowNtile       WindowFunc = "ntile"
	WindowLag         WindowFunc = "lag"
	WindowLead        WindowFunc = "lead"
	WindowFirst       WindowFunc = "first_value"
	WindowLast        WindowFunc = "last_value"
	WindowNth         WindowFunc = "nth_value"
)

// BoundKind is how a frame begins or ends.
type BoundKind string

// The kinds of bound.
const (
	UnboundedPreceding BoundKind = "unbounded preceding"
	OffsetPreceding    BoundKind = "preceding"
	CurrentRow         BoundKind = "current row"
	OffsetFollowing    BoundKind = "following"
	UnboundedFollowing BoundKind = "unbounded following"
)

// FrameBound is one end of a frame.
type FrameBound struct {
	Kind   BoundKind
	Offset uint64 // ROWS with an offset: how many rows
	// Value is, for RANGE with an offset, the value of the frame's key where the frame of a row begins or ends; NULL = beyond all values.
	Value expr.Expr
}

// Frame is the part of the partition that a function sees from each row. RANGE bounds without offset include the row's peers.
type Frame struct {
	Rows       bool // ROWS; otherwise RANGE
	Start, End FrameBound
	Key        expr.Expr // RANGE with offsets: the only sort key, of the bounds' type
}

func (f Frame) String() string {
	unit := "range"
	if f.Rows {
		unit = "rows"
	}
	return unit + " between " + f.bound(f.Start) + " and " + f.bound(f.End)
}

func (f Frame) bound(b FrameBound) string {
	switch {
	case b.Kind != OffsetPreceding && b.Kind != OffsetFollowing:
		return string(b.Kind)
	case f.Rows:
		return strconv.FormatUint(b.Offset, 10) + " " + string(b.Kind)
	}
	return b.Value.String()
}

// needsKey says that a bound is a value of the sort key.
func (f Frame) needsKey() bool {
	return !f.Rows && (f.Start.Value != nil || f.End.Value != nil)
}

// WindowSpec is one function of a Window.
type WindowSpec struct {
	Func  WindowFunc
	Agg   AggFunc     // of WindowAggregate
	Args  []expr.Expr // the aggregate's; of lag and lead the value and, of the same type, what stands for a row that is not there
	N     uint64      // buckets of ntile, offset of lag and lead, which row of nth_value
	Frame Frame
	Name  string
	Type  arrow.DataType // of an aggregate, as AggSpec.Type; nil = its natural type
}

func (w WindowSpec) String() string {
	name, args := string(w.Func), exprsText(w.Args)
	args = args[1 : len(args)-1]
	switch w.Func {
	case WindowAggregate:
		return w.aggSpec().String() + " " + w.Frame.String()
	case WindowNtile, WindowLag, WindowLead, WindowNth:
		if args != "" {
			args += ", "
		}
		args += "n=" + strconv.FormatUint(w.N, 10)
	}
	text := name + "(" + args + ")"
	if w.framed() {
		text += " " + w.Frame.String()
	}
	return text
}

func (w WindowSpec) aggSpec() AggSpec {
	return AggSpec{Func: w.Agg, Args: w.Args, Name: w.Name, Type: w.Type}
}

// framed says that the function looks at the frame.
func (w WindowSpec) framed() bool {
	switch w.Func {
	case WindowAggregate, WindowFirst, WindowLast, WindowNth:
		return true
	}
	return false
}

// WindowLimit drops rows whose ROW_NUMBER, RANK or DENSE_RANK, in the window's order, is above K. The window's functions must be of these three.
type WindowLimit struct {
	By WindowFunc
	K  uint64
}

// Window adds functions over partitions of its input: the rows with equal Partition values (NULLs are equal to each other), ordered by Order. All
// its functions share these two.
//
// Each worker of the input numbers the partitions of its rows; rows are brought together by partition with a counting sort, and partitions are
// sorted and computed on all workers. Rows come out by partition, in order.
type Window struct {
	Input     Plan
	Partition []expr.Expr
	Order     []SortKey
	Funcs     []WindowSpec
	Output    []int        // input columns that come out, before the functions'; nil = all
	Limit     *WindowLimit // nil = all rows

	stored []expr.Expr // what is kept of the input: the output columns, then what functions read
	args   [][]int     // by function: its arguments among stored
	frames []frameColumns
	layout *arrow.Schema // of stored
	out    *arrow.Schema
}

// frameColumns are positions among stored; -1 = none.
type frameColumns struct{ key, start, end int }

var _ Parallel = (*Window)(nil)

// NewWindow checks w and computes the schema. ErrUnsupported for types that have no order or cannot be grouped or aggregated.
func NewWindow(w Window) (*Window, error) {
	p := &w
	in := p.Input.Schema()
	for _, e := range p.Partition {
		if err := checkExpr("window", e, in); err != nil {
			return nil, err
		}
		if err := checkKeyType(e.Type()); err != nil {
			return nil, err
		}
	}
	if err := checkSortKeys("window", p.Order, in); err != nil {
		return nil, err
	}
	if p.Output == nil {
		p.Output = make([]int, in.NumFields())
		for i := range p.Output {
			p.Output[i] = i
		}
	}
	var fields []arrow.Field
	for _, i := range p.Output {
		if i < 0 || i >= in.NumFields() {
			return nil, errs.New(errs.ErrInternal, "window: column %d of %d", i, in.NumFields())
		}
		f := in.Field(i)
		p.stored = append(p.stored, &expr.Column{ID: i, Name: f.Name, T: f.Type})
		fields = append(fields, f)
	}
	p.Funcs = append([]WindowSpec(nil), p.Funcs...)
	for i := range p.Funcs {
		f, err := p.addFunc(&p.Funcs[i])
		if err != nil {
			return nil, err
		}
		fields = append(fields, f)
	}
	if err := p.checkLimit(); err != nil {
		return nil, err
	}
	kept := make([]arrow.Field, len(p.stored))
	for i, e := range p.stored {
		kept[i] = fieldOf("", e, in)
	}
	p.layout, p.out = arrow.NewSchema(kept, nil), arrow.NewSchema(fields, nil)
	return p, nil
}

func (p *Window) checkLimit() error {
	if p.Limit == nil {
		return nil
	}
	for _, f := range p.Funcs {
		if !ranks(f.Func) {
			return errs.New(errs.ErrInternal, "window: a limit beside %s", f.Func)
		}
	}
	if !ranks(p.Limit.By) {
		return errs.New(errs.ErrInternal, "window: a limit by %s", p.Limit.By)
	}
	return nil
}

// ranks says that a function only counts the rows before each row.
func ranks(f WindowFunc) bool { return f == WindowRowNumber || f == WindowRank || f == WindowDenseRank }

// addFunc checks a function, stores what it reads and returns its output field.
func (p *Window) addFunc(f *WindowSpec) (arrow.Field, error) {
	in := p.Input.Schema()
	for _, e := range f.Args {
		if err := checkExpr("window", e, in); err != nil {
			return arrow.Field{}, err
		}
	}
	field, err := f.field()
	if err != nil {
		return field, err
	}
	var at []int
	for _, e := range f.Args {
		at = append(at, p.store(e))
	}
	p.args = append(p.args, at)
	cols := frameColumns{-1, -1, -1}
	if f.framed() {
		if cols, err = p.storeFrame(f.Frame); err != nil {
			return field, err
		}
	}
	p.frames = append(p.frames, cols)
	return field, nil
}

func (p *Window) storeFrame(f Frame) (frameColumns, error) {
	cols := frameColumns{-1, -1, -1}
	if !f.needsKey() {
		return cols, nil
	}
	if f.Key == nil || len(p.Order) != 1 {
		return cols, errs.New(errs.ErrInternal, "window: a RANGE frame over %d sort keys", len(p.Order))
	}
	cols.key = p.store(f.Key)
	for _, b := range []struct {
		e  expr.Expr
		at *int
	}{{f.Key, &cols.key}, {f.Start.Value, &cols.start}, {f.End.Value, &cols.end}} {
		if b.e == nil {
			continue
		}
		if err := checkExpr("window", b.e, p.Input.Schema()); err != nil {
			return cols, err
		}
		if !arrow.TypeEqual(b.e.Type(), f.Key.Type()) || !isOrderable(b.e.Type()) {
			return cols, errs.New(errs.ErrInternal, "window: a bound of type %s for a key of type %s", b.e.Type(), f.Key.Type())
		}
		*b.at = p.store(b.e)
	}
	return cols, nil
}

// store keeps the value of e for each row and returns its place.
func (p *Window) store(e expr.Expr) int {
	for i, s := range p.stored {
		if expr.Equal(s, e) {
			return i
		}
	}
	p.stored = append(p.stored, e)
	return len(p.stored) - 1
}

// field checks the arguments and computes the type of the result.
func (w *WindowSpec) field() (arrow.Field, error) {
	args, out := 0, arrow.Field{Name: w.Name}
	switch w.Func {
	case WindowAggregate:
		spec := w.aggSpec()
		if spec.Func == AggAny || spec.Func == AggConcat {
			return out, errs.New(errs.ErrInternal, "window: %s has no frames", spec.Func)
		}
		t, err := spec.check()
		if err != nil {
			return out, err
		}
		if w.Type == nil {
			w.Type = t
		}
		out.Type, out.Nullable = w.Type, !w.Agg.neverNull()
		return out, nil
	case WindowRowNumber, WindowRank, WindowDenseRank:
		out.Type = arrow.PrimitiveTypes.Uint64
	case WindowNtile:
		if out.Type = arrow.PrimitiveTypes.Uint64; w.N == 0 {
			return out, errs.New(errs.ErrInternal, "window: ntile of no buckets")
		}
	case WindowPercentRank, WindowCumeDist:
		out.Type = arrow.PrimitiveTypes.Float64
	case WindowLag, WindowLead:
		args = len(w.Args)
		if args < 1 || args > 2 || args == 2 && !arrow.TypeEqual(w.Args[0].Type(), w.Args[1].Type()) {
			return out, errs.New(errs.ErrInternal, "window: arguments of %s", w.Func)
		}
	case WindowFirst, WindowLast, WindowNth:
		args = 1
	default:
		return out, errs.New(errs.ErrInternal, "window function %q", w.Func)
	}
	if len(w.Args) != args {
		return out, errs.New(errs.ErrInternal, "window: %d arguments of %s", len(w.Args), w.Func)
	}
	if args > 0 {
		out.Type, out.Nullable = w.Args[0].Type(), true
	}
	return out, nil
}

// Schema implements Plan.
func (p *Window) Schema() *arrow.Schema { return p.out }

// Children implements Plan.
func (p *Window) Children() []Plan { return []Plan{p.Input} }

// Describe implements Plan.
func (p *Window) Describe() Description {
	funcs := make([]string, len(p.Funcs))
	for i, f := range p.Funcs {
		funcs[i] = f.String()
	}
	d := Description{Name: "Window", Props: []Prop{
		{"partition", exprsText(p.Partition)}, {"order", sortKeysText(p.Order)}, {"functions", "[" + strings.Join(funcs, ", ") + "]"},
	}}
	if p.Limit != nil {
		d.Props = append(d.Props, Prop{"top", string(p.Limit.By) + " <= " + strconv.FormatUint(p.Limit.K, 10)})
	}
	return d
}

// Open implements Plan.
func (p *Window) Open(ctx context.Context, env *Env) (Operator, error) {
	ops, err := p.OpenWorkers(ctx, env, 1)
	if err != nil {
		return nil, err
	}
	return ops[0], nil
}

// OpenWorkers implements Parallel: the first worker that is asked computes on all of env.Workers, then all of them hand out rows.
func (p *Window) OpenWorkers(_ context.Context, env *Env, n int) ([]Operator, error) {
	state := &windowState{plan: p, env: env, shared: shared{refs: n}}
	ops := make([]Operator, n)
	for i := range ops {
		ops[i] = &windowOp{state: state}
	}
	return ops, nil
}

type windowOp struct {
	state  *windowState
	closed bool
}

func (w *windowOp) Schema() *arrow.Schema { return w.state.plan.out }

func (w *windowOp) Next(ctx context.Context) (arrow.RecordBatch, error) {
	s := w.state
	if _, err := s.done.get(func() (struct{}, error) { return struct{}{}, s.run(ctx) }); err != nil {
		return nil, nameMemory("window", err)
	}
	c, from, to := s.claim()
	if c == nil {
		return nil, io.EOF
	}
	cols := make([]arrow.Array, 0, s.plan.out.NumFields())
	cols, err := takeColumns(s.env.Alloc, s.cols[:len(s.plan.Output)], s.order[from:to], cols)
	if err != nil {
		return nil, nameMemory("window", err)
	}
	for _, r := range c.results {
		cols = append(cols, array.NewSlice(r, int64(from-c.from), int64(to-c.from)))
	}
	return newBatch(s.plan.out, cols, to-from), nil
}

func (w *windowOp) Close() error {
	if w.closed {
		return nil
	}
	w.closed = true
	return w.state.drop(w.state.free)
}

// windowCursor is where the rows are that nobody has taken.
type windowCursor struct {
	sync.Mutex
	chunk, at int
}

// claim returns the next rows, all of one chunk; nil at the end.
func (s *windowState) claim() (c *windowChunk, from, to int) {
	s.cursor.Lock()
	defer s.cursor.Unlock()
	for s.cursor.chunk < len(s.chunks) {
		c = s.chunks[s.cursor.chunk]
		from = max(c.from, s.cursor.at)
		if to = min(c.to, from+s.env.BatchRows); from < to {
			s.cursor.at = to
			return c, from, to
		}
		s.cursor.chunk++
	}
	return nil, 0, 0
}
