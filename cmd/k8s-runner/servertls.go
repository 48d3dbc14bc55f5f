package main

import (
	"github.com/sirupsen/logrus"
	"google.golang.org/grpc"

	"github.com/agynio/k8s-runner/config"
	"github.com/agynio/k8s-runner/tlsfiles"
)

// serverCredentials returns what makes a gRPC server one with TLS, or nothing if c has
// no certificate.
func serverCredentials(c config.Config, log *logrus.Logger) ([]grpc.ServerOption, error) {
	if c.TLS.Cert == "" {
		return nil, nil
	}
	secured, err := tlsfiles.Server(tlsfiles.Files{
		Cert: tlsfiles.File{Path: c.TLS.Cert, Setting: "tls.cert (environment K8SRUNNER_TLS_CERT)"},
		Key:  tlsfiles.File{Path: c.TLS.Key, Setting: "tls.key (environment K8SRUNNER_TLS_KEY)"},
		CA:   tlsfiles.File{Path: c.TLS.ClientCA, Setting: "tls.client_ca (environment K8SRUNNER_TLS_CLIENT_CA)"},
	}, log)
	if err != nil {
		return nil, err
	}
	if c.TLS.ClientCA == "" && !c.Ziti.Enabled {
		log.Warn("without tls.client_ca every caller that reaches the API is served")
	}
	return []grpc.ServerOption{grpc.Creds(secured)}, nil
}
