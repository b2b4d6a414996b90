package expr

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/internal/errs"
)

func unquoteJSON(s []byte) []byte {
	if len(s) >= 2 && s[0] == '"' {
		var out string
		if json.Unmarshal(s, &out) == nil {
			return []byte(out)
		}
	}
	return s
}

func resolveJSONLength(r *request) (impl, error) {
	if len(r.args) == 2 { // of what is at a path
		at, err := NewCall("->", r.args...)
		if err != nil {
			return impl{}, err
		}
		if r.class(0) == classNested && classOf(at.Type()) != classNested {
			return lengthOf(at, 1) // a scalar
		}
		return rewriteTo("json_length", at)
	}
	if t, ok := storageType(r.types[0]).(*arrow.StructType); ok {
		return lengthOf(r.args[0], t.NumFields())
	}
	if r.class(0) == classNested && elementType(r.types[0]) != nil {
		return rewriteTo("array_length", r.args[0])
	}
	return fixed(typeInt(), func(x *call) (vector, error) {
		return x.ints(func(i int) (int64, bool, error) {
			v, err := parseJSON(x.args[0].str(i))
			switch t := v.(type) {
			case []any:
				return int64(len(t)), true, nil
			case map[string]any:
				return int64(len(t)), true, nil
			}
			return 1, true, err
		})
	}, typeString())(r)
}

// lengthOf is a length that the type tells, NULL where e is NULL.
func lengthOf(e Expr, count int) (impl, error) {
	n, err := NewLiteral(int64(count))
	if err != nil {
		return impl{}, err
	}
	isNull, err := NewCall("is_null", e)
	if err != nil {
		return impl{}, err
	}
	return rewriteTo("if", isNull, Null(typeInt()), n)
}

func jsonType(x *call) (vector, error) {
	return x.strings(func(i int, dst []byte) ([]byte, bool, error) {
		v, err := parseJSON(x.args[0].str(i))
		if err != nil {
			return dst, false, err
		}
		name := "NULL"
		switch t := v.(type) {
		case bool:
			name = "BOOLEAN"
		case string:
			name = "STRING"
		case []any:
			name = "ARRAY"
		case map[string]any:
			name = "OBJECT"
		case json.Number:
			name = "INTEGER"
			if strings.ContainsAny(string(t), ".eE") {
				name = "DOUBLE"
			}
		}
		return append(dst, name...), true, nil
	})
}

// pathStep is one step of a JSON path: a field, or a place in an array.
type pathStep struct {
	field string
	index int64 // -1 = a field
}

// parsePath reads $.a."b c"[0].
func parsePath(s string) ([]pathStep, error) {
	bad := errs.New(errs.ErrInvalid, "'%s' is no JSON path; write $.field or $[0]", s)
	if strings.Contains(s, "*") || strings.Contains(s, " to ") || strings.Contains(s, "[last") {
		bad = errs.New(errs.ErrUnsupported, "the JSON path '%s'; write $.field or $[0]", s)
	}
	rest, ok := strings.CutPrefix(strings.TrimSpace(s), "$")
	if !ok {
		return nil, bad
	}
	var steps []pathStep
	for rest != "" {
		switch {
		case strings.HasPrefix(rest, "[") && strings.Contains(rest, "]"):
			end := strings.IndexByte(rest, ']')
			n, err := strconv.ParseUint(strings.TrimSpace(rest[1:end]), 10, 31)
			if err != nil {
				return nil, bad
			}
			steps = append(steps, pathStep{index: int64(n)})
			rest = rest[end+1:]
		case strings.HasPrefix(rest, `."`) && strings.Contains(rest[2:], `"`):
			end := strings.IndexByte(rest[2:], '"') + 2
			steps = append(steps, pathStep{field: rest[2:end], index: -1})
			rest = rest[end+1:]
		case strings.HasPrefix(rest, ".") && len(rest) > 1:
			end := strings.IndexAny(rest[1:], ".[")
			if end < 0 {
				end = len(rest) - 1
			}
			if end == 0 || strings.Contains(rest[1:end+1], "*") {
				return nil, bad
			}
			steps = append(steps, pathStep{field: rest[1 : end+1], index: -1})
			rest = rest[end+1:]
		default:
			return nil, bad
		}
	}
	return steps, nil
}

// resolvePath is col->'$.f' and col->>'$.f'. Of structs and lists it is the field or element itself, with its type; of JSON text the JSON text there,
// which ->> unquotes.
func resolvePath(unquote bool) func(r *request) (impl, error) {
	return func(r *request) (impl, error) {
		lit, ok := r.literal(1)
		if !ok || !lit.Value.IsValid() {
			return impl{}, errs.New(errs.ErrInvalid, "%s needs a path as a constant, not %s", r.name, r.args[1])
		}
		steps, err := parsePath(literalText(lit))
		if err != nil {
			return impl{}, err
		}
		if r.class(0) == classNested {
			e := r.args[0]
			for _, st := range steps {
				if e, err = stepInto(e, st); err != nil {
					return impl{}, err
				}
			}
			return impl{t: e.Type(), rewrite: e}, nil
		}
		params := []arrow.DataType{typeString(), nil}
		if err := r.castable(params); err != nil {
			return impl{}, err
		}
		return impl{t: typeString(), params: params, run: func(x *call) (vector, error) {
			return x.strings(func(i int, dst []byte) ([]byte, bool, error) {
				v, err := parseJSON(x.args[0].str(i))
				if err != nil {
					return dst, false, err
				}
				v, ok := walkPath(v, steps)
				if !ok || (v == nil && unquote) {
					return dst, false, nil
				}
				if s, isText := v.(string); isText && unquote {
					return append(dst, s...), true, nil
				}
				return appendAny(dst, v), true, nil
			})
		}}, nil
	}
}

func stepInto(e Expr, st pathStep) (Expr, error) {
	if st.index >= 0 {
		lit, err := NewLiteral(st.index + 1)
		if err != nil {
			return nil, err
		}
		return NewCall("array_element", e, lit)
	}
	name, err := NewLiteral(st.field)
	if err != nil {
		return nil, err
	}
	return NewCall("struct_field", e, name)
}

func walkPath(v any, steps []pathStep) (any, bool) {
	for _, st := range steps {
		switch t := v.(type) {
		case []any:
			if st.index < 0 || st.index >= int64(len(t)) {
				return nil, false
			}
			v = t[st.index]
		case map[string]any:
			next, ok := t[st.field]
			if st.index >= 0 || !ok {
				return nil, false
			}
			v = next
		default:
			if st.index != 0 {
				return nil, false
			}
		}
	}
	return v, true
}

// appendAny prints parsed JSON as MySQL does.
func appendAny(dst []byte, v any) []byte {
	switch t := v.(type) {
	case string:
		return AppendJSONString(dst, t)
	case bool:
		return strconv.AppendBool(dst, t)
	case json.Number:
		return append(dst, t...)
	case []any:
		dst = append(dst, '[')
		for i, e := range t {
			if i > 0 {
				dst = append(dst, ", "...)
			}
			dst = appendAny(dst, e)
		}
		return append(dst, ']')
	case map[string]any:
		dst = append(dst, '{')
		for i, k := range sortedKeys(t) {
			if i > 0 {
				dst = append(dst, ", "...)
			}
			dst = append(AppendJSONString(dst, k), ": "...)
			dst = appendAny(dst, t[k])
		}
		return append(dst, '}')
	}
	return append(dst, "null"...)
}

// sortedKeys orders keys as MySQL's JSON does: shorter ones first.
func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b string) int {
		if len(a) != len(b) {
			return len(a) - len(b)
		}
		return strings.Compare(a, b)
	})
	return keys
}
