package expr

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"math/big"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/internal/errs"
)

func jsonFunctions() []function {
	str := typeString()
	return []function{
		{name: "to_json", min: 1, max: 1, resolve: resolveToJSON},
		{name: "member_of", min: 2, max: 2, resolve: resolveMemberOf},
		{name: "json_contains", min: 2, max: 3, resolve: resolveJSONContains},
		{name: "json_overlaps", min: 2, max: 2, resolve: resolveJSONOverlaps},
		{name: "->", min: 2, max: 2, resolve: resolvePath(false)},
		{name: "json_extract", as: "->", min: 2, max: 2, resolve: resolvePath(false)},
		{name: "->>", min: 2, max: 2, resolve: resolvePath(true)},
		{name: "json_unquote", min: 1, max: 1, resolve: fixed(str, func(x *call) (vector, error) {
			return x.strings(func(i int, dst []byte) ([]byte, bool, error) {
				return append(dst, unquoteJSON(x.args[0].str(i))...), true, nil
			})
		}, str)},
		{name: "json_quote", min: 1, max: 1, resolve: fixed(str, func(x *call) (vector, error) {
			return x.strings(func(i int, dst []byte) ([]byte, bool, error) {
				return AppendJSONString(dst, string(x.args[0].str(i))), true, nil
			})
		}, str)},
		{name: "json_valid", min: 1, max: 1, resolve: fixed(typeBool(), func(x *call) (vector, error) {
			return x.bools(func(i int) (bool, bool) { return json.Valid(x.args[0].str(i)), true })
		}, str)},
		{name: "json_array", min: 0, max: -1, resolve: resolveJSONArray},
		{name: "json_length", min: 1, max: 2, resolve: resolveJSONLength},
		{name: "json_type", min: 1, max: 1, resolve: fixed(str, jsonType, str)},
	}
}

// resolveToJSON prints a value as JSON: text becomes a JSON string.
func resolveToJSON(r *request) (impl, error) {
	if r.class(0) == classString && isText(r.types[0]) {
		return string1(func(dst, s []byte) []byte { return AppendJSONString(dst, string(s)) })(r)
	}
	t := storageType(r.types[0])
	return impl{t: typeString(), params: []arrow.DataType{t}, run: func(x *call) (vector, error) {
		v := &x.args[0]
		if v.c == classNested {
			return x.strings(func(i int, dst []byte) ([]byte, bool, error) {
				return AppendJSON(dst, v.arr, v.at(i), x.env), true, nil
			})
		}
		return x.strings(func(i int, dst []byte) ([]byte, bool, error) { return appendJSONValue(dst, v, i, x.env), true, nil })
	}}, nil
}

// appendJSONValue prints a flat value as JSON.
func appendJSONValue(dst []byte, v *vector, i int, env *Env) []byte {
	switch {
	case v.c == classBool:
		return strconv.AppendBool(dst, v.bit(i))
	case v.c == classString && !isText(v.t):
		return appendBase64(dst, v.str(i))
	case v.c == classString:
		return AppendJSONString(dst, string(v.str(i)))
	case v.c == classFloat && v.f[v.at(i)]-v.f[v.at(i)] != 0:
		return append(dst, "null"...)
	case v.c.temporal():
		dst = append(dst, '"')
		return append(appendValue(dst, v, i, env), '"')
	}
	return appendValue(dst, v, i, env)
}

// jsonKindOf is the kind of JSON value that a type prints as: 's', 'n', 'b'; 0 for the others.
func jsonKindOf(t arrow.DataType) byte {
	switch c := classOf(t); {
	case c == classString && isText(t):
		return 's'
	case c == classBool:
		return 'b'
	case c.numeric():
		return 'n'
	}
	return 0
}

// resolveMemberOf is x MEMBER OF(list) by JSON's rules: '1' is no member of [1]. Where the kinds agree it is array_has.
func resolveMemberOf(r *request) (impl, error) {
	elem := elementType(r.types[1])
	if elem == nil || jsonKindOf(elem) == 0 {
		return r.jsonKernel([]bool{true, false}, func(a, b any) bool { return jsonMember(b, a) })
	}
	if r.class(0) == classNull {
		return impl{t: typeBool(), rewrite: Null(typeBool())}, nil
	}
	if jsonKindOf(r.types[0]) == jsonKindOf(elem) {
		return rewriteTo("array_has", r.args[1], r.args[0])
	}
	return r.never(r.args[1], r.args[0])
}

// resolveJSONArray is JSON_ARRAY(...), which spells a list where its values are of one kind.
func resolveJSONArray(r *request) (impl, error) {
	kind := byte(0)
	for _, t := range r.types {
		k := jsonKindOf(t)
		if classOf(t) != classNull && (k == 0 || (kind != 0 && k != kind)) {
			return impl{}, errs.New(errs.ErrUnsupported, "json_array of values of different kinds; a list has one type")
		}
		kind = max(kind, k)
	}
	return rewriteTo("make_array", r.args...)
}

func rewriteTo(name string, args ...Expr) (impl, error) {
	e, err := NewCall(name, args...)
	if err != nil {
		return impl{}, err
	}
	return impl{t: e.Type(), rewrite: e}, nil
}

// never is FALSE, or NULL where an argument is NULL.
func (r *request) never(args ...Expr) (impl, error) {
	var conds []Expr
	for _, a := range args {
		c, err := NewCall("is_null", a)
		if err != nil {
			return impl{}, err
		}
		conds = append(conds, c)
	}
	any, err := NewCall("or", conds...)
	if err != nil {
		return impl{}, err
	}
	return rewriteTo("case", any, Null(typeBool()), boolLiteral(false))
}

// candidateItems reads a constant JSON candidate: a scalar is a list of one. ok is false for what the fast path does not take.
func (r *request) candidateItems(i int) (items []jsonItem, isArray, ok bool, err error) {
	lit, isLit := r.literal(i)
	if !isLit || !lit.Value.IsValid() || classOf(lit.Type()) != classString {
		return nil, false, false, nil
	}
	text := []byte(literalText(lit))
	if !json.Valid(text) {
		return nil, false, false, errs.New(errs.ErrInvalid, "%s: '%s' is no JSON text", r.name, text)
	}
	if items, isArray = jsonItems(text); !isArray {
		one, ok := jsonScalar(text)
		if !ok {
			return nil, false, false, nil
		}
		items = []jsonItem{one}
	}
	for _, it := range items {
		if it.kind == 'j' {
			return nil, isArray, false, nil
		}
	}
	return items, isArray, true, nil
}

// splitItems parts JSON items into values of a kind, nulls, and others, which no element of that kind equals.
func splitItems(items []jsonItem, kind byte) (same []jsonItem, null, other bool) {
	for _, it := range items {
		switch {
		case it.null:
			null = true
		case it.kind == kind:
			same = append(same, it)
		default:
			other = true
		}
	}
	return same, null, other
}

// resolveJSONContains is JSON_CONTAINS(target, candidate[, path]): for a list and constant scalars array_has_all, where both rules agree.
func resolveJSONContains(r *request) (impl, error) {
	if len(r.args) == 3 {
		at, err := NewCall("->", r.args[0], r.args[2])
		if err != nil {
			return impl{}, err
		}
		return rewriteTo("json_contains", at, r.args[1])
	}
	elem := elementType(r.types[0])
	if elem != nil && jsonKindOf(elem) != 0 {
		items, _, ok, err := r.candidateItems(1)
		if err != nil {
			return impl{}, err
		}
		if ok {
			same, null, other := splitItems(items, jsonKindOf(elem))
			if other {
				return r.never(r.args[0])
			}
			lit, err := itemsLiteral(same)
			if err != nil {
				return impl{}, err
			}
			if !null {
				return rewriteTo("array_has_all", r.args[0], lit)
			}
			all, err1 := NewCall("array_has_all", r.args[0], lit)
			has, err2 := NewCall("array_has_null", r.args[0])
			if err1 != nil || err2 != nil {
				return impl{}, r.typesError(nil)
			}
			return rewriteTo("and", all, has)
		}
	}
	return r.jsonKernel([]bool{false, false}, jsonContains)
}

// resolveJSONOverlaps is JSON_OVERLAPS(a, b): for a list and constant scalars array_has_any.
func resolveJSONOverlaps(r *request) (impl, error) {
	for i := range 2 {
		elem := elementType(r.types[i])
		if elem == nil || jsonKindOf(elem) == 0 {
			continue
		}
		items, _, ok, err := r.candidateItems(1 - i)
		if err != nil {
			return impl{}, err
		}
		if !ok {
			continue
		}
		same, null, _ := splitItems(items, jsonKindOf(elem))
		lit, err := itemsLiteral(same)
		if err != nil {
			return impl{}, err
		}
		if !null {
			return rewriteTo("array_has_any", r.args[i], lit)
		}
		has, err1 := NewCall("array_has_any", r.args[i], lit)
		hasNull, err2 := NewCall("array_has_null", r.args[i])
		if err1 != nil || err2 != nil {
			return impl{}, r.typesError(nil)
		}
		return rewriteTo("or", has, hasNull)
	}
	return r.jsonKernel([]bool{false, false}, jsonOverlaps)
}

// jsonKernel compares two values as parsed JSON. scalarArg tells which arguments are SQL values (text is a JSON string); the others are documents.
func (r *request) jsonKernel(scalarArg []bool, f func(a, b any) bool) (impl, error) {
	for i := range r.args {
		if r.class(i) == classNull {
			return impl{t: typeBool(), rewrite: Null(typeBool())}, nil
		}
	}
	run := jsonCompare(r.name, f)
	params := make([]arrow.DataType, 2)
	for i := range params {
		params[i] = typeString()
		if scalarArg[i] || r.class(i) != classString {
			params[i] = storageType(r.types[i])
		}
	}
	return impl{t: typeBool(), params: params, run: func(x *call) (vector, error) {
		for k := range x.args {
			if scalarArg[k] || x.args[k].c != classString {
				x.args[k] = x.jsonTexts(&x.args[k])
			}
		}
		return run(x)
	}}, nil
}

// jsonTexts prints every value of a vector as JSON.
func (x *call) jsonTexts(v *vector) vector {
	w := x.strWriter(v.n)
	for i := range v.n {
		if !v.null(i) {
			if v.c == classNested {
				w.buf = AppendJSON(w.buf, v.arr, i, x.env)
			} else {
				w.buf = appendJSONValue(w.buf, v, i, x.env)
			}
		}
		w.off[i+1] = int32(min(len(w.buf), math.MaxInt32))
	}
	return vector{t: typeString(), c: classString, n: v.n, konst: v.konst, valid: v.valid, off: w.off, data: w.buf}
}

func jsonCompare(name string, f func(a, b any) bool) kernel {
	return func(x *call) (vector, error) {
		var err error
		var consts [2]any
		var known [2]bool
		parse := func(k, i int) any {
			if known[k] {
				return consts[k]
			}
			v, e := parseJSON(x.args[k].str(i))
			if e != nil && err == nil {
				err = errs.New(errs.ErrInvalid, "%s: '%.64s' is no JSON text", name, x.args[k].str(i))
			}
			if x.args[k].konst {
				consts[k], known[k] = v, true
			}
			return v
		}
		out, e := x.bools(func(i int) (bool, bool) { return f(parse(0, i), parse(1, i)), true })
		if e != nil {
			return out, e
		}
		return out, err
	}
}

// jsonDocDepthMax bounds the nesting of a JSON document.
const jsonDocDepthMax = 100

// parseJSON reads one document; numbers keep their digits.
func parseJSON(s []byte) (any, error) {
	depth := 0
	inString := false
	for i := 0; i < len(s); i++ {
		switch {
		case inString && s[i] == '\\':
			i++
		case s[i] == '"':
			inString = !inString
		case !inString && (s[i] == '[' || s[i] == '{'):
			if depth++; depth > jsonDocDepthMax {
				return nil, errs.New(errs.ErrInvalid, "JSON nests deeper than %d", jsonDocDepthMax)
			}
		case !inString && (s[i] == ']' || s[i] == '}'):
			depth--
		}
	}
	dec := json.NewDecoder(bytes.NewReader(s))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, errs.New(errs.ErrJSONText, "Invalid JSON text: %w", err)
	}
	if _, err := dec.Token(); err != io.EOF { //nolint:errorlint // the decoder returns it bare
		return nil, errs.New(errs.ErrJSONText, "Invalid JSON text: it goes on behind its end")
	}
	return v, nil
}

// jsonEqual compares scalars, arrays and objects; numbers by value.
func jsonEqual(a, b any) bool {
	switch x := a.(type) {
	case json.Number:
		y, ok := b.(json.Number)
		return ok && (x == y || jsonNumberEqual(x, y))
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for i := range x {
			if !jsonEqual(x[i], y[i]) {
				return false
			}
		}
		return true
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for k := range x {
			if v, ok := y[k]; !ok || !jsonEqual(x[k], v) {
				return false
			}
		}
		return true
	}
	switch b.(type) {
	case []any, map[string]any:
		return false
	}
	return a == b
}

func jsonNumberEqual(x, y json.Number) bool {
	a, sa, _ := parseDecimal([]byte(x))
	b, sb, _ := parseDecimal([]byte(y))
	s := max(sa, sb)
	if a.Sign() != 0 || b.Sign() != 0 {
		return roundBig(a, sa, s).Cmp(roundBig(b, sb, s)) == 0
	}
	fx, _ := new(big.Float).SetString(string(x))
	fy, _ := new(big.Float).SetString(string(y))
	return fx != nil && fy != nil && fx.Cmp(fy) == 0
}

func jsonMember(target, x any) bool {
	arr, ok := target.([]any)
	if !ok {
		return jsonEqual(target, x)
	}
	for _, e := range arr {
		if jsonEqual(e, x) {
			return true
		}
	}
	return false
}

// jsonContains tells whether candidate is contained in target, as JSON_CONTAINS defines it.
func jsonContains(target, candidate any) bool {
	switch t := target.(type) {
	case []any:
		if c, ok := candidate.([]any); ok {
			for _, e := range c {
				if !jsonInArray(t, e) {
					return false
				}
			}
			return true
		}
		return jsonInArray(t, candidate)
	case map[string]any:
		c, ok := candidate.(map[string]any)
		if !ok {
			return false
		}
		for k, v := range c {
			if tv, ok := t[k]; !ok || !jsonContains(tv, v) {
				return false
			}
		}
		return true
	}
	return jsonEqual(target, candidate)
}

func jsonInArray(arr []any, x any) bool {
	for _, e := range arr {
		switch e.(type) {
		case []any, map[string]any:
			if jsonContains(e, x) {
				return true
			}
		default:
			if jsonEqual(e, x) {
				return true
			}
		}
	}
	return false
}

func jsonOverlaps(a, b any) bool {
	x, xArr := a.([]any)
	y, yArr := b.([]any)
	switch {
	case xArr && yArr:
		for _, e := range y {
			if jsonMember(x, e) {
				return true
			}
		}
		return false
	case xArr:
		return jsonMember(x, b)
	case yArr:
		return jsonMember(y, a)
	}
	xm, xObj := a.(map[string]any)
	ym, yObj := b.(map[string]any)
	if xObj && yObj {
		for k, v := range xm {
			if w, ok := ym[k]; ok && jsonEqual(v, w) {
				return true
			}
		}
		return false
	}
	return jsonEqual(a, b)
}
