// Package interop runs the reference engine against tables that lakesql wrote, and lakesql against what the engine made of them.
//
// It has the build tag interop and needs Python 3 and Node.js; test/interop/setup installs the engines in the versions that requirements*.txt
// and package.json pin:
//
//	test/interop/setup && go test -tags interop ./test/interop
//
// The matrix of what both engines do to one table (matrix.go: its factors and the selection; matrix_steps_test.go: the steps) is rendered into docs/interop.md.
//
// A missing engine fails the tests. Start at engine.go for the requests (engine.py and engine.mjs answer them), then at the Test functions.
package interop
