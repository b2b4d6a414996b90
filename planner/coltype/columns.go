package coltype

import (
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/internal/errs"
)

// ParseColumns reads columns as CREATE TABLE lists them between its parentheses: a name, a type, and NOT NULL, NULL, PRIMARY KEY or COMMENT 'text' behind it. Errors:
// ErrInvalid, ErrColumnExists, and those of Parse.
func ParseColumns(text string) (*arrow.Schema, error) {
	var fields []arrow.Field
	p := &parser{text: text}
	for {
		f, err := p.column()
		if err != nil {
			return nil, err
		}
		for _, have := range fields {
			if strings.EqualFold(have.Name, f.Name) {
				return nil, errs.New(errs.ErrColumnExists, "column %q stands twice", f.Name)
			}
		}
		fields = append(fields, f)
		if p.take(',') {
			if p.blanks(); p.at < len(p.text) {
				continue
			}
		}
		if p.blanks(); p.at < len(p.text) {
			return nil, errs.New(errs.ErrInvalid, "column %s: what does %q mean? Write NAME TYPE, NAME TYPE, ...", f.Name, p.text[p.at:])
		}
		return arrow.NewSchema(fields, nil), nil
	}
}

func (p *parser) column() (arrow.Field, error) {
	name := p.name()
	if name == "" {
		return arrow.Field{}, errs.New(errs.ErrInvalid, "a column's name is missing before %.40q: write NAME TYPE, and other names than words in backquotes", p.text[p.at:])
	}
	t, err := p.typ(0)
	if err != nil {
		return arrow.Field{}, fmt.Errorf("column %s: %w", name, err)
	}
	nullable, key, comment := true, false, ""
	for {
		switch {
		case p.accept("not"):
			if !p.accept("null") {
				return arrow.Field{}, errs.New(errs.ErrInvalid, "column %s: NOT NULL is possible", name)
			}
			nullable = false
		case p.accept("null"):
		case p.accept("primary"):
			if !p.accept("key") {
				return arrow.Field{}, errs.New(errs.ErrInvalid, "column %s: PRIMARY KEY is possible", name)
			}
			key, nullable = true, false
		case p.accept("comment"):
			if comment, err = p.quoted(); err != nil {
				return arrow.Field{}, fmt.Errorf("column %s: %w", name, err)
			}
		default:
			return t.Field(name, nullable, key, comment, ""), nil
		}
	}
}

// quoted reads text in single quotes, in which a quote is doubled.
func (p *parser) quoted() (string, error) {
	if !p.take('\'') {
		return "", errs.New(errs.ErrInvalid, "a comment stands in single quotes")
	}
	var out strings.Builder
	for p.at < len(p.text) {
		c := p.text[p.at]
		p.at++
		if c == '\'' {
			if p.at >= len(p.text) || p.text[p.at] != '\'' {
				return out.String(), nil
			}
			p.at++
		}
		out.WriteByte(c)
	}
	return "", errs.New(errs.ErrInvalid, "a quote is not closed")
}
