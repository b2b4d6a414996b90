package engine

import (
	"slices"
	"strings"
	"testing"
)

// TestCollationsSayBytes: whatever character set or collation a client asks for, what is reported compares byte for byte, as strings do.
func TestCollationsSayBytes(t *testing.T) {
	const ask = "SELECT @@character_set_client, @@character_set_connection, @@character_set_results, @@collation_connection, @@collation_database, @@collation_server"
	for _, c := range []struct {
		set, want string
		warns     bool
	}{
		{"SET @a = 1", "utf8mb4 utf8mb4 utf8mb4 utf8mb4_0900_bin utf8mb4_0900_bin utf8mb4_0900_bin", false},
		{"SET NAMES utf8mb4", "utf8mb4 utf8mb4 utf8mb4 utf8mb4_0900_bin utf8mb4_0900_bin utf8mb4_0900_bin", false},
		{"SET NAMES 'utf8mb4'", "utf8mb4 utf8mb4 utf8mb4 utf8mb4_0900_bin utf8mb4_0900_bin utf8mb4_0900_bin", false},
		{"SET NAMES utf8mb4 COLLATE utf8mb4_0900_bin", "utf8mb4 utf8mb4 utf8mb4 utf8mb4_0900_bin utf8mb4_0900_bin utf8mb4_0900_bin", false},
		{"SET NAMES utf8mb4 COLLATE utf8mb4_bin", "utf8mb4 utf8mb4 utf8mb4 utf8mb4_bin utf8mb4_0900_bin utf8mb4_0900_bin", false},
		{"SET NAMES utf8mb4 COLLATE utf8mb4_general_ci", "utf8mb4 utf8mb4 utf8mb4 utf8mb4_0900_bin utf8mb4_0900_bin utf8mb4_0900_bin", true},
		{"SET NAMES latin1", "latin1 latin1 latin1 latin1_bin utf8mb4_0900_bin utf8mb4_0900_bin", false},
		{"SET NAMES utf8", "utf8 utf8 utf8 utf8mb3_bin utf8mb4_0900_bin utf8mb4_0900_bin", false},
		{"SET CHARACTER SET utf8mb4", "utf8mb4 utf8mb4 utf8mb4 utf8mb4_0900_bin utf8mb4_0900_bin utf8mb4_0900_bin", false},
		{"SET collation_connection = 'utf8mb4_unicode_ci'", "utf8mb4 utf8mb4 utf8mb4 utf8mb4_0900_bin utf8mb4_0900_bin utf8mb4_0900_bin", true},
		{"SET collation_connection = utf8mb4_0900_ai_ci", "utf8mb4 utf8mb4 utf8mb4 utf8mb4_0900_bin utf8mb4_0900_bin utf8mb4_0900_bin", true},
		{"SET character_set_connection = latin1", "utf8mb4 latin1 utf8mb4 latin1_bin utf8mb4_0900_bin utf8mb4_0900_bin", false},
		{"SET character_set_results = NULL", "utf8mb4 utf8mb4  utf8mb4_0900_bin utf8mb4_0900_bin utf8mb4_0900_bin", false},
		{"SET NAMES DEFAULT", "utf8mb4 utf8mb4 utf8mb4 utf8mb4_0900_bin utf8mb4_0900_bin utf8mb4_0900_bin", false},
	} {
		s := newSession(t, openLake(t, Config{}))
		run(t, s, c.set)
		warnings, _ := run(t, s, "SHOW WARNINGS")
		if (len(warnings) > 0) != c.warns {
			t.Errorf("%s: warnings %q", c.set, warnings)
		}
		if got, _ := run(t, s, ask); strings.ReplaceAll(strings.Join(got, ""), "\t", " ") != c.want {
			t.Errorf("%s: %q\nwant %q", c.set, got, c.want)
		}
		if got, _ := run(t, s, "SELECT 'a' = 'A', 'a' = 'a '"); !slices.Equal(got, []string{"0\t0"}) {
			t.Errorf("%s: compares %q", c.set, got)
		}
		if got, _ := run(t, s, "SHOW VARIABLES LIKE 'collation_connection'"); len(got) != 1 || !strings.HasSuffix(got[0], "_bin") {
			t.Errorf("%s: shows %q", c.set, got)
		}
	}
}
