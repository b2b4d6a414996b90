package inspect

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/lakesql/lakesql/internal/treeprint"
)

// printer writes indented lines and counts faults. A failing writer shows at end.
type printer struct {
	w      *bufio.Writer
	depth  int
	faults int
}

func newPrinter(w io.Writer) *printer { return &printer{w: bufio.NewWriter(w)} }

func (p *printer) line(format string, args ...any) {
	_, _ = p.w.WriteString(strings.Repeat("  ", p.depth)) // bufio keeps the first error for Flush
	_, _ = fmt.Fprintf(p.w, format, args...)
	_ = p.w.WriteByte('\n')
}

func (p *printer) fault(format string, args ...any) {
	p.faults++
	p.line("FAULT "+format, args...)
}

// section prints a head and indents what f prints.
func (p *printer) section(head string, f func()) {
	p.line("%s", head)
	p.depth++
	f()
	p.depth--
}

func (p *printer) end() (int, error) { return p.faults, p.w.Flush() }

// numbers renders a bitmap as ranges: "0-4 7".
func numbers(b *roaring.Bitmap) string {
	if b == nil || b.IsEmpty() {
		return "none"
	}
	const shown = 20
	var out []string
	for it := b.Iterator(); it.HasNext(); {
		first := it.Next()
		last := first
		for it.HasNext() && it.PeekNext() == last+1 {
			last = it.Next()
		}
		if len(out) == shown {
			return strings.Join(out, " ") + fmt.Sprintf(" ... %d in all", b.GetCardinality())
		}
		if first == last {
			out = append(out, fmt.Sprint(first))
		} else {
			out = append(out, fmt.Sprintf("%d-%d", first, last))
		}
	}
	return strings.Join(out, " ")
}

// node is one field of a message, for trees.
type node struct {
	text     string
	children []node
}

// tree renders a message as a tree, one field a line.
func tree(name string, m protoreflect.Message) string {
	return treeprint.Format(messageNode(name, m), func(n node) (string, []node) { return n.text, n.children })
}

func messageNode(name string, m protoreflect.Message) node {
	n := node{text: name}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		label := string(f.Name())
		switch {
		case f.IsMap():
			n.children = append(n.children, node{text: fmt.Sprintf("%s = %d entries", label, v.Map().Len())})
		case f.IsList() && f.Message() != nil:
			for i := range v.List().Len() {
				n.children = append(n.children, messageNode(fmt.Sprintf("%s[%d]", label, i), v.List().Get(i).Message()))
			}
		case f.IsList():
			parts := make([]string, v.List().Len())
			for i := range parts {
				parts[i] = scalar(f, v.List().Get(i))
			}
			n.children = append(n.children, node{text: label + " = " + strings.Join(parts, ", ")})
		case f.Message() != nil:
			n.children = append(n.children, messageNode(label, v.Message()))
		default:
			n.children = append(n.children, node{text: label + " = " + scalar(f, v)})
		}
		return true
	})
	sortNodes(n.children, m)
	if u := len(m.GetUnknown()); u > 0 {
		n.children = append(n.children, node{text: fmt.Sprintf("unknown fields, %d bytes", u)})
	}
	return n
}

func scalar(f protoreflect.FieldDescriptor, v protoreflect.Value) string {
	switch f.Kind() {
	case protoreflect.EnumKind:
		if e := f.Enum().Values().ByNumber(v.Enum()); e != nil {
			return strings.ToLower(string(e.Name()))
		}
		return fmt.Sprintf("enum %d", v.Enum())
	case protoreflect.BytesKind:
		const shown = 16
		if b := v.Bytes(); len(b) > shown {
			return fmt.Sprintf("%d bytes %x...", len(b), b[:shown])
		}
		return fmt.Sprintf("%d bytes %x", len(v.Bytes()), v.Bytes())
	case protoreflect.StringKind:
		return fmt.Sprintf("%q", v.String())
	}
	return fmt.Sprint(v.Interface())
}

// sortNodes puts children in the order of the message's declaration: Range has no order.
func sortNodes(children []node, m protoreflect.Message) {
	rank := make(map[string]int)
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		rank[string(fields.Get(i).Name())] = int(fields.Get(i).Number())
	}
	key := func(n node) int {
		name, _, _ := strings.Cut(n.text, " ")
		name, _, _ = strings.Cut(name, "[")
		return rank[name]
	}
	for i := 1; i < len(children); i++ { // insertion sort keeps list elements in order
		for k := i; k > 0 && key(children[k]) < key(children[k-1]); k-- {
			children[k], children[k-1] = children[k-1], children[k]
		}
	}
}

// compact renders a message in one line: mini_block{value_compression{flat{bits_per_value 64}}}.
func compact(m protoreflect.Message) string { return compactNode(messageNode("", m)) }

func compactNode(n node) string {
	text := strings.Replace(n.text, " = ", " ", 1)
	if len(n.children) == 0 {
		return text
	}
	parts := make([]string, len(n.children))
	for i, c := range n.children {
		parts[i] = compactNode(c)
	}
	if text == "" {
		return strings.Join(parts, " ")
	}
	return text + "{" + strings.Join(parts, " ") + "}"
}
