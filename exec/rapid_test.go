package exec

import (
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"pgregory.net/rapid"
)

// drawn is what a random check is made of: rapid prints and shrinks it.
type drawn struct {
	seed  uint64
	types []arrow.DataType
	how   config
}

func draw(t *rapid.T, typesMin, typesMax int) drawn {
	return drawn{
		seed:  rapid.Uint64().Draw(t, "seed"),
		types: rapid.SliceOfN(rapid.SampledFrom(keyTypes), typesMin, typesMax).Draw(t, "types"),
		how:   rapid.SampledFrom(configs).Draw(t, "config"),
	}
}

// check runs f with the drawn data and makes sure that all memory comes back.
func (d drawn) check(t *rapid.T, f func(env *Env, r *rand.Rand)) {
	alloc := memory.NewCheckedAllocator(memory.DefaultAllocator)
	f(d.how.env(alloc), rand.New(rand.NewPCG(d.seed, 1)))
	if n := alloc.CurrentAlloc(); n != 0 {
		t.Fatalf("%d bytes were not given back", n)
	}
}

func TestRandomJoins(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, kind := draw(t, 0, 3), rapid.SampledFrom(allKinds).Draw(t, "kind")
		d.check(t, func(env *Env, r *rand.Rand) { checkJoin(t, env, r, kind, d.types) })
	})
}

func TestRandomAggregates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := draw(t, 1, 5)
		d.check(t, func(env *Env, r *rand.Rand) { checkAggregate(t, env, r, d.types) })
	})
}

func TestRandomSorts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := draw(t, 1, 1)
		d.check(t, func(env *Env, r *rand.Rand) { checkSort(t, env, r, d.types[0]) })
	})
}
