package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

// api speaks to the API server as the administrator.
type api struct {
	base string
	http *http.Client
}

func newAPI(s settings, addr string) (*api, error) {
	cert, err := tls.LoadX509KeyPair(s.pki("admin.crt"), s.pki("admin.key"))
	if err != nil {
		return nil, fmt.Errorf("reading the administrator's certificate: %w", err)
	}
	ca, err := os.ReadFile(s.pki("ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("reading the authority's certificate: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	transport := &http.Transport{
		TLSClientConfig:   &tls.Config{Certificates: []tls.Certificate{cert}, RootCAs: roots, MinVersion: tls.VersionTLS12},
		DisableKeepAlives: true, // a few requests in all
	}
	return &api{base: "https://" + addr, http: &http.Client{Transport: transport, Timeout: 5 * time.Second}}, nil
}

func (a *api) do(ctx context.Context, method, path, contentType string, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, a.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", contentType)
	resp, err := a.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("reading the answer to %s %s: %w", method, path, err)
	}
	if resp.StatusCode/100 != 2 {
		return nil, fmt.Errorf("%s %s: %s: %.300s", method, path, resp.Status, b)
	}
	return b, nil
}

func (a *api) get(ctx context.Context, path string) ([]byte, error) {
	return a.do(ctx, http.MethodGet, path, "", nil)
}

// ready returns nil once the API server says so.
func (a *api) ready(ctx context.Context) error {
	_, err := a.get(ctx, "/readyz")
	return err
}

// nodeReady returns nil once the node is Ready and a Pod would be admitted:
// before its namespace has a service account none is.
func (a *api) nodeReady(ctx context.Context) error {
	b, err := a.get(ctx, "/api/v1/nodes/"+nodeName)
	if err != nil {
		return err
	}
	var node struct {
		Status struct {
			Conditions []struct{ Type, Status, Message string }
		}
	}
	if err := json.Unmarshal(b, &node); err != nil {
		return fmt.Errorf("reading the node: %w", err)
	}
	for _, c := range node.Status.Conditions {
		if c.Type != "Ready" {
			continue
		}
		if c.Status != "True" {
			return fmt.Errorf("the node is not Ready: %s", c.Message)
		}
		_, err := a.get(ctx, "/api/v1/namespaces/default/serviceaccounts/default")
		return err
	}
	return fmt.Errorf("the node has no condition Ready yet")
}

// baseObjects is where the files of config/objects go.
func baseObjects(s settings) map[string]string {
	objects := map[string]string{
		"node-proxier.yaml": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/devcluster-node-proxier",
		"hostdir.yaml":      "/apis/storage.k8s.io/v1/storageclasses/hostdir",
		"alt.yaml":          "/apis/node.k8s.io/v1/runtimeclasses/alt",
	}
	if s.Simulated {
		objects["simulated-node.yaml"] = "/api/v1/nodes/" + nodeName
	}
	return objects
}

// applyBase creates what every cluster has from the beginning.
func (a *api) applyBase(ctx context.Context, s settings) error {
	for file, path := range baseObjects(s) {
		yaml, err := configFS.ReadFile("config/objects/" + file)
		if err != nil {
			return err
		}
		_, err = a.do(ctx, http.MethodPatch, path+"?fieldManager=devcluster", "application/apply-patch+yaml", yaml)
		if err != nil {
			return fmt.Errorf("applying %s: %w", file, err)
		}
	}
	return nil
}
