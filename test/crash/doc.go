// Package crash lets every statement that changes something meet a store that fails at each of its operations, before it takes effect or after, once or for ever, and kills the
// process there. Afterwards another engine finds the table as it was before the statement or as it is after it, indices answer as scans do, no file that a version names is
// missing, the next writer goes on, and what is left over is removed by clean-up.
//
// The plain suite fails at every operation that changes the store; under the tag soak at every read too.
package crash
