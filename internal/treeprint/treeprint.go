// Package treeprint prints trees: one node a line, children indented.
package treeprint

import "strings"

// Format prints the tree below root. describe gives a node's text and its children.
func Format[N any](root N, describe func(N) (string, []N)) string {
	var b strings.Builder
	write(&b, root, describe, "", "")
	return b.String()
}

func write[N any](b *strings.Builder, n N, describe func(N) (string, []N), first, rest string) {
	text, children := describe(n)
	for i, line := range strings.Split(text, "\n") {
		if i == 0 {
			b.WriteString(first)
		} else {
			b.WriteString(rest)
		}
		b.WriteString(line)
		b.WriteByte('\n')
	}
	for i, c := range children {
		if i < len(children)-1 {
			write(b, c, describe, rest+"├─ ", rest+"│  ")
		} else {
			write(b, c, describe, rest+"└─ ", rest+"   ")
		}
	}
}
