package dialect

import "github.com/lakesql/lakesql/internal/errs"

// alter watches the clauses of ALTER TABLE: what the parser lacks is taken out of the text.
type alter struct {
	name    TableName
	from    int  // offset of the first clause
	begun   bool // the first clause was seen
	clause  bool // the next token begins a clause
	kept    int  // clauses that stay in the text
	columns bool // within ADD COLUMN (a INT, b INT)
}

// alterTable notes where the clauses of ALTER TABLE begin; t is the word TABLE.
func (r *rewriter) alterTable(t token) {
	p := r.tokensFrom(t.end)
	name, ok := p.table()
	if !ok {
		r.ddl.active, r.res.Table = false, nil
		return
	}
	r.ddl.alter = alter{name: name, from: p.last()}
}

// alterSyntax takes index clauses, ALGORITHM and LOCK out of ALTER TABLE, and the parentheses off several new columns. done says that the token was read.
func (r *rewriter) alterSyntax(t token) (done bool, err error) {
	a := &r.ddl.alter
	if a.columns && t.class == classOp && len(r.open) == 1 {
		switch t.op {
		case ',':
			r.res.splices = append(r.res.splices, splice{t.start, t.end, ", ADD COLUMN"})
		case ')':
			r.res.splices = append(r.res.splices, splice{t.start, t.end, ""})
			a.columns = false
		}
		return false, nil
	}
	if len(r.open) > 0 {
		return false, nil
	}
	if t.class == classOp && t.op == ',' {
		a.clause = true
		return false, nil
	}
	if !a.clause && (a.begun || t.start < a.from) {
		r.quoteName(t)
		return false, nil
	}
	a.begun, a.clause = true, false
	p := r.tokensFrom(t.start)
	if own, err := r.alterClause(p); err != nil || own {
		if err == nil {
			r.removeClause(t.start, p.last())
		}
		return own, err
	}
	a.kept++
	if p.at = 0; p.words("add") {
		_ = p.words("column")
		if p.op('(') {
			a.columns = true
			r.res.splices = append(r.res.splices, splice{p.last() - 1, p.last(), ""})
		}
	}
	return false, nil
}

// quoteName puts quotes around a column's name where the parser takes no word that it knows: behind CHANGE and AFTER.
func (r *rewriter) quoteName(t token) {
	if t.class != classWord || r.last.class != classWord {
		return
	}
	if before := r.last.word; before == "after" || (before == "change" || before == "column" && r.last2.class == classWord && r.last2.word == "change") && t.word != "column" {
		r.res.splices = append(r.res.splices, splice{t.start, t.end, "`" + r.scan.text[t.start:t.end] + "`"})
	}
}

// alterClause reads a clause that the parser is not to see; own is false for every other one.
func (r *rewriter) alterClause(p *ownParser) (own bool, err error) {
	table := r.res.Table
	switch {
	case p.words("add", "index"), p.words("add", "key"), p.words("add", "vector", "index"), p.words("add", "vector", "key"):
		p.at = 1
		index, err := p.indexDefinition("ALTER TABLE ... ADD INDEX")
		if err != nil {
			return false, err
		}
		index.Table = r.ddl.alter.name
		table.Indexes = append(table.Indexes, index)
	case p.words("drop", "index"), p.words("drop", "key"):
		name, ok := p.name()
		if !ok {
			return false, p.fail("ALTER TABLE ... DROP INDEX")
		}
		table.DropIndexes = append(table.DropIndexes, name)
	case p.words("algorithm"), p.words("lock"):
		_ = p.op('=')
		if _, ok := p.name(); !ok {
			return false, p.fail("ALTER TABLE")
		}
	default:
		return false, nil
	}
	if next := p.peek(); p.at < len(p.toks) && !(next.class == classOp && (next.op == ',' || next.op == ';')) {
		return false, p.fail("ALTER TABLE")
	}
	return true, nil
}

// removeClause takes a clause out with one of the commas beside it.
func (r *rewriter) removeClause(from, to int) {
	a := &r.ddl.alter
	switch {
	case r.last.class == classOp && r.last.op == ',' && r.last.start >= 0:
		r.remove(r.last.start, to)
	case r.next(to) == ',':
		for r.scan.text[to] != ',' {
			to++
		}
		r.remove(from, to+1)
		a.clause = true
	default:
		r.remove(from, to)
	}
}

// alterOwn is the statement where nothing is left for the parser; nil = something is.
func (r *rewriter) alterOwn() Own {
	table := r.res.Table
	if !r.ddl.active || r.ddl.create || r.ddl.alter.kept > 0 || len(table.Indexes)+len(table.DropIndexes) == 0 {
		return nil
	}
	out := &AlterIndexes{Table: r.ddl.alter.name, Add: table.Indexes, Drop: table.DropIndexes}
	switch {
	case len(out.Add) == 1 && len(out.Drop) == 0:
		return out.Add[0]
	case len(out.Add) == 0 && len(out.Drop) == 1:
		return &DropIndex{Name: out.Drop[0], Table: out.Table}
	}
	return out
}

// errAlterOnly refuses ALGORITHM and LOCK without a change.
func (r *rewriter) errAlterOnly() error {
	if r.ddl.active && !r.ddl.create && r.ddl.alter.begun && r.ddl.alter.kept == 0 {
		return errs.New(errs.ErrUnsupported, "ALTER TABLE without a change")
	}
	return nil
}
