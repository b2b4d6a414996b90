package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	sqle "github.com/dolthub/go-mysql-server"
	gms "github.com/dolthub/go-mysql-server/server"
	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/vitess/go/mysql"
	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/lakesql/lakesql/engine"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/spawn"
	"github.com/lakesql/lakesql/planner/dialect"
	"github.com/lakesql/lakesql/planner/gms/mysqlerr"
)

// Options of a Server. The zero value listens on a free loopback port without users.
type Options struct {
	Listen           string // host:port; "" = 127.0.0.1:0
	Users            []User // none: everybody is root, which only a loopback address allows
	MaxConnections   uint64 // 0 = 1000
	MaxAllowedPacket int    // longest command in bytes; 0 = 64 MiB
	StatementLimits  dialect.Limits
	ShutdownPatience time.Duration // how long Close waits for statements that were told to stop; 0 = 5 s
}

// User may log in. Password is the clear text from the configuration.
type User struct {
	Name, Host, Password string // Host "" = any
}

func (o Options) withDefaults() Options {
	if o.Listen == "" {
		o.Listen = "127.0.0.1:0"
	}
	if o.MaxConnections == 0 {
		o.MaxConnections = 1000
	}
	if o.MaxAllowedPacket == 0 {
		o.MaxAllowedPacket = 64 << 20
	}
	if o.ShutdownPatience == 0 {
		o.ShutdownPatience = 5 * time.Second
	}
	return o
}

// Validate refuses to open the data to a network without users.
func (o Options) Validate() error {
	host, _, err := net.SplitHostPort(o.Listen)
	if err != nil {
		return errs.New(errs.ErrInvalid, "listen address %q: %w", o.Listen, err)
	}
	if len(o.Users) > 0 || isLoopback(host) {
		return nil
	}
	return errs.New(errs.ErrInvalid, "refusing to listen on %s without users: everybody who reaches it could read everything; add users to the configuration or listen on 127.0.0.1", o.Listen)
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// Server is a running listener.
type Server struct {
	opts     Options
	listener net.Listener
	inner    *gms.Server
	group    *spawn.Group
	cancel   context.CancelFunc
}

// Start listens and serves until Close. Errors: ErrInvalid for options that cannot be, ErrIO where the address is taken.
func Start(ctx context.Context, e *engine.Engine, opts Options) (*Server, error) {
	opts = opts.withDefaults()
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", opts.Listen)
	if err != nil {
		return nil, errs.New(errs.ErrIO, "listen: %w", err)
	}
	if err := sql.SystemVariables.AssignValues(map[string]any{"max_allowed_packet": int64(opts.MaxAllowedPacket)}); err != nil {
		return nil, errors.Join(fmt.Errorf("max_allowed_packet: %w", err), l.Close())
	}
	addUsers(e.SQLE(), opts.Users)
	s := &Server{opts: opts, listener: l}
	watch := newClientWatch()
	config := gms.Config{
		Protocol: "tcp", Address: l.Addr().String(), MaxConnections: opts.MaxConnections,
		Listener: filterListener{Listener: l, wrap: s.filter}, ProtocolListenerFactory: listen,
		Options: []gms.Option{func(inner *sqle.Engine, sm *gms.SessionManager, h mysql.Handler) (*sqle.Engine, *gms.SessionManager, mysql.Handler) {
			return inner, sm, &handler{Handler: h, engine: e, sessions: sm, watch: watch}
		}},
	}
	if s.inner, err = gms.NewServer(config, e.SQLE(), sql.NewContext, sessions(e), nil); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	ctx, s.cancel = context.WithCancel(ctx)
	s.group, ctx = spawn.WithContext(ctx, 0)
	s.group.Go("listener", s.inner.Start)
	s.group.Go("client watch", func() error { return watch.run(ctx) })
	return s, nil
}

// sessions makes the sessions of connections that have logged in.
func sessions(e *engine.Engine) gms.SessionBuilder {
	return func(_ context.Context, c *mysql.Conn, addr string) (sql.Session, error) {
		client := sql.Client{Capabilities: c.Capabilities}
		if u, ok := c.UserData.(sql.MysqlConnectionUser); ok {
			client.User, client.Address = u.User, u.Host
		}
		return e.Provider().NewSession(sql.NewBaseSessionWithClientServer(addr, client, c.ConnectionID)), nil
	}
}

// filter puts the packet filter before a connection.
func (s *Server) filter(c net.Conn) net.Conn {
	return &filterConn{
		Conn: c, peek: newPeeker(c), payloadMax: s.opts.MaxAllowedPacket,
		prepare: func(query string) (string, error) {
			r, err := dialect.Rewrite(query, s.opts.StatementLimits)
			if err != nil {
				return "", err
			}
			if r.Own != nil || r.Table.HasOwnSyntax() {
				return carry(query, r.Parameters), nil
			}
			return r.Text, parses(r.Text)
		},
		refuse: refusal,
	}
}

// parses returns the syntax error of a statement to prepare: the library would send it without its MySQL code. Texts that parse in either reading of
// double quotes pass, since the filter does not know the session's sql_mode. LOAD DATA is refused: the library dies of walking its tree.
func parses(query string) error {
	statement, err := sqlparser.Parse(query)
	if _, ok := statement.(*sqlparser.Load); ok {
		return errs.New(errs.ErrUnsupported, "LOAD DATA cannot be prepared")
	}
	switch statement.(type) {
	case *sqlparser.Prepare, *sqlparser.Execute, *sqlparser.Deallocate:
		return mysqlerr.NotPreparable()
	}
	if errors.Is(err, sqlparser.ErrEmpty) {
		return mysqlerr.EmptyQuery()
	}
	if err == nil {
		return nil
	}
	if _, ansiErr := sqlparser.ParseWithOptions(context.Background(), query, sqlparser.ParserOptions{AnsiQuotes: true}); ansiErr == nil {
		return nil
	}
	return sql.ErrSyntaxError.New(err.Error())
}

// refusal is a statement that fails with the reason.
func refusal(err error) string {
	e := mysqlerr.Convert(err)
	text := strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(e.Message)
	return fmt.Sprintf("SIGNAL SQLSTATE '%s' SET MESSAGE_TEXT = '%s', MYSQL_ERRNO = %d", e.State, text, e.Num)
}

func addUsers(e *sqle.Engine, users []User) {
	db := e.Analyzer.Catalog.MySQLDb
	if len(users) == 0 {
		return
	}
	ed := db.Editor()
	defer ed.Close()
	for _, u := range users {
		host := u.Host
		if host == "" {
			host = "%"
		}
		db.AddSuperUser(ed, u.Name, host, u.Password)
	}
}

// Addr is the address that the server listens on.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Close stops listening, tells running statements to stop, and waits for connections to end.
func (s *Server) Close() error {
	err := s.inner.Close()
	_ = s.inner.SessionManager().Iter(func(session sql.Session) (bool, error) {
		s.inner.Engine.ProcessList.Kill(session.ID())
		return false, s.inner.SessionManager().KillConnection(session.ID())
	})
	s.cancel()
	done := make(chan struct{})
	g, _ := spawn.WithContext(context.Background(), 0)
	g.Go("shutdown", func() error { s.inner.SessionManager().WaitForClosedConnections(); close(done); return nil })
	select {
	case <-done:
	case <-time.After(s.opts.ShutdownPatience):
		err = errors.Join(err, errs.New(errs.ErrInternal, "some statements did not stop within %s", s.opts.ShutdownPatience))
	}
	return errors.Join(err, s.group.Wait())
}
