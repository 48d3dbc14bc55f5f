package requesttest

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// ReplaceStrings replaces every string of m, keys of maps and bytes in maps too,
// by what replace returns for it. It goes in the order of the fields, and of the keys of a map.
func ReplaceStrings(m proto.Message, replace func(path, old string) string) {
	replaceIn("", m.ProtoReflect(), replace)
}

func replaceIn(path string, m protoreflect.Message, replace func(path, old string) string) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		name := path + string(f.Name())
		switch {
		case f.IsMap():
			replaceInMap(name, f, m.Get(f).Map(), replace)
		case f.IsList() && f.Message() != nil:
			for j := range m.Get(f).List().Len() {
				replaceIn(fmt.Sprintf("%s[%d].", name, j), m.Get(f).List().Get(j).Message(), replace)
			}
		case f.IsList() && f.Kind() == protoreflect.StringKind:
			for j := range m.Get(f).List().Len() {
				list := m.Mutable(f).List()
				list.Set(j, protoreflect.ValueOfString(replace(fmt.Sprintf("%s[%d]", name, j), list.Get(j).String())))
			}
		case f.Message() != nil && m.Has(f):
			replaceIn(name+".", m.Get(f).Message(), replace)
		case f.Kind() == protoreflect.StringKind && f.Message() == nil && !f.IsList():
			m.Set(f, protoreflect.ValueOfString(replace(name, m.Get(f).String())))
		}
	}
}

func replaceInMap(name string, f protoreflect.FieldDescriptor, entries protoreflect.Map, replace func(path, old string) string) {
	old := map[string]protoreflect.Value{}
	var keys []string
	entries.Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
		old[k.String()] = v
		keys = append(keys, k.String())
		return true
	})
	slices.Sort(keys)
	for _, k := range keys {
		entries.Clear(protoreflect.ValueOfString(k).MapKey())
	}
	for _, k := range keys {
		v := old[k]
		switch f.MapValue().Kind() {
		case protoreflect.StringKind:
			v = protoreflect.ValueOfString(replace(name+"["+k+"]", v.String()))
		case protoreflect.BytesKind:
			v = protoreflect.ValueOfBytes([]byte(replace(name+"["+k+"]", string(v.Bytes()))))
		default:
		}
		entries.Set(protoreflect.ValueOfString(replace(name+" key "+k, k)).MapKey(), v)
	}
}

// Bytes gives out a fuzzer's input piece by piece, and zeros at its end.
type Bytes []byte

// Byte returns the next byte.
func (b *Bytes) Byte() byte {
	if len(*b) == 0 {
		return 0
	}
	first := (*b)[0]
	*b = (*b)[1:]
	return first
}

// String returns the next string, whose length comes first.
func (b *Bytes) String() string {
	n := min(int(b.Byte()), len(*b))
	s := string((*b)[:n])
	*b = (*b)[n:]
	return s
}
