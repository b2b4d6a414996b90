package btree

// SetPageRows makes small pages, so that small tables have many.
func (b *Builder) SetPageRows(n int) { b.rows = n }
