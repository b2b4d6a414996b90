package coltype

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/internal/errs"
)

// Keys of field metadata. KeyPrimaryKey is the format's own.
const (
	KeyType       = "lakesql:type"    // the type as declared, where the Arrow type does not say it
	KeyDefault    = "lakesql:default" // an SQL expression
	KeyComment    = "comment"
	KeyPrimaryKey = "lance-schema:unenforced-primary-key"
	// KeyFragmentRows is a key of schema metadata: how many rows a fragment gets that lakesql writes.
	KeyFragmentRows = "lakesql:rows_per_fragment"
)

const (
	dimensionsMax  = 65_535
	depthMax       = 16
	micros         = 6
	decimalMax     = 65
	decimal128Max  = 38
	lineBytes      = 65_535
	mediumBytes    = 1<<24 - 1
	tinyBytes      = 255
	charsMax       = 255
	varcharMax     = 16_383
	decimalDefault = 10
)

// Type is a column type: how it is stored, and what was declared where the Arrow type does not say it ("" = it does).
type Type struct {
	Arrow    arrow.DataType
	Declared string
}

// Parse reads a type as CREATE TABLE writes it, without NULL, DEFAULT and the like; words about character sets and collations are skipped. Errors: ErrInvalid for
// what is no type, ErrUnsupported for MySQL types that have no counterpart.
func Parse(text string) (Type, error) {
	t, n, err := ParsePrefix(text)
	if err != nil {
		return Type{}, err
	}
	rest := strings.ToLower(strings.TrimSpace(text[n:]))
	if rest != "" && !strings.HasPrefix(rest, "character set") && !strings.HasPrefix(rest, "charset") && !strings.HasPrefix(rest, "collate") {
		return Type{}, errs.New(errs.ErrInvalid, "type %q: what does %q mean?", text, strings.TrimSpace(text[n:]))
	}
	return t, nil
}

// ParsePrefix reads the type that the text begins with and says how many bytes it has.
func ParsePrefix(text string) (Type, int, error) {
	p := &parser{text: text}
	t, err := p.typ(0)
	if err != nil {
		return Type{}, 0, fmt.Errorf("type %.64q: %w", text, err)
	}
	return t, p.at, nil
}

type parser struct {
	text string
	at   int
}

func (p *parser) blanks() {
	for p.at < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.at]) >= 0 {
		p.at++
	}
}

func (p *parser) word() string {
	p.blanks()
	from := p.at
	for p.at < len(p.text) {
		c := p.text[p.at]
		if c != '_' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') && c < 0x80 {
			break
		}
		p.at++
	}
	return p.text[from:p.at]
}

// name is a word or a name in backquotes.
func (p *parser) name() string {
	p.blanks()
	if p.at < len(p.text) && p.text[p.at] == '`' {
		if end := strings.IndexByte(p.text[p.at+1:], '`'); end >= 0 {
			name := p.text[p.at+1 : p.at+1+end]
			p.at += end + 2
			return name
		}
	}
	return p.word()
}

func (p *parser) take(c byte) bool {
	p.blanks()
	if p.at < len(p.text) && p.text[p.at] == c {
		p.at++
		return true
	}
	return false
}

// accept takes a word if it comes next.
func (p *parser) accept(want string) bool {
	at := p.at
	if strings.EqualFold(p.word(), want) {
		return true
	}
	p.at = at
	return false
}

// args reads (a, b); nil where there are none.
func (p *parser) args() ([]string, error) {
	if !p.take('(') {
		return nil, nil
	}
	var out []string
	for {
		w := p.word()
		if w == "" {
			return nil, errs.New(errs.ErrInvalid, "a number is missing")
		}
		out = append(out, w)
		if p.take(')') {
			return out, nil
		}
		if !p.take(',') {
			return nil, errs.New(errs.ErrInvalid, "a parenthesis is not closed")
		}
	}
}

func (p *parser) typ(depth int) (Type, error) {
	if depth > depthMax {
		return Type{}, errs.New(errs.ErrInvalid, "nests more than %d deep", depthMax)
	}
	word := strings.ToLower(p.word())
	switch word {
	case "list", "array":
		return p.list(depth)
	case "struct":
		return p.structure(depth)
	case "map":
		return p.mapping(depth)
	case "vector":
		return p.vector()
	case "":
		return Type{}, errs.New(errs.ErrInvalid, "a type is missing")
	}
	if word == "double" {
		_ = p.accept("precision")
	}
	if word == "character" && p.accept("varying") {
		word = "varchar"
	}
	args, err := p.args()
	if err != nil {
		return Type{}, err
	}
	unsigned := false
	for more := true; more; {
		switch {
		case p.accept("unsigned"):
			unsigned = true
		case p.accept("signed"):
		case p.accept("zerofill"):
			return Type{}, errs.New(errs.ErrUnsupported, "ZEROFILL")
		default:
			more = false
		}
	}
	return scalarType(word, args, unsigned)
}

func (p *parser) list(depth int) (Type, error) {
	if !p.take('<') {
		return Type{}, errs.New(errs.ErrInvalid, "write LIST<VARCHAR>")
	}
	elem, err := p.typ(depth + 1)
	if err != nil {
		return Type{}, err
	}
	if !p.take('>') {
		return Type{}, errs.New(errs.ErrInvalid, "LIST< is not closed")
	}
	return Type{Arrow: arrow.ListOf(elem.Arrow)}, nil
}

func (p *parser) structure(depth int) (Type, error) {
	if !p.take('<') {
		return Type{}, errs.New(errs.ErrInvalid, "write STRUCT<a INT, b VARCHAR>")
	}
	var fields []arrow.Field
	seen := map[string]bool{}
	for {
		name := p.name()
		_ = p.take(':')
		if name == "" || seen[name] {
			return Type{}, errs.New(errs.ErrInvalid, "a struct field needs a name of its own")
		}
		seen[name] = true
		t, err := p.typ(depth + 1)
		if err != nil {
			return Type{}, err
		}
		fields = append(fields, arrow.Field{Name: name, Type: t.Arrow, Nullable: true})
		if p.take('>') {
			return Type{Arrow: arrow.StructOf(fields...)}, nil
		}
		if !p.take(',') {
			return Type{}, errs.New(errs.ErrInvalid, "STRUCT< is not closed")
		}
	}
}

func (p *parser) mapping(depth int) (Type, error) {
	var key, value Type
	var err error
	if !p.take('<') {
		return Type{}, errs.New(errs.ErrInvalid, "write MAP<VARCHAR, INT>")
	}
	if key, err = p.typ(depth + 1); err != nil {
		return Type{}, err
	}
	if !p.take(',') {
		return Type{}, errs.New(errs.ErrInvalid, "write MAP<VARCHAR, INT>")
	}
	if value, err = p.typ(depth + 1); err != nil {
		return Type{}, err
	}
	if !p.take('>') {
		return Type{}, errs.New(errs.ErrInvalid, "MAP< is not closed")
	}
	return Type{Arrow: arrow.MapOf(key.Arrow, value.Arrow)}, nil
}

// vector reads VECTOR(128) and VECTOR(128, FLOAT16).
func (p *parser) vector() (Type, error) {
	args, err := p.args()
	if err != nil {
		return Type{}, err
	}
	if len(args) == 0 || len(args) > 2 {
		return Type{}, errs.New(errs.ErrInvalid, "a vector needs its number of dimensions: VECTOR(128)")
	}
	n, err := strconv.Atoi(args[0])
	if err != nil || n < 1 || n > dimensionsMax {
		return Type{}, errs.New(errs.ErrInvalid, "%s dimensions; 1 to %d are possible", args[0], dimensionsMax)
	}
	elem := arrow.PrimitiveTypes.Float32
	if len(args) == 2 {
		switch strings.ToLower(args[1]) {
		case "float", "float32":
		case "float16", "half":
			elem = arrow.FixedWidthTypes.Float16
		case "double", "float64":
			elem = arrow.PrimitiveTypes.Float64
		case "uint8":
			elem = arrow.PrimitiveTypes.Uint8
		default:
			return Type{}, errs.New(errs.ErrInvalid, "vectors of %s; FLOAT, FLOAT16, DOUBLE and UINT8 are possible", args[1])
		}
	}
	return Type{Arrow: arrow.FixedSizeListOf(int32(n), elem)}, nil
}
