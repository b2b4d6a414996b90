package lance

import (
	"context"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/exec"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/rowset"
	"github.com/lakesql/lakesql/storage/schema"
)

// Table is one version of one dataset.
type Table struct {
	catalog *Catalog
	ref     exec.TableRef
	snap    *storage.Snapshot
	schema  *arrow.Schema
	json    map[string]*schema.Field // columns that are shown as text
	groups  []indexGroup
	zones   uint64 // the number in the index cache under which zones of columns are kept
}

var (
	_ exec.VectorTable = (*Table)(nil)
	_ exec.IndexSizer  = (*Table)(nil)
	_ exec.ZoneKeeper  = (*Table)(nil)
)

func newTable(c *Catalog, name string, snap *storage.Snapshot) *Table {
	t := &Table{catalog: c, ref: exec.TableRef{Source: c.name, Table: name, Version: snap.Version()}, snap: snap, json: jsonColumns(snap)}
	t.schema = shownSchema(snap, t.json)
	if snap.IsOverlay() { // what one transaction sees: no other ref may be equal
		t.ref.Branch = fmt.Sprintf("staged-%d", c.staged.Add(1))
	}
	t.groups = groupIndices(snap)
	t.zones = c.opts.IndexCache.Register()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.handed.add(t)
	return t
}

// Ref implements exec.Table.
func (t *Table) Ref() exec.TableRef { return t.ref }

// Schema implements exec.Table.
func (t *Table) Schema() *arrow.Schema { return t.schema }

// Snapshot returns the version behind the table.
func (t *Table) Snapshot() *storage.Snapshot { return t.snap }

// IsRemote says that reads cross a network.
func (t *Table) IsRemote() bool { return t.catalog.opts.Remote }

// Rows implements exec.Table.
func (t *Table) Rows() int64 { return int64(t.snap.Rows()) }

// ColumnBytes implements exec.Table.
func (t *Table) ColumnBytes(ctx context.Context, column string) int64 {
	n, err := t.snap.ColumnBytes(ctx, column)
	if err != nil {
		return -1 // a figure for choices only; the read itself will report what is wrong
	}
	return n
}

// tableScan holds its table, so that the version counts as in use (I3).
type tableScan struct {
	scan  *storage.Scan
	table *Table
	alloc memory.Allocator
}

func (s tableScan) Reader() exec.BatchReader {
	if s.table.json == nil {
		return s.scan.Reader()
	}
	return shownReader{s.scan.Reader(), s.table, s.alloc}
}

// Scan implements exec.Table.
func (t *Table) Scan(ctx context.Context, req exec.ScanRequest) (exec.TableScan, error) {
	if t.json != nil {
		req.Codes = slices.DeleteFunc(slices.Clone(req.Codes), func(name string) bool { return t.json[name] != nil })
	}
	scan, err := t.snap.Scan(ctx, storage.ScanOptions{
		Columns: named(req.Columns), Fragments: req.Fragments, Candidates: req.Among, BatchRows: req.BatchRows, Alloc: req.Alloc, Codes: req.Codes,
		WithRowAddr: req.RowAddr,
	})
	if err != nil {
		return nil, err
	}
	return tableScan{scan, t, req.Alloc}, nil
}

// named is the columns for storage, where nil means all of them; in a plan it means none.
func named(columns []string) []string {
	if columns == nil {
		return []string{}
	}
	return columns
}

// Take implements exec.Addressable.
func (t *Table) Take(ctx context.Context, addrs []rowset.RowAddr, columns []string, alloc memory.Allocator) (arrow.RecordBatch, error) {
	b, err := t.snap.Take(ctx, addrs, storage.TakeOptions{Columns: named(columns), Alloc: alloc})
	if err != nil {
		return nil, err
	}
	return t.Shown(b, alloc)
}

// LiveRows implements exec.Addressable.
func (t *Table) LiveRows(ctx context.Context, fragments []uint32) (*rowset.Set, error) {
	return t.snap.LiveRows(ctx, fragments)
}

// Zones implements exec.ZoneKeeper.
func (t *Table) Zones(column string) (*exec.Zones, bool) {
	f, ok := t.snap.Schema().Lookup(column)
	if !ok {
		return nil, false
	}
	z, ok := t.catalog.opts.IndexCache.Get(t.zones, uint64(f.ID))
	if !ok {
		return nil, false
	}
	return z.(*exec.Zones), true
}

// KeepZones implements exec.ZoneKeeper.
func (t *Table) KeepZones(column string, z *exec.Zones) {
	if f, ok := t.snap.Schema().Lookup(column); ok {
		t.catalog.opts.IndexCache.Put(t.zones, uint64(f.ID), z, z.SizeBytes())
	}
}

// FragmentIDs implements exec.Addressable.
func (t *Table) FragmentIDs() []uint32 {
	out := make([]uint32, 0, len(t.snap.Fragments()))
	for _, f := range t.snap.Fragments() {
		out = append(out, f.ID())
	}
	return out
}
