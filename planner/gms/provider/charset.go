package provider

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/dolthub/go-mysql-server/sql"
)

// Names of the variables that hold collations.
const (
	varCollationConnection = "collation_connection"
	varCollationDatabase   = "collation_database"
	varCollationServer     = "collation_server"
)

// namesCollate finds the collation of SET NAMES, which go-mysql-server drops.
func namesCollate() *regexp.Regexp {
	return regexp.MustCompile(`(?is)^\s*set\s+names\s+\S+\s+collate\s+['"]?(\w+)`)
}

// setCollation reports the collation of the character set that compares byte for byte, as lakesql does whatever a client asks for; where it was
// asked for another one a warning says so.
func (s *Session) setCollation(ctx *sql.Context, name string, value any) error {
	asked, ok := value.(string)
	if !ok {
		return s.BaseSession.SetSessionVariable(ctx, name, value)
	}
	explicit := strings.Contains(strings.ToLower(ctx.Query()), "collat")
	if m := namesCollate().FindStringSubmatch(ctx.Query()); m != nil {
		asked = m[1]
	}
	id, err := sql.ParseCollation("", asked, false)
	if err != nil {
		return err
	}
	used := byteCollation(id)
	if used != id && explicit {
		s.Warn(&sql.Warning{Level: "Warning", Code: 1105, Message: fmt.Sprintf("strings compare byte for byte: %s stays %s, not %s", name, used.Name(), id.Name())})
	}
	return s.BaseSession.SetSessionVariable(ctx, name, used.Name())
}

// byteCollation is the collation itself where it compares bytes, else the one of its character set that does.
func byteCollation(id sql.CollationID) sql.CollationID {
	switch {
	case strings.HasSuffix(id.Name(), "_bin") || id == sql.Collation_binary:
		return id
	case id.CharacterSet() == Collation.CharacterSet():
		return Collation
	default:
		return id.CharacterSet().BinaryCollation()
	}
}
