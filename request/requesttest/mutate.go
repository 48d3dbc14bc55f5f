package requesttest

import (
	"fmt"
	"iter"
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// A Change changes one field of one copy of a message.
type Change struct {
	// Path names the field and the change.
	Path string
	// Message is the changed copy.
	Message proto.Message
}

// Changes yields copies of m that differ from it, and from each other, in one
// thing: a scalar, an item more or less of a list, an entry of a map, a message
// that is not there. It goes by the descriptors, so it forgets no field.
func Changes(m proto.Message) iter.Seq[Change] {
	return func(yield func(Change) bool) {
		w := &walker{root: m, yield: yield}
		w.message("", m.ProtoReflect(), func(copy protoreflect.Message) protoreflect.Message { return copy })
	}
}

// find returns the part of a copy of the root that a walker has come to.
type find func(root protoreflect.Message) protoreflect.Message

type walker struct {
	root  proto.Message
	yield func(Change) bool
	done  bool
}

// change yields a copy of the root whose part is edited.
func (w *walker) change(path string, at find, edit func(part protoreflect.Message)) {
	if w.done {
		return
	}
	copied := proto.Clone(w.root)
	edit(at(copied.ProtoReflect()))
	w.done = !w.yield(Change{path, copied})
}

func (w *walker) message(path string, m protoreflect.Message, at find) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		name := path + string(f.Name())
		switch {
		case f.IsMap():
			w.mapping(name, f, m, at)
		case f.IsList():
			w.list(name, f, m, at)
		case f.Message() != nil && m.Has(f):
			w.change(name+" removed", at, func(part protoreflect.Message) { part.Clear(f) })
			w.message(name+".", m.Get(f).Message(), func(root protoreflect.Message) protoreflect.Message {
				return at(root).Mutable(f).Message()
			})
		case f.Message() == nil:
			for j, v := range Others(f, m.Get(f)) {
				w.change(fmt.Sprintf("%s changed (%d)", name, j), at, func(part protoreflect.Message) { part.Set(f, v) })
			}
		}
	}
}

func (w *walker) list(name string, f protoreflect.FieldDescriptor, m protoreflect.Message, at find) {
	items := m.Get(f).List()
	for i := range items.Len() {
		item := fmt.Sprintf("%s[%d]", name, i)
		w.change(item+" removed", at, func(part protoreflect.Message) { remove(part.Mutable(f).List(), i) })
		if f.Message() != nil {
			w.message(item+".", items.Get(i).Message(), func(root protoreflect.Message) protoreflect.Message {
				return at(root).Mutable(f).List().Get(i).Message()
			})
			continue
		}
		for j, v := range Others(f, items.Get(i)) {
			w.change(fmt.Sprintf("%s changed (%d)", item, j), at, func(part protoreflect.Message) { part.Mutable(f).List().Set(i, v) })
		}
	}
	if items.Len() > 1 {
		w.change(name+" swapped", at, func(part protoreflect.Message) {
			list := part.Mutable(f).List()
			first, second := list.Get(0), list.Get(1)
			list.Set(0, second)
			list.Set(1, first)
		})
	}
}

func remove(list protoreflect.List, i int) {
	for ; i+1 < list.Len(); i++ {
		list.Set(i, list.Get(i+1))
	}
	list.Truncate(list.Len() - 1)
}

func (w *walker) mapping(name string, f protoreflect.FieldDescriptor, m protoreflect.Message, at find) {
	entries := m.Get(f).Map()
	var keys []protoreflect.MapKey
	entries.Range(func(k protoreflect.MapKey, _ protoreflect.Value) bool {
		keys = append(keys, k)
		return true
	})
	slices.SortFunc(keys, func(a, b protoreflect.MapKey) int {
		if a.String() < b.String() {
			return -1
		}
		return 1
	})
	for _, k := range keys {
		entry := fmt.Sprintf("%s[%s]", name, k.String())
		v := entries.Get(k)
		w.change(entry+" removed", at, func(part protoreflect.Message) { part.Mutable(f).Map().Clear(k) })
		for j, other := range Others(f.MapValue(), v) {
			w.change(fmt.Sprintf("%s changed (%d)", entry, j), at, func(part protoreflect.Message) { part.Mutable(f).Map().Set(k, other) })
		}
		for j, other := range Others(f.MapKey(), k.Value()) {
			w.change(fmt.Sprintf("%s renamed (%d)", entry, j), at, func(part protoreflect.Message) {
				part.Mutable(f).Map().Clear(k)
				part.Mutable(f).Map().Set(other.MapKey(), v)
			})
		}
	}
}

// Others returns values that differ from v, in several ways, since not all of
// them are valid everywhere.
func Others(f protoreflect.FieldDescriptor, v protoreflect.Value) []protoreflect.Value {
	switch f.Kind() {
	case protoreflect.StringKind:
		s := v.String()
		// Among them are valid identifiers, addresses, numbers and volume names.
		candidates := []string{s + "1", "1" + s, s[:max(0, len(s)-1)] + "b", "false", "work", "data"}
		seen := map[string]bool{s: true}
		var others []protoreflect.Value
		for _, c := range candidates {
			if !seen[c] {
				others = append(others, protoreflect.ValueOfString(c))
			}
			seen[c] = true
		}
		return others
	case protoreflect.BytesKind:
		return []protoreflect.Value{protoreflect.ValueOfBytes(append(slices.Clone(v.Bytes()), 'x'))}
	case protoreflect.BoolKind:
		return []protoreflect.Value{protoreflect.ValueOfBool(!v.Bool())}
	case protoreflect.EnumKind:
		return []protoreflect.Value{protoreflect.ValueOfEnum(v.Enum()%2 + 1)}
	}
	panic("requesttest: a kind of field that no request had before: " + f.Kind().String())
}
