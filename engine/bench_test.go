package engine

import (
	"context"
	"errors"
	"io"
	"testing"
)

// BenchmarkStatement measures what a statement costs besides its data: parsing, name resolution, translation, planning, opening.
func BenchmarkStatement(b *testing.B) {
	e := openLake(b, Config{Workers: 1})
	s := e.NewSession(SessionOptions{Database: "lake"})
	defer s.Close()
	for _, c := range []struct{ name, text string }{
		{"constant", "SELECT 1"},
		{"filter", "SELECT id FROM v WHERE id = 3"},
		{"search", "SELECT id, l2_distance(vec, [1,0]) d FROM v WHERE cat = 'a' ORDER BY d LIMIT 2"},
		{"join", "SELECT v.cat, SUM(o.amt) FROM v JOIN orders o ON o.vid = v.id JOIN perms p ON p.id = v.id GROUP BY v.cat ORDER BY 2"},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				res, err := s.Query(context.Background(), c.text)
				if err != nil {
					b.Fatal(err)
				}
				for {
					batch, err := res.Operator.Next(res.Context())
					if errors.Is(err, io.EOF) {
						break
					}
					if err != nil {
						b.Fatal(err)
					}
					batch.Release()
				}
				if err := res.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
