package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/agynio/k8s-runner/tlsfiles"
)

// tlsFlags say how a client is secured. Each has a variable: RUNNER_ and its name.
type tlsFlags struct {
	on                        bool
	ca, cert, key, serverName string
}

func (f *tlsFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&f.on, "tls", false, "use TLS; each of the other TLS flags implies it [RUNNER_TLS]")
	flags.StringVar(&f.ca, "tls-ca", "", "PEM `FILE` of the authorities of the runner's certificate (default: the system's) [RUNNER_TLS_CA]")
	flags.StringVar(&f.cert, "tls-cert", "", "PEM `FILE` of the certificate that the runner asks callers for [RUNNER_TLS_CERT]")
	flags.StringVar(&f.key, "tls-key", "", "PEM `FILE` of its private key [RUNNER_TLS_KEY]")
	flags.StringVar(&f.serverName, "tls-server-name", "", "`NAME` in the runner's certificate (default: the host of --address) [RUNNER_TLS_SERVER_NAME]")
}

// tlsVariable is the variable of a flag.
func tlsVariable(flag string) string {
	return "RUNNER_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// read completes the flags of cmd with the environment.
func (f *tlsFlags) read(cmd *cobra.Command) error {
	given := cmd.Flags().Changed("tls")
	for name, value := range map[string]*string{"tls-ca": &f.ca, "tls-cert": &f.cert, "tls-key": &f.key, "tls-server-name": &f.serverName} {
		if !cmd.Flags().Changed(name) {
			*value = os.Getenv(tlsVariable(name))
		}
	}
	if value := os.Getenv(tlsVariable("tls")); value != "" && !given {
		on, err := strconv.ParseBool(value)
		if err != nil {
			return usage(cmd, fmt.Errorf("%s is neither true nor false", tlsVariable("tls")))
		}
		f.on, given = on, true
	}
	if (f.cert == "") != (f.key == "") {
		return usage(cmd, errors.New("--tls-cert (RUNNER_TLS_CERT) and --tls-key (RUNNER_TLS_KEY) belong together"))
	}
	if !given {
		f.on = f.ca+f.cert+f.serverName != ""
	}
	return nil
}

// credentials are what the flags say.
func (f *tlsFlags) credentials() (credentials.TransportCredentials, error) {
	if !f.on {
		return insecure.NewCredentials(), nil
	}
	file := func(name, path string) tlsfiles.File {
		return tlsfiles.File{Path: path, Setting: "--" + name + " (" + tlsVariable(name) + ")"}
	}
	nobody := logrus.New() // of files that change there is nobody to tell
	nobody.SetOutput(io.Discard)
	return tlsfiles.Client(tlsfiles.Files{
		CA: file("tls-ca", f.ca), Cert: file("tls-cert", f.cert), Key: file("tls-key", f.key),
	}, f.serverName, nobody)
}

// endpoint is where a client finds its runner, and how.
type endpoint struct {
	address string
	tls     bool
	// named is true for a client that has a certificate.
	named bool
}

// advice says what to do about a connection that TLS stands in the way of, as gRPC's
// message has it, or nothing.
func (e endpoint) advice(message string) string {
	has := func(any ...string) bool {
		for _, words := range any {
			if strings.Contains(message, words) {
				return true
			}
		}
		return false
	}
	// Who is refused finds that out only afterwards: from an alert, or from an end.
	refused := has("remote error: tls") || (has("error reading server preface", "broken pipe", "connection reset") && !has("error reading from server"))
	switch {
	case !e.tls && has("error reading server preface") && !has("HTTP/1.1"):
		return "It may be a runner with TLS: try --tls, with --tls-ca FILE where its authority is your own."
	case !e.tls:
		return ""
	case has("first record does not look like a TLS handshake"):
		return "It speaks no TLS: leave out --tls and what implies it (" + e.variables() + ")."
	case has("signed by unknown authority", "certificate is not trusted", "certificate is not standards compliant"):
		return "Name the file of the authority that signed its certificate with --tls-ca (RUNNER_TLS_CA)."
	case has("certificate is valid for", "certificate is not valid for any names", "IP SANs", "common name"):
		return "Say which name its certificate has with --tls-server-name (RUNNER_TLS_SERVER_NAME), or use that name in --address."
	case !refused:
		return ""
	case !e.named:
		return "It may want a certificate of its callers: give --tls-cert and --tls-key."
	}
	return "It may refuse the certificate of --tls-cert: it has to be one for clients, in force, of an authority in the runner's tls.client_ca."
}

func (endpoint) variables() string {
	return "RUNNER_TLS, RUNNER_TLS_CA, RUNNER_TLS_CERT, RUNNER_TLS_SERVER_NAME"
}
