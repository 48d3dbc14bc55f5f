package render

import (
	"encoding/json"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/agynio/k8s-runner/quantity"
)

// shape is the form of a Kubernetes type in JSON. A manifest that fits decodes
// strictly; that it need not be decoded saves half the time of a render.
type shape struct {
	kind reflect.Kind
	// fields are those of a struct.
	fields map[string]*shape
	// item is what a list or a map holds, and a struct beside its fields: a
	// custom resource.
	item *shape
	// keys are the fields by which the entries of a struct's lists are told apart,
	// by the list's name.
	keys map[string]string
	// opaque is a type that decodes itself, such as a quantity.
	opaque reflect.Type
	name   string
}

// shapes makes the shape of each type once.
type shapes map[reflect.Type]*shape

func (known shapes) of(t reflect.Type) *shape {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if s := known[t]; s != nil {
		return s
	}
	s := &shape{kind: t.Kind(), name: t.Name()}
	known[t] = s
	_, decodesItself := reflect.New(t).Interface().(json.Unmarshaler)
	switch {
	case decodesItself, t == reflect.TypeFor[[]byte]():
		s.kind, s.opaque = reflect.Invalid, t
	case s.kind == reflect.Struct:
		s.fields, s.keys = map[string]*shape{}, map[string]string{}
		known.addFields(s, t)
	case s.kind == reflect.Slice, s.kind == reflect.Map:
		s.item = known.of(t.Elem())
	}
	return s
}

func (known shapes) addFields(s *shape, t reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name != "":
			s.fields[name] = known.of(f.Type)
			if key := f.Tag.Get("patchMergeKey"); key != "" {
				s.keys[name] = key
			}
		case f.Anonymous: // its fields stand among those of t
			known.addFields(s, f.Type)
		}
	}
}

// isCustom reports whether s is that of a custom resource.
func (s *shape) isCustom() bool { return s.kind == reflect.Struct && s.item != nil }

// misfits returns the parts of v that do not have shape s. It repeats no value.
func (s *shape) misfits(v any) []fault {
	if v == nil || s.fits(v) {
		return nil
	}
	switch v := v.(type) {
	case directive:
		return []fault{{what: "is for Kubernetes' own kinds: a patch of another one is merged by RFC 7386"}}
	case map[string]any:
		if s.kind == reflect.Struct || s.kind == reflect.Map || s.kind == reflect.Interface {
			return s.misfitsOfMap(v)
		}
	case []any:
		if entry := s.entry(); entry != nil {
			var faults []fault
			for i, item := range v {
				faults = append(faults, below(i, entry.misfits(item))...)
			}
			return faults
		}
	}
	what := "must be " + s.wanted() + ", not " + kindOf(v)
	if s.kind == reflect.String && kindOf(v) != "a list" && kindOf(v) != "a mapping" {
		what += "; put it in quotes"
	}
	return []fault{{what: what}}
}

func (s *shape) misfitsOfMap(m map[string]any) []fault {
	var faults []fault
	for _, k := range slices.Sorted(maps.Keys(m)) {
		switch part := s.part(k); {
		case part == nil:
			faults = append(faults, fault{fieldPath{freeKey(k)}, "is an unknown field"})
		case s.fields[k] == nil:
			faults = append(faults, below(freeKey(k), part.misfits(m[k]))...)
		default:
			faults = append(faults, below(k, part.misfits(m[k]))...)
		}
	}
	return faults
}

// part is the shape of a value in a map or a struct, nil if there is none.
func (s *shape) part(key string) *shape {
	switch {
	case s == nil, s.kind == reflect.Interface:
		return s
	case s.fields[key] != nil:
		return s.fields[key]
	case s.kind == reflect.Map, s.kind == reflect.Struct:
		return s.item
	}
	return nil
}

// entry is the shape of an entry of a list, nil if s is none.
func (s *shape) entry() *shape {
	switch {
	case s == nil, s.kind == reflect.Interface:
		return s
	case s.kind == reflect.Slice:
		return s.item
	}
	return nil
}

// fits reports whether v, and all in it, has shape s.
func (s *shape) fits(v any) bool {
	if s.opaque != nil {
		return v == nil || s.decodes(v)
	}
	switch v := v.(type) {
	case nil:
		return true
	case string:
		return s.kind == reflect.String || s.kind == reflect.Interface
	case bool:
		return s.kind == reflect.Bool || s.kind == reflect.Interface
	case int64:
		return s.holds(v)
	case float64:
		if s.kind == reflect.Interface {
			return !math.IsNaN(v) && !math.IsInf(v, 0) // which JSON does not have
		}
		return v == math.Trunc(v) && math.Abs(v) < 1<<53 && s.holds(int64(v))
	case []any:
		entry := s.entry()
		return entry != nil && !slices.ContainsFunc(v, func(item any) bool { return !entry.fits(item) })
	case map[string]any:
		if s.kind != reflect.Struct && s.kind != reflect.Map && s.kind != reflect.Interface {
			return false
		}
		for k, item := range v {
			if part := s.part(k); part == nil || !part.fits(item) {
				return false
			}
		}
		return true
	}
	return false
}

func (s *shape) holds(n int64) bool {
	switch s.kind {
	case reflect.Int, reflect.Int64, reflect.Float64, reflect.Interface:
		return true
	case reflect.Int32:
		return math.MinInt32 <= n && n <= math.MaxInt32
	}
	return false
}

func (s *shape) decodes(v any) bool {
	if text, ok := v.(string); ok && s.opaque == reflect.TypeFor[resource.Quantity]() {
		_, ok := quantity.Parse(text)
		return ok
	}
	data, err := json.Marshal(v)
	return err == nil && json.Unmarshal(data, reflect.New(s.opaque).Interface()) == nil
}

func (s *shape) wanted() string {
	if s.opaque == reflect.TypeFor[[]byte]() {
		return "base64"
	}
	switch s.kind {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int32, reflect.Int64:
		return "a whole number"
	case reflect.Struct, reflect.Map:
		return "a mapping"
	case reflect.Slice:
		return "a list"
	case reflect.Interface:
		return "a number of JSON"
	}
	return "a valid " + s.name
}

func kindOf(v any) string {
	switch v.(type) {
	case string:
		return "this string"
	case bool:
		return "a boolean"
	case []any:
		return "a list"
	case map[string]any:
		return "a mapping"
	}
	return "this number"
}
