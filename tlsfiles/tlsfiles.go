// Package tlsfiles makes gRPC's transport credentials of PEM files and follows the
// files: what is renewed holds for new connections, and old ones live on.
package tlsfiles

import (
	"crypto/tls"

	"github.com/sirupsen/logrus"
	"google.golang.org/grpc/credentials"
)

// File is a PEM file, and what it is called where it is set.
type File struct {
	// Path is empty if there is no such file.
	Path string
	// Setting begins each error about the file.
	Setting string
}

// Files are those of one side of a connection.
type Files struct {
	// Cert is this side's certificate, with those between it and its root, and Key its
	// private key.
	Cert, Key File
	// CA holds the authorities of the other side's certificate.
	CA File
}

// Server returns the credentials of a server, which has a certificate. With a CA it
// wants one of its callers. An error says what is wrong with which file, and holds
// nothing of a key.
func Server(files Files, log logrus.FieldLogger) (credentials.TransportCredentials, error) {
	return follow(files, log, func(m material) *tls.Config {
		config := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{*m.pair}}
		if m.authorities != nil {
			config.ClientCAs, config.ClientAuth = m.authorities, tls.RequireAndVerifyClientCert
		}
		return config
	})
}

// Client returns the credentials of a client, in which every file may be missing:
// without a CA the system's roots count. The server's certificate has to be for
// serverName or, if that is empty, for the host that is dialled. Errors are as those
// of Server.
func Client(files Files, serverName string, log logrus.FieldLogger) (credentials.TransportCredentials, error) {
	return follow(files, log, func(m material) *tls.Config {
		config := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: m.authorities, ServerName: serverName}
		if m.pair != nil {
			config.Certificates = []tls.Certificate{*m.pair}
		}
		return config
	})
}
