package render

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// plain copies v into the types that unstructured objects are made of:
// map[string]any, []any, string, bool, int64, float64 and nil. Structs become
// maps by their json tags. It pays for each value.
func (b *budget) plain(v any) (any, error) {
	if err := b.spend(valueWork); err != nil {
		return nil, err
	}
	// The types that requests are made of, without reflection.
	switch v := v.(type) {
	case nil:
		return nil, nil
	case string:
		return v, b.spend(len(v))
	case bool, int64, float64:
		return v, nil
	case []string:
		return plainSlice(b, v, b.plainString)
	case []any:
		return plainSlice(b, v, b.plain)
	case []EnvVar:
		return plainSlice(b, v, func(e EnvVar) (any, error) {
			return map[string]any{"name": e.Name, "value": e.Value}, b.spend(2*valueWork + len(e.Name) + len(e.Value))
		})
	case []Mount:
		return plainSlice(b, v, b.plainMount)
	case map[string]string:
		return plainMap(b, v, b.plainString)
	case map[string]any:
		return plainMap(b, v, b.plain)
	}
	return b.reflected(reflect.ValueOf(v))
}

func (b *budget) plainString(s string) (any, error) { return s, b.spend(valueWork + len(s)) }

func (b *budget) plainMount(m Mount) (any, error) {
	out := map[string]any{"name": m.Name, "mountPath": m.MountPath}
	if m.SubPath != "" {
		out["subPath"] = m.SubPath
	}
	if m.ReadOnly {
		out["readOnly"] = true
	}
	return out, b.spend(4*valueWork + len(m.Name) + len(m.MountPath) + len(m.SubPath))
}

// nest counts one level of values within values; the caller ends it.
func (b *budget) nest() error {
	if b.nesting++; b.nesting > maxDepth {
		return tooDeep
	}
	return b.spend(nestWork)
}

func plainSlice[T any](b *budget, in []T, convert func(T) (any, error)) (any, error) {
	if err := b.nest(); err != nil {
		return nil, err
	}
	out := make([]any, len(in))
	for i, v := range in {
		var err error
		if out[i], err = convert(v); err != nil {
			return nil, err
		}
	}
	b.nesting--
	return out, nil
}

func plainMap[T any](b *budget, in map[string]T, convert func(T) (any, error)) (any, error) {
	if err := b.nest(); err != nil {
		return nil, err
	}
	out := make(map[string]any, len(in))
	for k, v := range in {
		var err error
		if out[k], err = convert(v); err != nil {
			return nil, err
		}
		if err := b.spend(len(k)); err != nil {
			return nil, err
		}
	}
	b.nesting--
	return out, nil
}

// reflected is plain for the types that it does not know.
func (b *budget) reflected(v reflect.Value) (any, error) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return nil, nil
		}
		return b.plain(v.Elem().Interface())
	case reflect.String:
		return b.plainString(v.String())
	case reflect.Bool:
		return v.Bool(), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return v.Int(), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32:
		return int64(v.Uint()), nil //nolint:gosec // 32 bits at most
	case reflect.Float32, reflect.Float64:
		return v.Float(), nil
	case reflect.Slice, reflect.Array:
		items := make([]any, v.Len())
		for i := range items {
			items[i] = v.Index(i).Interface()
		}
		return plainSlice(b, items, b.plain)
	case reflect.Map:
		return b.reflectedMap(v)
	case reflect.Struct:
		return b.reflectedStruct(v)
	}
	return nil, problem(fmt.Sprintf("a value of type %s cannot stand in a manifest", v.Type()))
}

func (b *budget) reflectedMap(v reflect.Value) (any, error) {
	if v.Type().Key().Kind() != reflect.String {
		return nil, problem(fmt.Sprintf("a map with keys of type %s cannot stand in a manifest", v.Type().Key()))
	}
	items := make(map[string]any, v.Len())
	for it := v.MapRange(); it.Next(); {
		items[it.Key().String()] = it.Value().Interface()
	}
	return plainMap(b, items, b.plain)
}

func (b *budget) reflectedStruct(v reflect.Value) (any, error) {
	items := make(map[string]any, v.NumField())
	for i := range v.NumField() {
		name, options, tagged := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if name == "" || (tagged && options == "omitempty" && v.Field(i).IsZero()) {
			continue
		}
		items[name] = v.Field(i).Interface()
	}
	return plainMap(b, items, b.plain)
}

// scalarText is the text of a plain scalar, as it appears inside a string.
func scalarText(v any) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case bool:
		return strconv.FormatBool(v), nil
	case int64:
		return strconv.FormatInt(v, 10), nil
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), nil
	case nil:
		return "", problem("a value is missing inside a string")
	}
	return "", problem("a list or a map cannot stand inside a string; use toJson and quote for its JSON")
}

// jsonText is the JSON of v, its keys sorted.
func (b *budget) jsonText(v any) (string, error) {
	p, err := b.plain(v)
	if err != nil {
		return "", err
	}
	out, err := json.Marshal(p)
	if err != nil {
		return "", problem("a value has no JSON, such as a number that is none")
	}
	return string(out), b.grow(len(out))
}
