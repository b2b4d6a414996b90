// Package expr holds typed scalar expressions and their vectorized evaluation over Arrow batches, with MySQL's semantics.
//
// An Expr is immutable, printable and typed exactly. It is built bottom-up by NewCall, which resolves the overload, converts literals to the type
// of the column beside them where the value survives, and computes the result type. Compile turns it into a Program that runs on batches.
//
// It owns the rules of types, comparison, arithmetic, strings, dates, lists and distances, and the gather kernels (TakeArray, FilterBatch). It does
// not own aggregates and windows (exec), names (the translator folds NOW() and session functions to literals), or what an index may answer (planner).
//
// In logical plans Column.ID is a column id, unique in the plan; in exec plans it is the position in the input schema. Rebind maps one to the other.
//
// I1: a Program is immutable and safe for concurrent use; what one Eval needs lives in a state from a pool.
// I2: a vector's memory belongs to its state or to the input batch; what Eval returns is owned by the caller and allocated from Env.Alloc, or is a
// retained input column.
// I3: a kernel never reads a value where its validity bit is clear in a way that can fail: garbage under NULL neither errs nor panics.
// I4: a vector of one value (konst) stands for every row; kernels index it through at().
// I5: an error in a row that MySQL would not evaluate (a CASE branch not taken, the right side of AND where the left is FALSE) does not surface.
//
// Start reading at NewCall (call.go), then Compile (program.go), vector.go, and any file of functions.
package expr
