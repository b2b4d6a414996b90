package manifest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage/object"
)

// refBytesMax bounds a tag or branch file.
const refBytesMax = 1 << 20

// Tag names a version.
type Tag struct {
	Name    string
	Branch  string // "" = main
	Version uint64
	Created time.Time // zero if the file does not say
}

// Branch names a history of its own, kept below tree/Name.
type Branch struct {
	Name          string
	Parent        string // "" = main
	ParentVersion uint64
	Created       time.Time
}

// Dir is the folder of a branch's dataset, relative to the main dataset. Errors: ErrInvalid for a name that is no path.
func (b Branch) Dir() (string, error) { return BranchDir(b.Name) }

// BranchDir is the folder of a branch's dataset, relative to the main dataset; "" and "main" are the dataset itself.
func BranchDir(name string) (string, error) {
	if name == "" || name == "main" {
		return "", nil
	}
	if err := object.CheckPath(name); err != nil {
		return "", fmt.Errorf("branch: %w", err)
	}
	return object.Join(BranchTreeDir, name), nil
}

// ParseTag reads a tag file. Unknown keys are left alone. Errors: ErrCorrupt.
func ParseTag(name string, b []byte) (Tag, error) {
	var raw struct {
		Branch    *string         `json:"branch"`
		Version   *uint64         `json:"version"`
		CreatedAt json.RawMessage `json:"createdAt"`
	}
	if err := json.Unmarshal(b, &raw); err != nil {
		return Tag{}, errs.Corrupt("tag", -1, "%w", err)
	}
	if raw.Version == nil {
		return Tag{}, errs.Corrupt("tag", -1, "no version")
	}
	t := Tag{Name: name, Version: *raw.Version, Created: parseTime(raw.CreatedAt)}
	if raw.Branch != nil && *raw.Branch != "main" {
		t.Branch = *raw.Branch
	}
	return t, nil
}

// ParseBranch reads a branch file. Errors: ErrCorrupt.
func ParseBranch(name string, b []byte) (Branch, error) {
	var raw struct {
		ParentBranch  *string         `json:"parentBranch"`
		ParentVersion uint64          `json:"parentVersion"`
		CreateAt      json.RawMessage `json:"createAt"`
	}
	if err := json.Unmarshal(b, &raw); err != nil {
		return Branch{}, errs.Corrupt("branch", -1, "%w", err)
	}
	br := Branch{Name: name, ParentVersion: raw.ParentVersion, Created: parseTime(raw.CreateAt)}
	if raw.ParentBranch != nil && *raw.ParentBranch != "main" {
		br.Parent = *raw.ParentBranch
	}
	return br, nil
}

// parseTime reads a time as text or as seconds; what cannot be read is the zero time, since no answer depends on it.
func parseTime(b json.RawMessage) time.Time {
	var text string
	if json.Unmarshal(b, &text) == nil {
		t, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			return time.Time{}
		}
		return t.UTC()
	}
	var seconds int64
	if json.Unmarshal(b, &seconds) == nil && seconds != 0 {
		return time.Unix(seconds, 0).UTC()
	}
	return time.Time{}
}

// Tags lists the tags of a dataset by name.
func Tags(ctx context.Context, store object.Store, dir string) ([]Tag, error) {
	return refs(ctx, store, object.Join(dir, TagsDir), ParseTag)
}

// Branches lists the branches of a dataset by name.
func Branches(ctx context.Context, store object.Store, dir string) ([]Branch, error) {
	return refs(ctx, store, object.Join(dir, BranchesDir), ParseBranch)
}

func refs[T any](ctx context.Context, store object.Store, dir string, parse func(string, []byte) (T, error)) ([]T, error) {
	entries, err := store.List(ctx, dir)
	if err != nil {
		return nil, err
	}
	var out []T
	for _, e := range entries {
		encoded, isRef := strings.CutSuffix(e.Name, ".json")
		if !isRef || e.IsDir {
			continue
		}
		name, err := url.PathUnescape(encoded) // "dev/x" is kept as dev%2Fx.json
		if err != nil {
			name = encoded
		}
		ref, err := readRef(ctx, store, object.Join(dir, e.Name), name, parse)
		if err != nil {
			return nil, err
		}
		out = append(out, ref)
	}
	return out, nil
}

// ReadTag reads one tag. Errors: ErrNotFound, ErrCorrupt, ErrIO.
func ReadTag(ctx context.Context, store object.Store, dir, name string) (Tag, error) {
	if name == "" {
		return Tag{}, errs.New(errs.ErrInvalid, "a tag needs a name")
	}
	return readRef(ctx, store, object.Join(dir, TagsDir, url.PathEscape(name)+".json"), name, ParseTag)
}

func readRef[T any](ctx context.Context, store object.Store, path, name string, parse func(string, []byte) (T, error)) (T, error) {
	var none T
	f, err := store.Open(ctx, path)
	if err != nil {
		return none, err
	}
	if f.SizeBytes() > refBytesMax {
		return none, errs.WithPath(errs.Corrupt("reference", -1, "%d bytes long", f.SizeBytes()), path)
	}
	b, err := f.Read(ctx, object.Range{Size: f.SizeBytes()})
	if err != nil {
		return none, err
	}
	out, err := parse(name, b)
	if err != nil {
		return none, errs.WithPath(err, path)
	}
	return out, nil
}
