package layers_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRecipes: what docs/customising.md shows is what the golden cases test.
func TestRecipes(t *testing.T) {
	doc, err := os.ReadFile("../docs/customising.md")
	if err != nil {
		t.Fatal(err)
	}
	recipes, err := filepath.Glob("../testdata/cases/recipe-*/layers/*.yaml")
	if err != nil || len(recipes) < 9 {
		t.Fatalf("the recipes are %v (%v)", recipes, err)
	}
	for _, file := range recipes {
		layer, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(doc), "```yaml\n"+string(layer)+"```\n") {
			t.Errorf("docs/customising.md does not show %s as it is", file)
		}
	}
}
