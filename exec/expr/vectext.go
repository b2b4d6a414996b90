package expr

import (
	"encoding/binary"
	"math"
	"strconv"
)

// resolveStringToVector makes MySQL's VECTOR, a blob of little-endian float32, from JSON text.
func resolveStringToVector(r *request) (impl, error) {
	if err := r.checkVector(0); err != nil {
		return impl{}, err
	}
	if lit, ok := r.literal(0); ok {
		if !lit.Value.IsValid() {
			return impl{t: typeBinary(), rewrite: Null(typeBinary())}, nil
		}
		q, err := r.queryVector(lit, 0)
		if err != nil {
			return impl{}, err
		}
		out, err := NewLiteral(vectorBlob(nil, q))
		return impl{t: typeBinary(), rewrite: out}, err
	}
	return impl{t: typeBinary(), run: func(x *call) (vector, error) {
		var q []float32
		return x.strings(func(i int, dst []byte) ([]byte, bool, error) {
			var ok bool
			var err error
			if q, ok, err = readVector(q[:0], &x.args[0], i); err != nil || !ok {
				return dst, false, err
			}
			return vectorBlob(dst, q), true, nil
		})
	}}, nil
}

func vectorBlob(dst []byte, q []float32) []byte {
	for _, f := range q {
		dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(f))
	}
	return dst
}

// vectorText prints a vector: as MySQL does with five digits and an exponent, or as MariaDB does with the shortest digits.
func vectorText(exponent bool) func(r *request) (impl, error) {
	return func(r *request) (impl, error) {
		if err := r.checkVector(0); err != nil {
			return impl{}, err
		}
		return impl{t: typeString(), run: func(x *call) (vector, error) {
			var q []float32
			return x.strings(func(i int, dst []byte) ([]byte, bool, error) {
				var ok bool
				var err error
				if q, ok, err = readVector(q[:0], &x.args[0], i); err != nil || !ok {
					return dst, false, err
				}
				dst = append(dst, '[')
				for j, f := range q {
					if j > 0 {
						dst = append(dst, ',')
					}
					if exponent {
						dst = strconv.AppendFloat(dst, float64(f), 'e', 5, 32)
					} else {
						dst = appendFloat(dst, float64(f), 32)
					}
				}
				return append(dst, ']'), true, nil
			})
		}}, nil
	}
}

func resolveVectorDim(r *request) (impl, error) {
	if err := r.checkVector(0); err != nil {
		return impl{}, err
	}
	if elementType(r.types[0]) != nil {
		return rewriteTo("array_length", r.args[0])
	}
	return impl{t: typeInt(), run: func(x *call) (vector, error) {
		var q []float32
		return x.ints(func(i int) (int64, bool, error) {
			var err error
			q, _, err = readVector(q[:0], &x.args[0], i)
			return int64(len(q)), true, err
		})
	}}, nil
}
