package dialect

// StartTransaction is what BEGIN and START TRANSACTION ask for.
type StartTransaction struct {
	ConsistentSnapshot, ReadOnly, ReadWrite bool
}

// ParseStartTransaction reads the characteristics of a statement that starts a transaction; any other statement has none. ErrInvalid where they
// contradict each other.
func ParseStartTransaction(text string) (StartTransaction, error) {
	var head []token
	for s := newScanner(text); len(head) < headMax; {
		t, ok := s.next()
		if !ok {
			break
		}
		if t.class != classComment {
			head = append(head, t)
		}
	}
	out, _, err := parseStartTransaction(text, head)
	return out, err
}

// parseStartTransaction also counts the characteristics.
func parseStartTransaction(text string, head []token) (out StartTransaction, count int, err error) {
	p := &ownParser{text: text, toks: head}
	if !p.words("start", "transaction") || p.end() {
		return out, 0, nil
	}
	for {
		switch {
		case p.words("with", "consistent", "snapshot"):
			out.ConsistentSnapshot = true
		case p.words("read", "only"):
			out.ReadOnly = true
		case p.words("read", "write"):
			out.ReadWrite = true
		default:
			return out, 0, p.fail("START TRANSACTION")
		}
		count++
		if !p.op(',') {
			break
		}
	}
	if !p.end() || out.ReadOnly && out.ReadWrite {
		return out, 0, p.fail("START TRANSACTION")
	}
	return out, count, nil
}

// startTransaction leaves the parser at most one characteristic, which is all that its grammar has.
func (r *rewriter) startTransaction() error {
	asked, count, err := parseStartTransaction(r.res.Original, r.head)
	if err != nil || count < 2 {
		return err
	}
	with := ""
	switch {
	case asked.ReadOnly:
		with = " READ ONLY"
	case asked.ReadWrite:
		with = " READ WRITE"
	}
	r.res.splices = []splice{{r.head[1].end, len(r.res.Original), with}}
	return nil
}

// IsSetTransaction says that a statement is SET TRANSACTION, which speaks of the next transaction alone.
func IsSetTransaction(text string) bool {
	s := newScanner(text)
	for _, word := range []string{"set", "transaction"} {
		t, ok := s.next()
		for ok && t.class == classComment {
			t, ok = s.next()
		}
		if !ok || t.class != classWord || t.word != word {
			return false
		}
	}
	return true
}

// Verb is the statement's first word in lower case, "" where it begins otherwise.
func (res *Result) Verb() string { return res.verb }

// IsEmpty says that the statement holds nothing but blanks and comments.
func (res *Result) IsEmpty() bool { return res.empty }

// Writes says that a statement changes data or definitions, by its first word.
func (res *Result) Writes() bool {
	switch res.verb {
	case "insert", "update", "delete", "replace", "load", "create", "alter", "drop", "truncate", "rename", "optimize":
		return true
	}
	return false
}
