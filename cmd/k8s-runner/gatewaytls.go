package main

import (
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/agynio/k8s-runner/config"
)

// gatewayCredentials secure the connection to the platform's gateway, if they are to.
func gatewayCredentials(c config.Gateway) (credentials.TransportCredentials, error) {
	if !c.TLS {
		return insecure.NewCredentials(), nil
	}
	return credentials.NewTLS(nil), nil
}
