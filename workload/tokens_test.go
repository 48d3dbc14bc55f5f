package workload_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// noTokens are words in the form of a token that are something else: fields of
// a request, keys of labels and properties.
var noTokens = []string{
	"additional_properties", "image_pull_credentials", "init_containers", "inline_files", "read_only_root_filesystem",
	"restart_policy", "tar_payload", "volume_key", "workload_id", "workload_key",
}

var snakeCase = regexp.MustCompile(`^[a-z]+(_[a-z]+)+$`)

// TestTokensAreDocumented compares the tokens of errors with docs/errors.md:
// callers act on them. Of the stages that refuse requests, each word in the form
// of a token counts as one.
func TestTokensAreDocumented(t *testing.T) {
	documented := documentedTokens(t)
	for _, folder := range []string{"archive", "catalog", "cluster/files", "render", "request", "workload"} {
		for _, word := range words(t, "../"+folder) {
			if !slices.Contains(noTokens, word) && !slices.Contains(documented, word) {
				t.Errorf("%s has %s, which docs/errors.md does not explain", folder, word)
			}
		}
	}
}

// TestDocumentedTokensAreUsed finds what docs/errors.md explains in vain.
func TestDocumentedTokensAreUsed(t *testing.T) {
	var used []string
	for _, folder := range []string{"applier", "archive", "catalog", "cluster", "cluster/again", "cluster/events", "cluster/exec", "cluster/files", "cluster/logs", "cmd/k8s-runner", "overrides", "render", "request", "rpc", "workload"} {
		used = append(used, words(t, "../"+folder)...)
	}
	for _, token := range documentedTokens(t) {
		if token != "cancelled" && !slices.Contains(used, token) {
			t.Errorf("docs/errors.md explains %s, which nothing returns", token)
		}
	}
}

// documentedTokens returns the second column of docs/errors.md.
func documentedTokens(t *testing.T) []string {
	t.Helper()
	data, err := os.ReadFile("../docs/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	var tokens []string
	for line := range strings.Lines(string(data)) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 || !strings.Contains(cells[2], "`") {
			continue
		}
		for _, m := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(cells[2], -1) {
			if slices.Contains(tokens, m[1]) {
				t.Errorf("docs/errors.md explains %s twice", m[1])
			}
			tokens = append(tokens, m[1])
		}
	}
	if len(tokens) < 40 {
		t.Fatalf("docs/errors.md has %d tokens", len(tokens))
	}
	return tokens
}

// words returns the string literals of a folder's code that have the form of a
// token.
func words(t *testing.T, folder string) []string {
	t.Helper()
	files, err := filepath.Glob(folder + "/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has no code (%v)", folder, err)
	}
	var out []string
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
				if text, err := strconv.Unquote(literal.Value); err == nil && snakeCase.MatchString(text) {
					out = append(out, text)
				}
			}
			return true
		})
	}
	return out
}
