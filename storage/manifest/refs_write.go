package manifest

import (
	"encoding/json"
	"net/url"
	"strings"
	"time"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage/object"
)

// TagPath is the path of a tag's file, relative to the main dataset.
func TagPath(name string) string { return object.Join(TagsDir, url.PathEscape(name)+".json") }

// BranchPath is the path of a branch's file, relative to the main dataset.
func BranchPath(name string) string { return object.Join(BranchesDir, url.PathEscape(name)+".json") }

// refNameMax is the longest name that fits a file name whatever it is escaped to.
const refNameMax = 80

// CheckTagName refuses names that other engines refuse: letters, digits, ".", "-" and "_" only, no "..", no "." at an end and no ".lock" at the end. Errors: ErrInvalid.
func CheckTagName(name string) error {
	bad := func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune(".-_", r))
	}
	if name == "" || len(name) > refNameMax || strings.ContainsFunc(name, bad) || strings.Contains(name, "..") ||
		strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".") || strings.HasSuffix(name, ".lock") {
		return errs.New(errs.ErrInvalid, "the name %q: letters, digits, \".\", \"-\" and \"_\", no dot at an end, at most %d characters", name, refNameMax)
	}
	return nil
}

// CheckBranchName refuses names that other engines refuse: parts like a tag's, with "/" between them, and "main". Errors: ErrInvalid.
func CheckBranchName(name string) error {
	if name == "main" {
		return errs.New(errs.ErrInvalid, "the main history has no branch of that name")
	}
	if len(name) > refNameMax {
		return errs.New(errs.ErrInvalid, "a branch name of %d characters", len(name))
	}
	for part := range strings.SplitSeq(name, "/") {
		if err := CheckTagName(part); err != nil {
			return err
		}
		if strings.HasPrefix(part, "_") || part == DataDir {
			return errs.New(errs.ErrInvalid, "the branch name %q: its folder would be one of the dataset's own", name)
		}
	}
	return nil
}

// textOrNull spells the main history as null.
func textOrNull(branch string) any {
	if branch == "" {
		return nil
	}
	return branch
}

// EncodeTag writes a tag file. before is the file as it was, nil = a new tag: what it says beside the version stays. sizeBytes is that of the version's manifest.
// Errors: ErrCorrupt for a file that is none.
func EncodeTag(t Tag, sizeBytes int64, now time.Time, before []byte) ([]byte, error) {
	all := map[string]any{"createdAt": now.UTC().Format(time.RFC3339Nano), "metadata": map[string]string{}}
	if before != nil {
		if err := json.Unmarshal(before, &all); err != nil {
			return nil, errs.Corrupt("tag", -1, "%w", err)
		}
	}
	all["branch"], all["version"], all["manifestSize"] = textOrNull(t.Branch), t.Version, sizeBytes
	all["updatedAt"] = now.UTC().Format(time.RFC3339Nano)
	return encodeRef(all)
}

// Fork is one step of a branch's descent: the version of the parent that it left from, and a random name for the step.
type Fork struct {
	Version uint64
	ID      string
}

// ParseForks reads a branch's descent from its file; nil where the file does not say. Errors: ErrCorrupt.
func ParseForks(b []byte) ([]Fork, error) {
	var raw struct {
		Identifier struct {
			Mapping [][2]json.RawMessage `json:"version_mapping"`
		} `json:"identifier"`
	}
	if err := json.Unmarshal(b, &raw); err != nil {
		return nil, errs.Corrupt("branch", -1, "%w", err)
	}
	var out []Fork
	for _, m := range raw.Identifier.Mapping {
		var f Fork
		if json.Unmarshal(m[0], &f.Version) != nil || json.Unmarshal(m[1], &f.ID) != nil {
			return nil, errs.Corrupt("branch", -1, "a step of its descent is %s", m)
		}
		out = append(out, f)
	}
	return out, nil
}

// EncodeBranch writes a branch file. sizeBytes is that of the parent version's manifest. Errors: ErrInternal.
func EncodeBranch(b Branch, forks []Fork, sizeBytes int64) ([]byte, error) {
	mapping := make([][2]any, len(forks))
	for i, f := range forks {
		mapping[i] = [2]any{f.Version, f.ID}
	}
	return encodeRef(map[string]any{
		"parentBranch": textOrNull(b.Parent), "identifier": map[string]any{"version_mapping": mapping}, "parentVersion": b.ParentVersion,
		"createAt": b.Created.Unix(), "manifestSize": sizeBytes, "metadata": map[string]string{},
	})
}

func encodeRef(all map[string]any) ([]byte, error) {
	b, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return nil, errs.New(errs.ErrInternal, "reference: %w", err)
	}
	return b, nil
}
