package tlsfiles

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"google.golang.org/grpc/credentials"
)

// follower is credentials as their files are. Each handshake reads them: that is
// little beside its arithmetic, needs nobody who watches, and sees every way in which
// a file can change.
type follower struct {
	files Files
	log   logrus.FieldLogger
	// config makes the configuration of one side.
	config func(material) *tls.Config

	mu sync.Mutex
	// good is what was last made of the files.
	good    credentials.TransportCredentials
	expires expiry
	// tried is the content that was last looked at, and fault what is wrong with it;
	// nil if the files could not be read.
	tried *content
	fault error
	// told is the fault that the log has last.
	told string
}

func follow(files Files, log logrus.FieldLogger, config func(material) *tls.Config) (*follower, error) {
	f := &follower{files: files, log: log, config: config}
	now, err := files.read()
	if err != nil {
		return nil, err
	}
	if err := f.try(now); err != nil {
		return nil, err
	}
	f.expires.warn(log, time.Now())
	return f, nil
}

// current returns what the files make, or else what they last made.
func (f *follower) current() credentials.TransportCredentials {
	f.mu.Lock()
	defer f.mu.Unlock()
	now, err := f.files.read()
	switch {
	case err != nil:
		f.tried = nil
	case f.tried != nil && now == *f.tried:
		err = f.fault
	default:
		f.told = ""
		err = f.try(now)
		if err == nil {
			f.log.WithFields(f.expires.fields()).Info("TLS files have changed; new connections use them")
		}
	}
	f.tell(err)
	f.expires.warn(f.log, time.Now())
	return f.good
}

// try makes credentials of now. Who replaces one file after the other, or all of
// them by a link to their folder, can do so between two reads: then what was read
// fits as little as a bad pair, and what is there by now counts.
func (f *follower) try(now content) error {
	made, err := f.files.parse(now)
	if err != nil {
		if later, readErr := f.files.read(); readErr == nil && later != now {
			now = later
			made, err = f.files.parse(now)
		}
	}
	f.tried, f.fault = &now, err
	if err == nil {
		f.good, f.expires = credentials.NewTLS(f.config(made)), made.expiry()
	}
	return err
}

// tell has each fault in the log once.
func (f *follower) tell(err error) {
	if err == nil {
		f.told = ""
		return
	}
	if err.Error() != f.told {
		f.log.WithError(err).Warn("TLS files are refused; new connections use what they were before")
	}
	f.told = err.Error()
}

// ServerHandshake implements credentials.TransportCredentials. Who is refused is
// said for those who look for it: anyone can make any number of such lines.
func (f *follower) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	secured, info, err := f.current().ServerHandshake(conn)
	if err != nil {
		f.log.WithError(err).WithField("peer", conn.RemoteAddr().String()).Debug("no TLS connection came about")
	}
	return secured, info, err
}

// ClientHandshake implements credentials.TransportCredentials.
func (f *follower) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return f.current().ClientHandshake(ctx, authority, conn)
}

// Info implements credentials.TransportCredentials.
func (f *follower) Info() credentials.ProtocolInfo {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.good.Info()
}

// Clone implements credentials.TransportCredentials: there is nothing in it that a
// connection changes.
func (f *follower) Clone() credentials.TransportCredentials { return f }

// OverrideServerName implements credentials.TransportCredentials, of which gRPC has
// withdrawn it; Client takes the name.
func (f *follower) OverrideServerName(string) error { return nil }
