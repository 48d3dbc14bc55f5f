package render

import (
	"fmt"
	"sort"
	"strconv"
	"strings"
)

// place says where text of the output came from.
type place struct {
	// from is the first line of the output that begins with this text.
	from int
	// output is the line of the output where the text starts, line that of
	// the file.
	output, line int
	file         string
	// stays is true if all lines of the text came from that one.
	stays bool
}

// unmark takes the marks out of a template's output and returns where its
// lines came from, in their order.
func unmark(output string) (string, []place) {
	var clean strings.Builder
	clean.Grow(len(output))
	var places []place
	line := 1
	blank := true // there is only white space in this line so far
	for {
		before, after, found := strings.Cut(output, markStart)
		clean.WriteString(before)
		if i := strings.LastIndexByte(before, '\n'); i >= 0 {
			line += strings.Count(before, "\n")
			blank, before = true, before[i:]
		}
		blank = blank && strings.TrimSpace(before) == ""
		if !found {
			return clean.String(), places
		}
		label, rest, _ := strings.Cut(after, markEnd)
		p := place{from: line, output: line}
		if !blank {
			p.from++
		}
		colon := strings.LastIndexByte(label, ':')
		p.file = label[:max(colon, 0)]
		var number string
		var err error
		number, p.stays = strings.CutSuffix(label[colon+1:], stays)
		if p.line, err = strconv.Atoi(number); err == nil {
			places = append(places, p)
		}
		output = rest
	}
}

// at returns the file and line of the template that printed the start of a
// line of output.
func at(places []place, line int) (where string, known bool) {
	i := sort.Search(len(places), func(i int) bool { return places[i].from > line }) - 1
	if i < 0 {
		return "", false
	}
	p := places[i]
	if p.stays {
		return fmt.Sprintf("%s:%d", p.file, p.line), true
	}
	return fmt.Sprintf("%s:%d", p.file, p.line+line-p.output), true
}
