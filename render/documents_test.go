package render

import (
	"fmt"
	"strings"
	"testing"
)

// TestDocumentsAreBounded parses ever new documents: those that are kept do not
// grow with their number, and all are read right.
func TestDocumentsAreBounded(t *testing.T) {
	for name, c := range map[string]struct{ size, documents int }{
		"small ones":     {20, 2000},
		"large ones":     {60 << 10, 200},
		"too large":      {65 << 10, 10},
		"of all kinds":   {0, 300},
		"much too large": {1 << 20, 3},
	} {
		t.Run(name, func(t *testing.T) {
			var d documents
			most := 0
			for i := range c.documents {
				size := c.size
				if size == 0 {
					size = i * i
				}
				text := fmt.Sprintf("a: b%d # %s", i, strings.Repeat("x", size))
				doc, err := d.parse(text)
				if err != nil || doc.roots[0].Content[1].Value != fmt.Sprintf("b%d", i) {
					t.Fatalf("document %d is read as %v (%v)", i, doc, err)
				}
				total := 0
				for kept := range d.byText {
					if total += len(kept); len(kept) > 64<<10 {
						t.Fatalf("one of %d bytes is kept", len(kept))
					}
				}
				if total != d.bytes {
					t.Fatalf("it counts %d bytes of %d", d.bytes, total)
				}
				if len(d.byText) > 256 || total > 2<<20 {
					t.Fatalf("after %d, %d of %d bytes are kept", i+1, len(d.byText), total)
				}
				most = max(most, len(d.byText))
			}
			if (most == 0) != (c.size > 64<<10) {
				t.Errorf("%d were kept at most", most)
			}
		})
	}
}

// TestDocumentsAreKept: one that is there is not parsed again, also if two
// renders parse it at once.
func TestDocumentsAreKept(t *testing.T) {
	var d documents
	first, _ := d.parse("a: b")
	d.keep("a: b", &document{})
	if second, _ := d.parse("a: b"); second != first || d.bytes != len("a: b") {
		t.Errorf("it is parsed again, or counted twice: %d bytes", d.bytes)
	}
}
