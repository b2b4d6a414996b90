// Package object is the byte store below tables and files: local folders by kept mappings, memory, and remote object stores.
//
// It owns paths, ranges, atomic publication and the mapping of store failures to error kinds. It knows nothing of what
// the bytes mean. Paths are slash-separated and relative to the store's root; they never start with "/" and never
// contain "..": CheckPath is the one gate, and every store passes through it. "" is the root itself.
//
// Invariants:
//
//	I1: bytes that a File returns stay valid and unchanged until the Store is closed; callers must not write to them.
//	    A local file that is truncated under its mapping raises a memory fault in the reader, which spawn.Guard turns into errs.ErrIO.
//	I2: a file is published whole or not at all; a reader never sees part of a Put or of a Writer that is not closed.
//	I3: names that start with TempPrefix are files in the making; List leaves them out.
//	I4: one local file has one mapping, however often it is opened, until its content is replaced or the store closed.
//
// Start at Store; OpenLocal, NewMemory, OpenBlob and OpenURL make one; Counting and Faulty wrap one for tests.
package object
