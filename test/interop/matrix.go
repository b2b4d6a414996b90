package interop

import (
	"fmt"
	"slices"
	"strings"
)

// factor is a dimension of the matrix.
type factor struct {
	name   string
	levels []string
}

// The factors of the matrix, in the order of Case. What lakesql does and what the engine does next make the most pairs.
func factors() []factor {
	return []factor{
		{"lakesql does", ourOperations},
		{"the engine does next", theirOperations},
		{"index", indexKinds},
		{"rows", shapes},
		{"foreign index", foreignKinds},
		{"file version", fileVersions},
		{"row ids", []string{"addresses", "stable"}},
		{"engine", []string{"pylance", "newer pylance"}},
	}
}

// The levels of the factors. fileVersions are those that lakesql writes.
var (
	ourOperations   = []string{"create", "append", "delete", "update", "compact", "index update", "schema change", "tag", "branch"}
	theirOperations = []string{"append", "delete", "update", "upsert", "compact", "index update", "schema change", "tag", "branch"}
	indexKinds      = []string{"LABEL_LIST", "BITMAP", "BTREE", "ZONEMAP", "IVF_FLAT"}
	shapes          = []string{"every type", "nulls", "empties", "nesting"}
	foreignKinds    = []string{"NGRAM", "BLOOMFILTER", "INVERTED"} // built by the engine, unknown to lakesql
	fileVersions    = []string{"2.1", "2.2"}
)

// Case is one story: a table is made and indexed, changed by lakesql, then by the engine, then by lakesql again, and compared after every step.
type Case struct {
	levels []int // by factor
	number int   // in its selection: what is no factor of its own, the type of the indexed column say, goes round by it
}

func (c Case) level(i int) string { return factors()[i].levels[c.levels[i]] }

func (c Case) ours() string    { return c.level(0) }
func (c Case) theirs() string  { return c.level(1) }
func (c Case) kind() string    { return c.level(2) }
func (c Case) shape() string   { return c.level(3) }
func (c Case) foreign() string { return c.level(4) }
func (c Case) version() string { return c.level(5) }
func (c Case) stable() bool    { return c.levels[6] == 1 }
func (c Case) engine() string  { return c.level(7) }

// key is the type of the indexed column.
func (c Case) key() keyType {
	types := keyTypes(c.kind())
	return types[c.number%len(types)]
}

// String names the case in tests.
func (c Case) String() string {
	return fmt.Sprintf("%d %s of %s, %s, then %s, %s, %s ids, %s, %s", c.number, c.kind(), c.key().name, c.ours(), c.theirs(), c.shape(), c.level(6), c.version(), c.foreign())
}

// pair is two levels of two factors.
type pair struct{ f, a, g, b int }

func pairsOf(levels []int) (out []pair) {
	for f := range levels {
		for g := f + 1; g < len(levels); g++ {
			out = append(out, pair{f, levels[f], g, levels[g]})
		}
	}
	return out
}

// allPairs lists every pair of levels.
func allPairs(fs []factor) (out []pair) {
	for f := range fs {
		for g := f + 1; g < len(fs); g++ {
			for a := range fs[f].levels {
				for b := range fs[g].levels {
					out = append(out, pair{f, a, g, b})
				}
			}
		}
	}
	return out
}

// Pairwise is the selection that CI runs: each pair of levels occurs in a case. It is the same each time.
func Pairwise() []Case {
	fs := factors()
	open := make(map[pair]bool)
	order := allPairs(fs)
	for _, p := range order {
		open[p] = true
	}
	var out []Case
	used := make([][]int, len(fs)) // how often a level occurs, to break ties
	for f := range fs {
		used[f] = make([]int, len(fs[f].levels))
	}
	for _, p := range order {
		if !open[p] {
			continue
		}
		levels := make([]int, len(fs))
		for f := range levels {
			levels[f] = -1
		}
		levels[p.f], levels[p.g] = p.a, p.b
		for f := range fs {
			if levels[f] < 0 {
				levels[f] = bestLevel(fs, open, used, levels, f)
			}
			used[f][levels[f]]++
		}
		for _, q := range pairsOf(levels) {
			delete(open, q)
		}
		out = append(out, Case{levels: levels, number: len(out)})
	}
	return numbered(out)
}

// bestLevel chooses the level of f that closes most pairs with the levels chosen so far.
func bestLevel(fs []factor, open map[pair]bool, used [][]int, levels []int, f int) int {
	best, most := 0, -1
	for a := range fs[f].levels {
		n := 0
		for g, b := range levels {
			switch {
			case b < 0 || g == f:
			case g < f && open[pair{g, b, f, a}], g > f && open[pair{f, a, g, b}]:
				n++
			}
		}
		if n > most || n == most && used[f][a] < used[f][best] {
			best, most = a, n
		}
	}
	return best
}

// numbered counts the cases of each kind of index, so that all its column types come up.
func numbered(cases []Case) []Case {
	seen := make(map[int]int)
	for i := range cases {
		k := cases[i].levels[2]
		cases[i].number = seen[k]
		seen[k]++
	}
	return cases
}

// Full is the product of what lakesql does, kind of index, rows, file version and row ids; the rest goes round.
func Full() []Case {
	fs := factors()
	var out []Case
	levels := make([]int, len(fs))
	var choose func(at int)
	product := []int{0, 2, 3, 5, 6}
	choose = func(at int) {
		if at < len(product) {
			for l := range fs[product[at]].levels {
				levels[product[at]] = l
				choose(at + 1)
			}
			return
		}
		next := slices.Clone(levels)
		next[1] = (len(out) + len(out)/9) % len(fs[1].levels)
		next[4] = len(out) % len(fs[4].levels)
		next[7] = (len(out) + len(out)/2) % len(fs[7].levels)
		out = append(out, Case{levels: next})
	}
	choose(0)
	return numbered(out)
}

// cell is a place in the table of the matrix.
type cell struct{ kind, shape, ours, version, ids string }

func cellsOf(cases []Case) map[cell]bool {
	out := make(map[cell]bool)
	for _, c := range cases {
		out[cell{c.kind(), c.shape(), c.ours(), c.version(), c.level(6)}] = true
	}
	return out
}

// Render writes docs/interop.md: what of the full matrix the cases cover.
func Render(cases []Case) string {
	var b strings.Builder
	ci := cellsOf(cases)
	fmt.Fprintf(&b, `# What lakesql and the real engine do to one another's tables

Written by the tests of test/interop; `+"`LAKESQL_REWRITE=1 go test ./test/interop`"+` renders it anew, and a test fails where it differs from what is declared and what was run.

Each case is a story of one table. lakesql makes it by SQL, indexes it and lets the engine add an index of a kind that lakesql does not know; lakesql changes it; the engine changes
it; lakesql changes it again and tidies up. After every step all columns of all rows are read by both and compared with a model kept beside them, the engine's plan has to name
our index, its answers by the index have to be those of its own scan, those of lakesql by index and by scan, and the model's, and lakesql.indices has to count the covered rows as the
engine does. The engines are pylance 14.0.2 and 12.0.0.

## The matrix

**ci**: run by `+"`.ci/run`"+`, in a selection of %d cases in which each pair of levels occurs: what lakesql does, what the engine does next (%s), kind of index, rows, foreign
index (%s), file version, row ids and engine. soak: run by `+"`make soak`"+`, the full product of %d cases. The first mark is for row ids that are addresses, the second for stable row ids.
`, len(cases), strings.Join(theirOperations, ", "), strings.Join(foreignKinds, ", "), len(Full()))
	for _, version := range fileVersions {
		fmt.Fprintf(&b, "\n### File version %s\n\n| index | rows | %s |\n|---|---|%s\n", version, strings.Join(ourOperations, " | "), strings.Repeat("---|", len(ourOperations)))
		for _, kind := range indexKinds {
			for _, shape := range shapes {
				fmt.Fprintf(&b, "| %s | %s |", kind, shape)
				for _, op := range ourOperations {
					mark := func(ids string) string {
						if ci[cell{kind, shape, op, version, ids}] {
							return "**ci**"
						}
						return "soak"
					}
					fmt.Fprintf(&b, " %s %s |", mark("addresses"), mark("stable"))
				}
				b.WriteString("\n")
			}
		}
	}
	renderKeys(&b, cases)
	renderTypes(&b)
	renderLimits(&b)
	return b.String()
}

func renderKeys(b *strings.Builder, cases []Case) {
	b.WriteString("\n## Types of indexed columns\n\nOf the cases above, by the type of the column that is indexed:\n\n| index | types |\n|---|---|\n")
	for _, kind := range indexKinds {
		var types []string
		for _, k := range keyTypes(kind) {
			n := 0
			for _, c := range cases {
				if c.kind() == kind && c.key().name == k.name {
					n++
				}
			}
			types = append(types, fmt.Sprintf("%s (%d in ci)", k.name, n))
		}
		fmt.Fprintf(b, "| %s | %s |\n", kind, strings.Join(types, ", "))
	}
}
