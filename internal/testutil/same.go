package testutil

import (
	"reflect"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// SameValues compares arrays by value: dictionaries, at any depth, by what their indices mean.
func SameValues(a, b arrow.Array) bool {
	if !hasDictionary(a.DataType()) {
		return array.ApproxEqual(a, b, array.WithNaNsEqual(true), array.WithAbsTolerance(0))
	}
	if a.Len() != b.Len() || a.DataType().ID() != b.DataType().ID() {
		return false
	}
	for i := range a.Len() {
		if !reflect.DeepEqual(a.GetOneForMarshal(i), b.GetOneForMarshal(i)) {
			return false
		}
	}
	return true
}

func hasDictionary(t arrow.DataType) bool {
	if t.ID() == arrow.DICTIONARY {
		return true
	}
	if n, ok := t.(arrow.NestedType); ok {
		for _, f := range n.Fields() {
			if hasDictionary(f.Type) {
				return true
			}
		}
	}
	return false
}
