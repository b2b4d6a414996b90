package main

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/upkeep"
)

// merged reads a configuration as serve does.
func merged(t *testing.T, text string, f serveFlags) (config, error) {
	t.Helper()
	f.config = filepath.Join(t.TempDir(), "lakesql.yaml")
	if err := os.WriteFile(f.config, []byte("catalogs: [{name: a, uri: /a}]\n"+text), 0o600); err != nil {
		t.Fatal(err)
	}
	return f.merge()
}

func TestUpkeepInTheConfiguration(t *testing.T) {
	if c, err := merged(t, "", serveFlags{}); err != nil || c.maintain != nil {
		t.Errorf("upkeep is off unless it is asked for: %+v, %v", c.maintain, err)
	}
	want := upkeep.Defaults()
	for _, c := range []struct {
		text string
		flag bool
	}{{"upkeep: {enabled: true}", false}, {"", true}} {
		got, err := merged(t, c.text, serveFlags{upkeep: c.flag})
		if err != nil || got.maintain == nil {
			t.Fatalf("%q: %v", c.text, err)
		}
		got.maintain.OpenStore = nil
		if !reflect.DeepEqual(*got.maintain, want) {
			t.Errorf("%q: %+v, want the defaults", c.text, *got.maintain)
		}
	}
	got, err := merged(t, `upkeep: {enabled: true, interval: 1m, hours: "22:00-06:00", memory: 1GiB, exclude: ["a.x*"], indices: {off: true}, cleanup: {older_than: 2d}}`, serveFlags{})
	if err != nil {
		t.Fatal(err)
	}
	if o := got.maintain; o.Interval != time.Minute || o.Hours.From != 22*time.Hour || o.MemoryBytes != 1<<30 || !o.Indices.Off || o.Indices.Segments != want.Indices.Segments ||
		o.Cleanup.OlderThan != 48*time.Hour || o.Cleanup.KeepLatest != want.Cleanup.KeepLatest || len(o.Exclude) != 1 {
		t.Errorf("%+v", o)
	}
	for text, says := range map[string]string{
		"upkeep: {cores: 0}":                            "upkeep.cores: 0",
		"upkeep: {indices: {uncovered_share: 3}}":       "upkeep.indices.uncovered_share: 3",
		"upkeep: {cleanup: {older_than: soon}}":         `"soon" is no time span`,
		"upkeep: {enabled: true, hours: night}":         `upkeep.hours: "night"`,
		"upkeep: {enabled: true, include: [tablename]}": `upkeep.include: "tablename"`,
		"upkeep: {enabled: true, idle: 1}":              "idle",
	} {
		if _, err := merged(t, text, serveFlags{}); !errors.Is(err, errs.ErrInvalid) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %s", text, err, says)
		}
	}
}
