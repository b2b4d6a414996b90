package encoding

// dictionaryValues is a placeholder for pages of few distinct strings; see encode_values.go.
func (b *leafBuilder) dictionaryValues() chunkValues { return nil }
