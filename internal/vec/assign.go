package vec

import "math"

const (
	panelWidth = 16 // centroids side by side in a panel
	tilePoints = 8  // points that are scored together
)

// Panels holds centroids in the order in which Assign reads them: element d of the sixteen centroids of a panel side by side.
// It is immutable and safe for concurrent use.
type Panels struct {
	dim, count int
	data       []float32 // [panels][dim][16]
	bias       []float32 // [panels][16]; -Inf for the places after the last centroid
}

// NewPanels arranges centroids [n*dim]float32, row-major. With dot the nearest centroid is the one of the largest inner product, else of the
// smallest Euclidean distance.
func NewPanels(centroids []float32, dim int, dot bool) *Panels {
	count := len(centroids) / dim
	panels := (count + panelWidth - 1) / panelWidth
	p := &Panels{dim: dim, count: count, data: make([]float32, panels*dim*panelWidth), bias: make([]float32, panels*panelWidth)}
	for c := range panels * panelWidth {
		if c >= count {
			p.bias[c] = float32(math.Inf(-1))
			continue
		}
		row := centroids[c*dim : (c+1)*dim]
		if !dot {
			// |x-c|^2 = |x|^2 - 2(x.c - |c|^2/2): the nearest has the largest x.c - |c|^2/2.
			p.bias[c] = -Norm2(row) / 2
		}
		at := c/panelWidth*dim*panelWidth + c%panelWidth
		for d, x := range row {
			p.data[at+d*panelWidth] = x
		}
	}
	return p
}

// Count returns the number of centroids.
func (p *Panels) Count() int { return p.count }

// Assign sets which[i] to the number of the centroid nearest to points[i*dim:][:dim], the lowest on a tie, and score[i] to
// x.c - |c|^2/2 (for dot panels x.c): the squared distance is |x|^2 - 2*score. A point with NaN goes to centroid 0 with score -Inf.
func (p *Panels) Assign(which []int32, score, points []float32) {
	p.assign(best(), which, score, points)
}

func (p *Panels) assign(i isa, which []int32, score, points []float32) {
	var top [tilePoints * panelWidth]float32
	var panel [tilePoints * panelWidth]int32
	tile := make([]float32, p.dim*tilePoints)
	n := len(points) / p.dim
	for first := 0; first < n; first += tilePoints {
		size := min(tilePoints, n-first)
		if size < tilePoints {
			clear(tile)
		}
		for t := range size {
			for d, x := range points[(first+t)*p.dim : (first+t+1)*p.dim] {
				tile[d*tilePoints+t] = x
			}
		}
		for j := range top {
			top[j], panel[j] = float32(math.Inf(-1)), 0
		}
		if i == portable || !assignAssembly(i, &top, &panel, tile, p) {
			assignPortable(&top, &panel, tile, p)
		}
		for t := range size {
			score[first+t], which[first+t] = winner(top[t*panelWidth:(t+1)*panelWidth], panel[t*panelWidth:(t+1)*panelWidth])
		}
	}
}

// winner picks the best of the sixteen places of a point.
func winner(top []float32, panel []int32) (score float32, which int32) {
	score, which = top[0], panel[0]*panelWidth
	for j := 1; j < panelWidth; j++ {
		if c := panel[j]*panelWidth + int32(j); top[j] > score || (top[j] == score && c < which) {
			score, which = top[j], c
		}
	}
	if math.IsInf(float64(score), -1) {
		which = 0
	}
	return score, which
}

func assignPortable(top *[tilePoints * panelWidth]float32, panel *[tilePoints * panelWidth]int32, tile []float32, p *Panels) {
	for k := range len(p.bias) / panelWidth {
		data := p.data[k*p.dim*panelWidth : (k+1)*p.dim*panelWidth]
		for t := range tilePoints {
			acc := [panelWidth]float32(p.bias[k*panelWidth : (k+1)*panelWidth])
			for d := range p.dim {
				x, row := tile[d*tilePoints+t], data[d*panelWidth:(d+1)*panelWidth:(d+1)*panelWidth]
				for j := range acc {
					acc[j] += x * row[j]
				}
			}
			for j, s := range acc {
				if at := t*panelWidth + j; s > top[at] {
					top[at], panel[at] = s, int32(k)
				}
			}
		}
	}
}
