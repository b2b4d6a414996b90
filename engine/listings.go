package engine

import (
	"fmt"
	"strings"
	"time"

	"github.com/dolthub/go-mysql-server/sql"
)

// This file holds the procedures that list what a table's history is made of.

// list makes rows the procedure's answer.
func (p *procedureCall) list(schema sql.Schema, rows []sql.Row) error {
	p.res.schema = schema
	p.res.iter = sql.RowsToRowIter(rows...)
	return p.res.open()
}

// timeOf spells a time, NULL where nobody knows it.
func timeOf(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UTC().Format("2006-01-02 15:04:05.000000")
}

// historyOf spells the main history as the other procedures take it.
func historyOf(branch string) string {
	if branch == "" {
		return "main"
	}
	return branch
}

func (p *procedureCall) history() error {
	all, err := p.dataset().Versions(p.ctx)
	if err != nil {
		return err
	}
	var rows []sql.Row
	for _, v := range all {
		rows = append(rows, sql.NewRow(fmt.Sprint(v.Version), timeOf(v.Timestamp), strings.Join(v.Tags, ",")))
	}
	return p.list(textColumns("version", "committed_utc", "tags"), rows)
}

func (p *procedureCall) tags() error {
	all, err := p.dataset().Tags(p.ctx)
	if err != nil {
		return err
	}
	var rows []sql.Row
	for _, t := range all {
		rows = append(rows, sql.NewRow(t.Name, historyOf(t.Branch), fmt.Sprint(t.Version), timeOf(t.Created)))
	}
	return p.list(textColumns("tag", "branch", "version", "created_utc"), rows)
}

func (p *procedureCall) branches() error {
	all, err := p.dataset().Branches(p.ctx)
	if err != nil {
		return err
	}
	var rows []sql.Row
	for _, b := range all {
		rows = append(rows, sql.NewRow(b.Name, historyOf(b.Parent), fmt.Sprint(b.ParentVersion), timeOf(b.Created)))
	}
	return p.list(textColumns("branch", "parent", "parent_version", "created_utc"), rows)
}
