//go:build !amd64 || purego

package vec

func best() isa { return portable }

func blockAssembly(isa, op, Elem, []float32, []float32, []float32, Block) bool { return false }

func gatherAssembly(isa, op, Elem, []float32, []float32, []float32, []byte, []int) bool { return false }

func assignAssembly(isa, *[tilePoints * panelWidth]float32, *[tilePoints * panelWidth]int32, []float32, *Panels) bool {
	return false
}

func lookup4Assembly(isa, []float32, []byte, []float32, int, int) int { return 0 }

func columnsAssembly(isa, op, []float32, []float32, []float32) bool { return false }
