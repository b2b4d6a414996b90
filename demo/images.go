package demo

import (
	"encoding/binary"
	"math"
	"slices"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
)

const (
	centreCount     = 1000 // Gaussians in the mixture
	latentDims      = 16   // of each Gaussian's covariance
	familyCount     = 8    // covariances
	siteCount       = 300
	trajectoryBytes = 1024
	trackPoints     = 1 << 18 // of 16 bytes each, in the pool that trajectories are cut from
	labelsMax       = 5
)

// model is the mixture that embeddings are drawn from: a centre plus a family's matrix times a latent vector, whose scales decay, plus a little noise.
type model struct {
	dim          int
	centres      []float32 // [centreCount][dim]
	matrices     []float32 // [familyCount][dim][latentDims]
	pick         zipf
	labels       []string
	label        zipf
	clusterLabel []int // the label that half of a cluster's rows begin with
	tracks       []byte
}

func newModel(opts Options) *model {
	r := newRandom(opts.Seed, streamModel)
	m := &model{
		dim:      opts.Dim,
		centres:  make([]float32, centreCount*opts.Dim),
		matrices: make([]float32, familyCount*opts.Dim*latentDims),
		pick:     newZipf(centreCount, 0.5),
		labels:   labelNames(),
		label:    newZipf(labelCount, 1),
	}
	for i := range m.centres {
		m.centres[i] = 0.7 * r.gauss()
	}
	for i := range m.matrices {
		m.matrices[i] = 0.4 / float32(math.Sqrt(float64(1+i%latentDims))) * r.gauss()
	}
	for range centreCount {
		m.clusterLabel = append(m.clusterLabel, m.label.draw(r))
	}
	m.tracks = newTracks(newRandom(opts.Seed, streamTracks))
	return m
}

// newTracks is a random walk of track points: u32 time, i32 latitude and longitude in 1e-7 degrees, u16 speed, u16 flags.
func newTracks(r random) []byte {
	out := make([]byte, 0, 16*trackPoints)
	lat, lon, ts := int32(311234567), int32(1213456789), uint32(0)
	for range trackPoints {
		lat += int32(r.IntN(2001)) - 1000
		lon += int32(r.IntN(2001)) - 1000
		ts += 1 + uint32(r.IntN(5))
		out = binary.LittleEndian.AppendUint32(out, ts)
		out = binary.LittleEndian.AppendUint32(out, uint32(lat))
		out = binary.LittleEndian.AppendUint32(out, uint32(lon))
		out = binary.LittleEndian.AppendUint16(out, uint16(r.IntN(3000)))
		out = binary.LittleEndian.AppendUint16(out, uint16(r.IntN(4)))
	}
	return out
}

// embed draws a vector of cluster c into out.
func (m *model) embed(r random, c int, out []float32) {
	var z [latentDims]float32
	for i := range z {
		z[i] = r.gauss()
	}
	matrix := m.matrices[c%familyCount*m.dim*latentDims:]
	for d, centre := range m.centres[c*m.dim : (c+1)*m.dim] {
		row := (*[latentDims]float32)(matrix[d*latentDims:])
		// Explicit conversions round each step, so that no machine fuses them and the bits are the same everywhere.
		s := centre + float32(0.2*(r.Float32()-0.5))
		for k, v := range z {
			s += float32(row[k] * v)
		}
		out[d] = s
	}
}

func (g *generator) images() table {
	vector := arrow.FixedSizeListOf(int32(g.opts.Dim), arrow.PrimitiveTypes.Float32)
	s := arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64},
		{Name: "parcel_id", Type: arrow.PrimitiveTypes.Int64},
		{Name: "captured_at", Type: micros()},
		{Name: "tenant", Type: arrow.BinaryTypes.String},
		{Name: "site", Type: arrow.PrimitiveTypes.Int32},
		{Name: "labels", Type: arrow.ListOf(arrow.BinaryTypes.String), Nullable: true},
		{Name: "embedding", Type: vector},
		{Name: "note", Type: arrow.BinaryTypes.String},
		{Name: "trajectory", Type: arrow.BinaryTypes.Binary},
	}, nil)
	byTenant := newZipf(len(tenants), 0.8)
	n := g.opts.Rows
	return g.parts("images", s, n, n, g.opts.Fragments, streamImages, func(r random) func(*array.RecordBuilder, int64) int64 {
		embedding, note := make([]float32, g.opts.Dim), []byte(nil)
		return func(b *array.RecordBuilder, id int64) int64 {
			cluster := g.model.pick.draw(r)
			field[*array.Int64Builder](b, 0).Append(id)
			parcel := id + r.Int64N(2*parcelReach+1) - parcelReach
			field[*array.Int64Builder](b, 1).Append(max(0, min(n-1, parcel)))
			captured := at(float64(id)+r.Float64(), n) + r.Int64N(6*3600)*1_000_000
			field[*array.TimestampBuilder](b, 2).Append(arrow.Timestamp(captured))
			field[*array.StringBuilder](b, 3).Append(tenants[byTenant.draw(r)])
			field[*array.Int32Builder](b, 4).Append(int32(r.IntN(siteCount)))
			g.model.appendLabels(r, field[*array.ListBuilder](b, 5), cluster)
			g.model.embed(r, cluster, embedding)
			vectors := field[*array.FixedSizeListBuilder](b, 6)
			vectors.Append(true)
			vectors.ValueBuilder().(*array.Float32Builder).AppendValues(embedding, nil) //nolint:errcheck,forcetypeassert // as field
			note = appendNote(note[:0], r, id)
			field[*array.StringBuilder](b, 7).BinaryBuilder.Append(note)
			from := 16 * r.IntN(trackPoints-trajectoryBytes/16)
			field[*array.BinaryBuilder](b, 8).Append(g.model.tracks[from : from+trajectoryBytes])
			return 1
		}
	})
}

// appendLabels: 2% NULL lists, 1% empty ones, 1% with a NULL element behind the labels; otherwise one to five distinct labels.
func (m *model) appendLabels(r random, b *array.ListBuilder, cluster int) {
	kind := r.IntN(100)
	if kind < 2 {
		b.AppendNull()
		return
	}
	b.Append(true)
	if kind == 2 {
		return
	}
	items := b.ValueBuilder().(*array.StringBuilder) //nolint:errcheck,forcetypeassert // as field
	var taken [labelsMax]int
	u := r.Float64()
	want, count := 1+int(labelsMax*u*u), 0
	for i := range want {
		l := m.label.draw(r)
		if i == 0 && r.IntN(2) == 0 {
			l = m.clusterLabel[cluster]
		}
		if slices.Contains(taken[:count], l) {
			continue
		}
		taken[count] = l
		count++
		items.Append(m.labels[l])
	}
	if kind == 3 {
		items.AppendNull()
	}
}

func appendNote(out []byte, r random, id int64) []byte {
	out = append(append(out, noteStarts[r.IntN(len(noteStarts))]...), ", "...)
	out = append(append(out, noteFindings[r.IntN(len(noteFindings))]...), ", "...)
	out = append(out, noteEnds[r.IntN(len(noteEnds))]...)
	if r.IntN(100) == 0 {
		out = append(append(out, ' '), rareWord...)
	}
	out = append(out, " #"...)
	return strconv.AppendInt(out, id*7919+1_000_000_007, 10)
}

func appendCents(b *array.Decimal128Builder, cents int64) { b.Append(decimal128.FromI64(cents)) }
