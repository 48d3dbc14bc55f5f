package render

import (
	"fmt"
	"sort"
	"strconv"
	"strings"
)

// place says where the text came from that starts at a line of the output.
type place struct {
	output int
	file   string
	line   int
}

// unmark takes the marks out of a template's output and returns where its
// lines came from, in their order.
func unmark(output string) (string, []place) {
	var clean strings.Builder
	clean.Grow(len(output))
	var places []place
	line := 1
	for {
		before, after, found := strings.Cut(output, markStart)
		clean.WriteString(before)
		line += strings.Count(before, "\n")
		if !found {
			return clean.String(), places
		}
		label, rest, _ := strings.Cut(after, markEnd)
		colon := strings.LastIndexByte(label, ':')
		if number, err := strconv.Atoi(label[colon+1:]); err == nil {
			places = append(places, place{output: line, file: label[:colon], line: number})
		}
		output = rest
	}
}

// at returns the file and line of the template that printed a line of output.
func at(places []place, line int) string {
	i := sort.Search(len(places), func(i int) bool { return places[i].output > line }) - 1
	if i < 0 {
		return "output:" + strconv.Itoa(line)
	}
	// Of the marks on one line the first is where the line begins.
	for i > 0 && places[i-1].output == places[i].output {
		i--
	}
	p := places[i]
	return fmt.Sprintf("%s:%d", p.file, p.line+line-p.output)
}
