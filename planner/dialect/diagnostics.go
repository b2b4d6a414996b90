package dialect

import "strconv"

// EndTransaction is COMMIT or ROLLBACK with AND CHAIN or RELEASE.
type EndTransaction struct {
	Commit  bool
	Chain   bool // another transaction of the same kind begins
	Release bool // the connection ends
}

// ShowDiagnostics is SHOW WARNINGS, SHOW ERRORS, SHOW COUNT(*) WARNINGS or SHOW COUNT(*) ERRORS.
type ShowDiagnostics struct {
	Errors bool // nothing but errors
	Count  bool
	Offset int
	Limit  int // -1 = all
}

func (*EndTransaction) ownStatement()  {}
func (*ShowDiagnostics) ownStatement() {}

// endTransaction reads COMMIT and ROLLBACK behind the word; the plain forms are the parser's.
func (p *ownParser) endTransaction(commit bool) (Own, error) {
	out := &EndTransaction{Commit: commit}
	_ = p.words("work")
	chain, no := false, false
	if p.words("and") {
		no = p.words("no")
		if !p.words("chain") {
			return nil, nil
		}
		chain = true
	}
	out.Chain = chain && !no
	switch {
	case p.words("no", "release"):
	case p.words("release"):
		out.Release = true
	}
	if !p.end() || !out.Chain && !out.Release {
		return nil, nil
	}
	if out.Chain && out.Release {
		return nil, p.fail("COMMIT AND CHAIN")
	}
	return out, nil
}

// showDiagnostics reads SHOW behind the word; nil = it shows something else.
func (p *ownParser) showDiagnostics() (Own, error) {
	out := &ShowDiagnostics{Limit: -1}
	if p.words("count") {
		if !p.op('(') || !p.op('*') || !p.op(')') {
			return nil, nil
		}
		out.Count = true
	}
	switch {
	case p.words("warnings"):
	case p.words("errors"):
		out.Errors = true
	default:
		return nil, nil
	}
	if !out.Count && p.words("limit") {
		first, ok := p.number()
		if !ok {
			return nil, p.fail("SHOW WARNINGS")
		}
		out.Limit = first
		if isOffset := p.words("offset"); isOffset || p.op(',') {
			second, ok := p.number()
			if !ok {
				return nil, p.fail("SHOW WARNINGS")
			}
			if out.Offset = second; !isOffset {
				out.Offset, out.Limit = first, second
			}
		}
	}
	if !p.end() {
		return nil, p.fail("SHOW WARNINGS")
	}
	return out, nil
}

func (p *ownParser) number() (int, bool) {
	t := p.peek()
	if t.class != classNumber || t.start < 0 {
		return 0, false
	}
	n, err := strconv.Atoi(p.text[t.start:t.end])
	if err == nil {
		p.at++
	}
	return n, err == nil
}
