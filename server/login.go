package server

import (
	"fmt"
	"net"
	"slices"

	gms "github.com/dolthub/go-mysql-server/server"
	"github.com/dolthub/vitess/go/mysql"
)

// listen makes the library's listener, with a method of logging in for users that there are not: without one the library has no error to send.
func listen(cfg gms.Config, inner mysql.ListenerConfig, events gms.ServerEventListener) (gms.ProtocolListener, error) {
	inner.AuthServer = strictAuth{inner.AuthServer}
	return gms.MySQLProtocolListenerFactory(cfg, inner, events)
}

// strictAuth offers whoever no other method knows the usual exchange of passwords, and refuses in the end, so that names cannot be told by it.
type strictAuth struct{ mysql.AuthServer }

// AuthMethods implements mysql.AuthServer.
func (s strictAuth) AuthMethods() []mysql.AuthMethod {
	methods := s.AuthServer.AuthMethods()
	known := func(c *mysql.Conn, user string) bool {
		for _, m := range methods {
			if m.HandleUser(c, user) {
				return true
			}
		}
		return false
	}
	out := slices.Clone(methods)
	for _, m := range methods {
		if m.Name() == mysql.MysqlNativePassword {
			return append(out, stranger{AuthMethod: m, known: known})
		}
	}
	return out
}

// stranger is mysql_native_password for users that there are not.
type stranger struct {
	mysql.AuthMethod
	known func(c *mysql.Conn, user string) bool
}

// HandleUser implements mysql.AuthMethod.
func (s stranger) HandleUser(c *mysql.Conn, user string) bool { return !s.known(c, user) }

// HandleAuthPluginData implements mysql.AuthMethod.
func (s stranger) HandleAuthPluginData(_ *mysql.Conn, user string, _, answer []byte, remote net.Addr) (mysql.Getter, error) {
	host, _, err := net.SplitHostPort(remote.String())
	if err != nil {
		host = remote.String()
	}
	password := "YES"
	if len(answer) == 0 {
		password = "NO"
	}
	text := fmt.Sprintf("Access denied for user '%s'@'%s' (using password: %s)", user, host, password)
	return nil, mysql.NewSQLError(mysql.ERAccessDeniedError, mysql.SSAccessDeniedError, "%s", text)
}
