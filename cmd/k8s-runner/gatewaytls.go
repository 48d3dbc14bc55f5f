package main

import (
	"github.com/sirupsen/logrus"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/agynio/k8s-runner/config"
	"github.com/agynio/k8s-runner/tlsfiles"
)

// gatewayCredentials secure the connection to the platform's gateway, if they are to.
func gatewayCredentials(c config.Gateway, log *logrus.Logger) (credentials.TransportCredentials, error) {
	if !c.TLS {
		return insecure.NewCredentials(), nil
	}
	return tlsfiles.Client(tlsfiles.Files{CA: tlsfiles.File{Path: c.CA, Setting: "gateway.ca (environment K8SRUNNER_GATEWAY_CA)"}}, "", log)
}
