// Package inspect renders what a Lance dataset is made of as text, for lakesql inspect: a manifest, the fragments of the
// latest version, a file, one page. It owns no format: it prints what the packages of storage read, and goes on past what they refuse, so
// that every fault shows at once.
//
// Each function writes text and returns how many faults it found; each fault is a line that starts with "FAULT". An error
// means that nothing could be shown: the path does not exist, or w failed.
//
// Start at Manifest, Fragments, File and Page. Index segments are rendered by index/inspect.
package inspect
