package expr

import "github.com/apache/arrow-go/v18/arrow"

// AsText returns the expression of a value's MySQL text: what a client sees in a result. It is c itself where the bytes are that text already: strings,
// binary, NULL.
func AsText(c *Column) (Expr, error) {
	switch c.T.ID() {
	case arrow.STRING, arrow.BINARY, arrow.LARGE_STRING, arrow.LARGE_BINARY, arrow.NULL:
		return c, nil
	case arrow.FIXED_SIZE_BINARY:
		return NewCast(c, arrow.BinaryTypes.Binary)
	case arrow.BOOL: // TINYINT(1), not the word
		n, err := NewCast(c, arrow.PrimitiveTypes.Int64)
		if err != nil {
			return nil, err
		}
		return NewCast(n, arrow.BinaryTypes.String)
	case arrow.LIST, arrow.LARGE_LIST, arrow.FIXED_SIZE_LIST, arrow.LIST_VIEW, arrow.LARGE_LIST_VIEW, arrow.STRUCT, arrow.MAP:
		return NewCall("to_json", c)
	}
	return NewCast(c, arrow.BinaryTypes.String)
}
