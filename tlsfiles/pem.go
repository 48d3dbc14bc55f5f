package tlsfiles

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"strings"
)

// content is what is in the files.
type content struct{ cert, key, ca string }

// material is what content means.
type material struct {
	files Files
	// pair is nil without a certificate, authorities without a CA.
	pair        *tls.Certificate
	authorities *x509.CertPool
}

func (f Files) read() (content, error) {
	var c content
	for _, file := range []struct {
		File
		to *string
	}{{f.Cert, &c.cert}, {f.Key, &c.key}, {f.CA, &c.ca}} {
		if file.Path == "" {
			continue
		}
		data, err := os.ReadFile(file.Path)
		if err != nil {
			return content{}, fmt.Errorf("%s: %w", file.Setting, err)
		}
		*file.to = string(data)
	}
	return c, nil
}

// parse reads c, which is that of the files. An error tells nothing of a key's text.
func (f Files) parse(c content) (material, error) {
	m := material{files: f}
	if f.CA.Path != "" {
		found, err := f.CA.certificates(c.ca)
		if err != nil {
			return m, err
		}
		m.authorities = x509.NewCertPool()
		for _, authority := range found {
			m.authorities.AddCert(authority)
		}
	}
	if f.Cert.Path == "" {
		return m, nil
	}
	if _, err := f.Cert.certificates(c.cert); err != nil {
		return m, err
	}
	if problem := keyProblem(c.key); problem != "" {
		return m, fmt.Errorf("%s: %s %s", f.Key.Setting, f.Key.Path, problem)
	}
	pair, err := tls.X509KeyPair([]byte(c.cert), []byte(c.key))
	if err != nil { // what it says may be of the key
		return m, fmt.Errorf("%s: %s is not the private key of the first certificate in %s", f.Key.Setting, f.Key.Path, f.Cert.Path)
	}
	m.pair = &pair
	return m, nil
}

// certificates are those of text, which is that of the file; at least one.
func (f File) certificates(text string) ([]*x509.Certificate, error) {
	var found []*x509.Certificate
	blocks := 0
	for block, rest := pem.Decode([]byte(text)); block != nil; block, rest = pem.Decode(rest) {
		blocks++
		if block.Type != "CERTIFICATE" {
			continue
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%s: reading certificate %d of %s: %w", f.Setting, len(found)+1, f.Path, err)
		}
		found = append(found, certificate)
	}
	// A chain of which the end is not written yet looks like a shorter one.
	if strings.Count(text, "-----BEGIN ") != blocks {
		return nil, fmt.Errorf("%s: %s holds a PEM block that is damaged or cut short", f.Setting, f.Path)
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s: %s holds no certificate in PEM form", f.Setting, f.Path)
	}
	return found, nil
}

// keyProblem says what is wrong with the text of a private key, or nothing.
func keyProblem(text string) string {
	for block, rest := pem.Decode([]byte(text)); block != nil; block, rest = pem.Decode(rest) {
		switch {
		case !strings.HasSuffix(block.Type, "PRIVATE KEY"):
			continue
		case block.Type == "ENCRYPTED PRIVATE KEY" || block.Headers["DEK-Info"] != "":
			return "holds a private key that is encrypted; it has to be without a passphrase"
		case !isKey(block.Bytes):
			return "holds a private key that cannot be read"
		}
		return ""
	}
	return "holds no private key in PEM form"
}

// isKey reports whether der is a private key in one of the forms of X509KeyPair.
func isKey(der []byte) bool {
	if _, err := x509.ParsePKCS8PrivateKey(der); err == nil {
		return true
	}
	if _, err := x509.ParsePKCS1PrivateKey(der); err == nil {
		return true
	}
	_, err := x509.ParseECPrivateKey(der)
	return err == nil
}

func (m material) expiry() expiry {
	if m.pair == nil {
		return expiry{}
	}
	return expiry{setting: m.files.Cert.Setting, after: m.pair.Leaf.NotBefore, before: m.pair.Leaf.NotAfter}
}
