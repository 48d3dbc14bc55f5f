package logs

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

const stamp = "2024-05-06T07:08:09.123456789Z "

// TestLines cuts an answer into lines, and takes their times off.
func TestLines(t *testing.T) {
	long := strings.Repeat("x", maxPiece-len(stamp))
	for name, c := range map[string]struct {
		text  string
		since bool
		want  []string
		err   error
	}{
		"nothing":               {"", false, nil, io.EOF},
		"lines":                 {stamp + "a\n" + stamp + "\n" + stamp + "b c\n", false, []string{"<a\n>", "<\n>", "<b c\n>"}, io.EOF},
		"no end":                {stamp + "a\n" + stamp + "b", false, []string{"<a\n>", "<b|"}, io.EOF},
		"nothing in the end":    {stamp, false, []string{"<|"}, io.EOF},
		"another zone":          {"2024-05-06T07:08:09.123456789+02:00 a\n", false, []string{"<a\n>"}, io.EOF},
		"a short time":          {"2024-05-06T07:08:09Z a\n", false, []string{"<a\n>"}, io.EOF},
		"as long as a piece":    {stamp + long[1:] + "\n", false, []string{"<" + long[1:] + "\n>"}, io.EOF},
		"longer":                {stamp + long + "\n" + stamp + "b\n", false, []string{"<" + long, "\n>", "<b\n>"}, io.EOF},
		"much longer":           {stamp + long + long + long + "\n", false, []string{"<" + long, long + stamp0(31), long[31:] + "\n>"}, io.EOF},
		"longer without an end": {stamp + long + "y", false, []string{"<" + long, "y|"}, io.EOF},
		"a kubelet's fault":     {stamp + "a\nunable to read", false, []string{"<a\n>"}, errNoTime},
		"only a fault":          {"unable to read", true, nil, errNoTime},
		"no inotify":            {stamp + "a\nfailed to create fsnotify watcher: too many open files", false, []string{"<a\n>"}, errNoFollow},
		"a rest":                {"of a line\n" + stamp + "b\n", true, []string{"<b\n>"}, io.EOF},
		"a long rest":           {long + long + long + "\n" + stamp + "b\n", true, []string{"<b\n>"}, io.EOF},
		"only a rest":           {"of a line\n", true, nil, io.EOF},
		"a rest, not asked for": {"of a line\n" + stamp + "b\n", false, nil, errNoTime},
		"a rest in the middle":  {stamp + "a\nrest\n" + stamp + "b\n", true, []string{"<a\n>"}, errNoTime},
	} {
		t.Run(name, func(t *testing.T) {
			for _, in := range []io.Reader{strings.NewReader(c.text), iotest.OneByteReader(strings.NewReader(c.text)), iotest.DataErrReader(strings.NewReader(c.text))} {
				got, err := pieces(newLines(in, c.since))
				if diff := cmp.Diff(c.want, got); diff != "" || !errors.Is(err, c.err) {
					t.Errorf("it ends with %v (-want +got):\n%.2000s", err, diff)
				}
			}
		})
	}
}

// stamp0 is what of the text of a long line takes the place of a time.
func stamp0(length int) string { return strings.Repeat("x", length) }

// TestBrokenConnection: what it leaves of a line is not a line.
func TestBrokenConnection(t *testing.T) {
	broken := errors.New("broken")
	in := io.MultiReader(strings.NewReader(stamp+"a\n"+stamp+"b"), iotest.ErrReader(broken))
	got, err := pieces(newLines(in, false))
	if diff := cmp.Diff([]string{"<a\n>"}, got); diff != "" || !errors.Is(err, broken) {
		t.Errorf("it ends with %v (-want +got):\n%s", err, diff)
	}
}

// pieces shows all pieces: < and > for the ends of a line, | for the end of the
// log.
func pieces(l *lines) (out []string, err error) {
	for {
		p, err := l.next()
		if err != nil {
			return out, err
		}
		text := string(p.data)
		if p.first {
			text = "<" + text
		}
		if p.last {
			text += ">"
		}
		if p.cut {
			text += "|"
		}
		if p.at.Nanosecond() != 123456789 && p.at.Nanosecond() != 0 || p.at.Year() != 2024 {
			text += p.at.String()
		}
		out = append(out, text)
	}
}

func BenchmarkLines(b *testing.B) {
	line := stamp + strings.Repeat("x", 90) + "\n"
	b.SetBytes(int64(len(line)))
	l, m := newLines(endless(line), false), newMemory()
	for b.Loop() {
		p, err := l.next()
		if err != nil {
			b.Fatal(err)
		}
		m.sent(m.entry(p))
	}
}

// endless reads a line over and over.
func endless(line string) io.Reader { return &repeated{text: strings.Repeat(line, 100)} }

type repeated struct {
	text string
	at   int
}

func (r *repeated) Read(p []byte) (int, error) {
	n := copy(p, r.text[r.at:])
	r.at = (r.at + n) % len(r.text)
	return n, nil
}
