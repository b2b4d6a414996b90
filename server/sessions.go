package server

import (
	"context"

	"github.com/dolthub/vitess/go/mysql"
	"github.com/sirupsen/logrus"

	"github.com/lakesql/lakesql/planner/gms/provider"
)

// NewConnection implements mysql.Handler: the greeting tells that statements commit by themselves. Clients that want it otherwise send SET autocommit = 0 only
// if they were told.
func (h *handler) NewConnection(c *mysql.Conn) {
	h.Handler.NewConnection(c)
	c.StatusFlags |= uint16(mysql.ServerStatusAutocommit)
}

// ConnectionClosed implements mysql.Handler: what the session has not committed is rolled back.
func (h *handler) ConnectionClosed(c *mysql.Conn) {
	h.abandon(c)
	h.Handler.ConnectionClosed(c)
}

// ComResetConnection implements mysql.Handler: a new session takes the place of the old one, whose transaction ends.
func (h *handler) ComResetConnection(c *mysql.Conn) error {
	h.abandon(c)
	return h.Handler.ComResetConnection(c)
}

func (h *handler) abandon(c *mysql.Conn) {
	ctx := context.Background()
	sc, err := h.sessions.NewContextWithQuery(ctx, c, "")
	if err != nil { // the connection never had a session
		return
	}
	session, ok := sc.Session.(*provider.Session)
	if !ok {
		return
	}
	if err := session.Abandon(ctx); err != nil {
		logrus.WithField("connection", c.ConnectionID).Errorf("roll back the transaction of a connection that ended: %v", err)
	}
}
