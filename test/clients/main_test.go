package clients

import (
	"os"
	"testing"

	"github.com/sirupsen/logrus"
)

// The server's library logs every connection, and every statement that cannot be prepared.
func TestMain(m *testing.M) {
	logrus.SetLevel(logrus.FatalLevel)
	os.Exit(m.Run())
}
