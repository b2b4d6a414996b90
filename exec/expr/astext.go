package expr

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
)

// TextColumns converts the columns of a result's batches to what a client sees: MySQL text, or bytes. It is used by one goroutine at a time.
type TextColumns struct {
	programs []*Program // nil = the bytes are the text
}

// NewTextColumns prepares the conversion of batches of a schema.
func NewTextColumns(schema *arrow.Schema) (*TextColumns, error) {
	t := &TextColumns{programs: make([]*Program, schema.NumFields())}
	for i, f := range schema.Fields() {
		col := &Column{ID: i, Name: f.Name, T: f.Type}
		text, err := AsText(col)
		if err == nil && text != Expr(col) {
			t.programs[i], err = Compile(text, schema)
		}
		if err != nil {
			return nil, fmt.Errorf("column %q: %w", f.Name, err)
		}
	}
	return t, nil
}

// Column returns column i of a batch as text or bytes: a string, binary or NULL array, which the caller releases.
func (t *TextColumns) Column(env *Env, b arrow.RecordBatch, i int) (arrow.Array, error) {
	if t.programs[i] == nil {
		col := b.Column(i)
		col.Retain()
		return col, nil
	}
	col, err := t.programs[i].Eval(env, b)
	if err != nil {
		return nil, fmt.Errorf("column %q: %w", b.ColumnName(i), err)
	}
	return col, nil
}

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
