package ziti

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/url"
	"strings"

	"github.com/openziti/identity"
	apis "github.com/openziti/sdk-golang/edge-apis"
	sdk "github.com/openziti/sdk-golang/ziti"
)

// inline marks a value that is PEM itself. The SDK takes others for the names of files
// of this machine, or of hardware modules; here nothing but PEM is.
const inline = "pem:"

// read returns the SDK's form of an identity. The SDK ends the process, or panics, when
// it finds out by itself that one is malformed, and then names what it was given; so it
// gets nothing but what was read and written anew here. No error quotes the identity.
func read(text []byte) (*sdk.Config, error) {
	var config sdk.Config
	if json.Unmarshal(text, &config) != nil { // its error could quote
		return nil, errors.New("it is no JSON of an identity")
	}
	if err := controllers(&config); err != nil {
		return nil, err
	}
	own, err := certificate(config.ID)
	if err != nil {
		return nil, err
	}
	if own.CA, err = authorities(config.ID.CA); err != nil {
		return nil, err
	}
	loaded, err := identity.LoadIdentity(own)
	if err != nil {
		return nil, errors.New("its cert, its key or its ca is not accepted")
	}
	credentials := apis.NewIdentityCredentials(loaded)
	credentials.ConfigTypes = config.ConfigTypes
	return &sdk.Config{
		ZtAPI: config.ZtAPI, ZtAPIs: config.ZtAPIs, ConfigTypes: config.ConfigTypes, Credentials: credentials,
	}, nil
}

// controllers checks where the identity's controllers are.
func controllers(config *sdk.Config) error {
	all := config.ZtAPIs
	if len(all) == 0 {
		all = []string{config.ZtAPI}
	}
	for _, controller := range all {
		address, err := url.Parse(controller)
		if err != nil || address.Scheme != "https" || address.Hostname() == "" || address.User != nil {
			return errors.New("its ztAPI is no https address")
		}
	}
	return nil
}

// certificate returns the certificate of an identity, with its chain, and its key.
func certificate(from identity.Config) (identity.Config, error) {
	none := identity.Config{}
	pair, err := tls.X509KeyPair(plain(from.Cert), plain(from.Key))
	if err != nil {
		return none, errors.New("its cert and key are no PEM, malformed, or not each other's")
	}
	private, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		return none, errors.New("its key is of an unknown kind")
	}
	return identity.Config{
		Cert: inline + string(encode(pair.Certificate)),
		Key:  inline + string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})),
	}, nil
}

// authorities returns the certificates that the identity's controllers are trusted by.
// Without them it is the system's.
func authorities(from string) (string, error) {
	if from == "" {
		return "", nil
	}
	var all [][]byte
	for block, rest := pem.Decode(plain(from)); block != nil; block, rest = pem.Decode(rest) {
		if _, err := x509.ParseCertificate(block.Bytes); err != nil || block.Type != "CERTIFICATE" {
			return "", errors.New("its ca holds something that is no certificate")
		}
		all = append(all, block.Bytes)
	}
	return inline + string(encode(all)), nil
}

func plain(value string) []byte { return []byte(strings.TrimPrefix(value, inline)) }

func encode(certificates [][]byte) []byte {
	var text bytes.Buffer
	for _, c := range certificates {
		text.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c}))
	}
	return text.Bytes()
}
