package server

import (
	"encoding/hex"
	"strings"
)

// The library parses a statement to prepare by its own grammar. One that the grammar lacks travels as text within a query that it has, with as many parameters.
const carrierPrefix = "SELECT 'lakesql prepared "

// carry wraps a statement with its number of parameters.
func carry(statement string, parameters int) string {
	return carrierPrefix + hex.EncodeToString([]byte(statement)) + "'" + strings.Repeat(", ?", parameters)
}

// carried is the statement within, or the text itself.
func carried(text string) string {
	rest, ok := strings.CutPrefix(text, carrierPrefix)
	if !ok {
		return text
	}
	digits, _, ok := strings.Cut(rest, "'")
	if !ok {
		return text
	}
	statement, err := hex.DecodeString(digits)
	if err != nil {
		return text
	}
	return string(statement)
}
