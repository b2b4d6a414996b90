package sql

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/lakesql/lakesql/test/lakes"
)

func TestMain(m *testing.M) {
	lakes.Quiet()
	goleak.VerifyTestMain(m, goleak.IgnoreCurrent())
}
