package dialect

import "strings"

// hintsMax bounds how many hints a statement may have.
const hintsMax = 64

// parseHints reads SET_VAR(name=value) and MAX_EXECUTION_TIME(n); anything else between /*+ and */ is skipped, as MySQL does.
func parseHints(body string) []Hint {
	var out []Hint
	for len(body) > 0 && len(out) < hintsMax {
		open := strings.IndexByte(body, '(')
		if open < 0 {
			return out
		}
		name := strings.TrimSpace(body[:open])
		if i := strings.LastIndexAny(name, " \t\r\n"); i >= 0 {
			name = name[i+1:]
		}
		end := closing(body[open+1:])
		if end < 0 {
			return out
		}
		arg := strings.TrimSpace(body[open+1 : open+1+end])
		body = body[open+1+end+1:]
		switch {
		case strings.EqualFold(name, "set_var"):
			key, value, ok := strings.Cut(arg, "=")
			if ok {
				out = append(out, Hint{Name: strings.ToLower(strings.TrimSpace(key)), Value: unquote(strings.TrimSpace(value))})
			}
		case strings.EqualFold(name, "max_execution_time"):
			out = append(out, Hint{Name: "max_execution_time", Value: arg})
		case strings.EqualFold(name, "resource_group"):
			out = append(out, Hint{Name: "resource_group", Value: unquote(arg)})
		}
	}
	return out
}

// closing finds the parenthesis that ends the argument, outside quotes.
func closing(s string) int {
	quote := byte(0)
	depth := 0
	for i := range len(s) {
		switch c := s[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case c == '(':
			depth++
		case c == ')' && depth == 0:
			return i
		case c == ')':
			depth--
		}
	}
	return -1
}

func unquote(s string) string {
	if n := len(s); n >= 2 && (s[0] == '\'' || s[0] == '"') && s[n-1] == s[0] {
		return strings.ReplaceAll(s[1:n-1], string(s[0])+string(s[0]), string(s[0]))
	}
	return s
}
