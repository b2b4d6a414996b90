package dialect

import "strings"

// Split cuts a text into statements at the semicolons outside strings, comments and parentheses; empty ones are left out. Bodies of stored programs (CREATE
// PROCEDURE and the like) are kept whole with what follows them.
func Split(text string) []string {
	s := newScanner(text)
	var out []string
	begin, words := 0, 0
	var first, last string
	program := false
	add := func(end int) {
		if piece := strings.TrimSpace(text[begin:end]); piece != "" && words > 0 {
			out = append(out, piece)
		}
	}
	for {
		t, ok := s.next()
		if !ok {
			break
		}
		if t.class == classComment {
			continue
		}
		if t.class == classOp && t.op == ';' && t.start >= 0 {
			if program {
				continue
			}
			add(t.start)
			begin, words, first = t.end, 0, ""
			continue
		}
		words++
		if words == 1 {
			first = t.word
		}
		last = t.word
		if first == "create" && words <= 12 && (last == "procedure" || last == "trigger" || last == "event" || last == "function") {
			program = true
		}
	}
	add(len(text))
	return out
}
