package main

import (
	"context"
	"crypto/subtle"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"

	"github.com/google/go-containerregistry/pkg/registry"
)

// serveRegistry serves an OCI registry; with -user it wants basic authentication.
func serveRegistry(_ context.Context, args []string) error {
	fs := flag.NewFlagSet("registry", flag.ContinueOnError)
	addr := fs.String("addr", "127.0.0.1:5000", "listen address")
	user := fs.String("user", "", "user (empty: everybody)")
	pass := fs.String("pass", "", "password")
	dir := fs.String("blobs", "", "folder for layers (empty: memory); manifests are in memory always")
	if err := fs.Parse(args); err != nil {
		return err
	}
	opts := []registry.Option{registry.Logger(log.New(os.Stderr, "", log.LstdFlags))}
	if *dir != "" {
		opts = append(opts, registry.WithBlobHandler(registry.NewDiskBlobHandler(*dir)))
	}
	handler := registry.New(opts...)
	if *user != "" {
		handler = authenticated(handler, *user, *pass)
	}
	return fmt.Errorf("serving on %s: %w", *addr, http.ListenAndServe(*addr, handler))
}

func authenticated(inner http.Handler, user, pass string) http.Handler {
	equal := func(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if u, p, ok := r.BasicAuth(); ok && equal(u, user) && equal(p, pass) {
			inner.ServeHTTP(w, r)
			return
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="devcluster"`)
		w.Header().Set("Docker-Distribution-Api-Version", "registry/2.0")
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"errors":[{"code":"UNAUTHORIZED","message":"authentication required"}]}`)
	})
}
