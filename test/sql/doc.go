// Package sql holds the suites over the whole engine: the cases of public bug reports on every path and through every door, the test datasets by SQL, bad
// input over the wire, and the plans of the statements that lakesql is made for.
package sql
