// Package demo makes the parcel lake: three tables of a parcel platform with labels, vectors and wide columns, the same for the same options.
//
// It owns the rows: columns, distributions, random streams. It does not own how rows become files and versions (write), nor the command line around it.
//
// D1: the rows depend on Options.Rows, Dim, Fragments and Seed alone; each fragment has a random stream of its own, so fragments are drawn in parallel.
//
// Start reading at Generate. docs/demo.md describes the tables.
package demo
