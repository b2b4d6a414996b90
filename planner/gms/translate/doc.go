// Package translate turns go-mysql-server's bound statement trees into lakesql's logical plans.
//
// It owns: the analyzer rule, the binding of its columns to ours, expressions, aggregation with MySQL's result types, subqueries and their decorrelation,
// and the leaf node that carries our plan through the rest of go-mysql-server. It does not optimize (planner) nor run anything (exec).
//
// The rule runs first, before go-mysql-server's own rules: the tree is then what the statement says, with unique column ids. Its later rules lose what we
// need: NOT IN and NOT EXISTS become the same join, EXISTS over an aggregate loses the aggregate, join ordering explodes. A statement that
// is not translated whole goes on through these rules; parts of it may become leaves.
//
// I1: a column binds by id, then by name as go-mysql-server does, and the name must agree; a mismatch is never executed.
// I2: types are computed here from the leaves up; go-mysql-server's types are only used for constants.
// I3: a statement is translated whole or in parts where no type above changes; anything else runs row by row or is refused.
//
// Start reading at Rule, then relation.go, expr.go, subquery.go.
package translate
