// Package dialect is what lakesql's SQL has beyond MySQL's grammar as go-mysql-server parses it. It takes the text of one statement and
// returns text that the parser understands, plus what it learned on the way: hints, the format of an EXPLAIN, statements of our own.
//
// It owns: the bounds that keep a recursive parser's stack finite, list literals, MEMBER OF, CREATE INDEX ... USING and OPTIMIZE TABLE, SET_VAR hints,
// splitting of several statements, and the way back from positions in the rewritten text. It does not parse SQL: it works on tokens and splices the
// original bytes.
//
// I1: bytes inside strings, comments and quoted names are never changed.
// I2: text that the tokenizer does not understand passes unchanged, so that the parser reports the error.
// I3: work is linear in the length of the text and uses no recursion.
//
// Start reading at Rewrite.
package dialect
