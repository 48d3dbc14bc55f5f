package render

import (
	"fmt"
	"regexp"
	"strings"
)

// unbounded matches the verbs for which fmt does not call Format: the one
// prints addresses, the other is for errors.
var unbounded = regexp.MustCompile(`%[-+# 0-9.*\[\]]*[pw]`)

// printf is fmt.Sprintf within the budget.
func (b *budget) printf(format string, args ...any) (string, error) {
	if unbounded.MatchString(strings.ReplaceAll(format, "%%", "")) {
		return "", problem("printf has no %p and no %w")
	}
	room := maxOutput - len(format)
	operands := make([]any, len(args))
	for i, a := range args {
		p, err := b.plain(a)
		if err != nil {
			return "", err
		}
		operands[i] = operand{value: p, room: &room}
	}
	out := fmt.Sprintf(format, operands...)
	if room < 0 {
		return "", tooMuchOutput
	}
	return out, b.grow(len(out))
}

// operand is an argument of printf that prints no more than there is room for:
// a width is an order of magnitude a digit, and each verb can name the same
// argument.
type operand struct {
	value any
	room  *int
}

// Format prints o for one verb.
func (o operand) Format(s fmt.State, verb rune) {
	if *o.room < 0 {
		return
	}
	text := fmt.Sprintf(fmt.FormatString(s, verb), o.value)
	if *o.room -= len(text); *o.room >= 0 {
		_, _ = s.Write([]byte(text)) // into a buffer of fmt
	}
}
