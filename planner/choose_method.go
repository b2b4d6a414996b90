package planner

import (
	"fmt"

	"github.com/lakesql/lakesql/exec"
	"github.com/lakesql/lakesql/glm"
	"github.com/lakesql/lakesql/planner/logical"
)

// chooseMethod decides between an exact and an approximate search by the settings, the indices and the bytes to compare.
func (c *Context) chooseMethod(n *logical.Search, table exec.VectorTable, dim int64) (logical.SearchSpec, error) {
	spec := logical.SearchSpec{MinProbes: c.Settings.NProbes, MaxProbes: c.Settings.MaxNProbes, RefineFactor: c.Settings.RefineFactor}
	vectorBytes := max(dim*4, 1)
	spec.VectorBytes = vectorBytes
	if c.Settings.ANN == Off {
		spec.Reason = "ann = off"
		return spec, nil
	}
	if c.Settings.Prefilter == PrefilterBruteForce {
		spec.Reason = "prefilter = brute_force"
		return spec, nil
	}
	chosen, err := table.VectorIndex(c.Ctx, n.Vector, n.Metric)
	if err != nil {
		return spec, err
	}
	c.faulty(table.Ref(), chosen.Faults)
	if !chosen.OK {
		spec.Reason = chosen.Reason
		return spec, nil
	}
	info := chosen.Info
	compare := float64(table.Rows()) * float64(vectorBytes)
	if c.Settings.ANN == Auto {
		if compare < float64(c.Settings.ANNExactBytes) {
			spec.Reason = fmt.Sprintf("%.0f bytes of vectors are below ann_exact_bytes", compare)
			return spec, nil
		}
		spec.ExactBelow = c.Settings.ANNExactBytes
	}
	spec.Index, spec.Kind, spec.Coverage = info.Name, info.Kind, exec.CoverageOf(table, info, chosen.Faults)
	spec.IndexedOnly = c.Settings.Freshness == FreshnessIndexedOnly
	spec.Reason = "ann = " + c.Settings.ANN
	verb := "is"
	if spec.ExactBelow > 0 && len(n.Scan.Filter)+len(n.Scan.Masks) > 0 {
		verb = "may be" // few candidates are compared exactly, and how many there are is known when the statement runs
	}
	text := fmt.Sprintf("the answer %s approximate: index %s (%s) serves column %s; SET ann = off makes it exact", verb, info.Name, info.Kind, n.Vector)
	c.warnings = append(c.warnings, exec.Warning{About: text, Text: text})
	return spec, nil
}

// chooseLate decides whether the columns that a cut does not need are read after it.
func (c *Context) chooseLate(early, survivors float64, earlyIsTake bool, table exec.Table, columns []string, remote bool) glm.Decision {
	switch c.Settings.GLM {
	case On:
		return glm.Decision{Late: true, Reason: "glm = on"}
	case Off:
		return glm.Decision{Reason: "glm = off"}
	}
	width := int64(0)
	if rows := table.Rows(); rows > 0 {
		size := int64(0)
		for _, col := range columns {
			size += max(0, table.ColumnBytes(c.Ctx, col))
		}
		width = (size + rows - 1) / rows // bits count as well: 0 would mean that nobody knows
	}
	request := int64(glm.RequestCostBytesMapped)
	if remote {
		request = glm.RequestCostBytesRemote
	}
	_, canTake := table.(exec.Addressable)
	return glm.Choose(glm.Costs{Survivors: int64(survivors), EarlyRows: int64(early), EarlyIsTake: earlyIsTake, WidthBytes: width, RequestBytes: request, CanTake: canTake})
}
