// Package indexsoak builds indices at sizes that a normal test run has no time for. It has the build tag soak: make soak.
package indexsoak
