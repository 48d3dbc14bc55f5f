package render

import (
	"strconv"
	"strings"
)

// Characters of Unicode's private use area frame slots and marks. A template
// that holds one is refused, and no value is ever printed, so they cannot be
// forged.
const (
	slotStart = "\uE000"
	slotEnd   = "\uE001"
	markStart = "\uE002"
	markEnd   = "\uE003"
	reserved  = slotStart + slotEnd + markStart + markEnd
)

// fill puts the values into the slots of s.
func fill(s string, slots []any) (string, error) {
	var out strings.Builder
	for {
		before, after, found := strings.Cut(s, slotStart)
		out.WriteString(before)
		if !found {
			return out.String(), nil
		}
		number, rest, _ := strings.Cut(after, slotEnd)
		i, err := strconv.Atoi(number)
		if err != nil || i < 0 || i >= len(slots) {
			return "", problem("a value was cut apart")
		}
		value, err := scalarText(slots[i])
		if err != nil {
			return "", err
		}
		out.WriteString(value)
		s = rest
	}
}

// wholeSlot reports whether s is nothing but one slot.
func wholeSlot(s string) (index int, whole bool) {
	number, ok := strings.CutPrefix(s, slotStart)
	if !ok {
		return 0, false
	}
	if number, ok = strings.CutSuffix(number, slotEnd); !ok {
		return 0, false
	}
	index, err := strconv.Atoi(number)
	return index, err == nil && index >= 0
}
