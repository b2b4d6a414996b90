// Package memory holds statements to their memory limit: the process' anonymous resident memory, mapped file pages aside, must stay within the limit and a fifth
// above what it is at rest, and nothing may stay reserved after a statement, however it ends. With the tag soak the same runs on more rows and a larger limit.
package memory
