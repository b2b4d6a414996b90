// Package glm is global late materialization: wide columns are read only for the rows that survive the global cut.
//
// It owns the choice between early and late (Choose) and the operator that reads late (Fetch). It does not decide which columns could wait: the planner
// knows what ranking and filters need.
package glm

import "fmt"

// RequestCostBytes is what one more read costs, in bytes that could have been read in its time: a remote store answers a small request in about 20 ms
// and streams about 100 MB/s; a kept mapping costs a page fault.
const (
	RequestCostBytesMapped = 512
	RequestCostBytesRemote = 2 << 20
)

// Costs is what the choice compares.
type Costs struct {
	Survivors    int64 // rows after the global cut
	EarlyRows    int64 // rows that would be read before it: the sum of local cuts
	WidthBytes   int64 // stored bytes of one row's waiting columns; 0 = unknown
	RequestBytes int64 // cost of a request, as above
	EarlyIsTake  bool  // early reads single rows too, as search tasks do for their local hits; otherwise it reads in bulk
	CanTake      bool  // the source reads single rows
}

// Decision is the choice with its reason, for EXPLAIN.
type Decision struct {
	Late   bool
	Reason string
}

// Choose compares early = EarlyRows x width (with a request each, where EarlyIsTake) with late = Survivors x (width + request).
func Choose(c Costs) Decision {
	if !c.CanTake {
		return Decision{Reason: "the source cannot read single rows"}
	}
	early := c.EarlyRows * c.WidthBytes
	if c.EarlyIsTake {
		early += c.EarlyRows * c.RequestBytes
	}
	late := c.Survivors * (c.WidthBytes + c.RequestBytes)
	if c.WidthBytes == 0 {
		return Decision{Late: c.Survivors <= c.EarlyRows, Reason: fmt.Sprintf("%d of %d rows survive", c.Survivors, c.EarlyRows)}
	}
	if late <= early {
		return Decision{Late: true, Reason: fmt.Sprintf("late reads about %d bytes, early %d", c.Survivors*c.WidthBytes, c.EarlyRows*c.WidthBytes)}
	}
	return Decision{Reason: fmt.Sprintf("early reads about %d bytes in bulk, late %d in single requests", c.EarlyRows*c.WidthBytes, c.Survivors*c.WidthBytes)}
}
