// Package lakes makes small lakes for whole-engine tests and asks statements through every door: an embedded session, and the MySQL protocol with text
// and with prepared statements.
//
// It owns the ways a table can come to be (Path), the servers of tests, and the spelling of answers as lines. It does not own any test.
//
// Start reading at Build and Open.
package lakes
