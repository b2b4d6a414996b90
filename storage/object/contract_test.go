package object_test

import (
	"testing"

	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/object/objecttest"
)

func TestEveryKindOfStoreKeepsTheContract(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) object.Store{
		"local mapped": func(t *testing.T) object.Store { return local(t, t.TempDir(), object.LocalOptions{SmallBytes: -1}) },
		"local small": func(t *testing.T) object.Store {
			return local(t, t.TempDir(), object.LocalOptions{SmallBytes: 1 << 20})
		},
		"local pread": func(t *testing.T) object.Store {
			return local(t, t.TempDir(), object.LocalOptions{SmallBytes: -1, MappingsMax: -1})
		},
		"memory": func(*testing.T) object.Store { return object.NewMemory("test") },
		"counting": func(*testing.T) object.Store {
			return object.NewCounting(object.NewMemory("test"), object.CountingOptions{})
		},
		"faulty": func(*testing.T) object.Store {
			return object.NewFaulty(object.NewMemory("test"), object.FaultyOptions{})
		},
	} {
		t.Run(name, func(t *testing.T) { objecttest.Run(t, open) })
	}
}

func local(t *testing.T, dir string, opts object.LocalOptions) *object.Local {
	t.Helper()
	s, err := object.OpenLocal(dir, opts)
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
