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
// maps by their json tags.
func plain(v any) (any, error) {
	// The types that requests are made of, without reflection.
	switch v := v.(type) {
	case nil:
		return nil, nil
	case string:
		return v, nil
	case text:
		return string(v), nil
	case bool:
		return v, nil
	case int64:
		return v, nil
	case float64:
		return v, nil
	case encoded:
		return plain(v.value)
	case []string:
		return plainSlice(v, func(s string) (any, error) { return s, nil })
	case []any:
		return plainSlice(v, plain)
	case []EnvVar:
		return plainSlice(v, func(e EnvVar) (any, error) {
			return map[string]any{"name": e.Name, "value": e.Value}, nil
		})
	case map[string]string:
		return plainMap(v, func(s string) (any, error) { return s, nil })
	case map[string]any:
		return plainMap(v, plain)
	}
	return reflected(reflect.ValueOf(v))
}

func plainSlice[T any](in []T, convert func(T) (any, error)) (any, error) {
	out := make([]any, len(in))
	for i, v := range in {
		var err error
		if out[i], err = convert(v); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func plainMap[T any](in map[string]T, convert func(T) (any, error)) (any, error) {
	out := make(map[string]any, len(in))
	for k, v := range in {
		var err error
		if out[k], err = convert(v); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// reflected is plain for the types that it does not know.
func reflected(v reflect.Value) (any, error) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return nil, nil
		}
		return plain(v.Elem().Interface())
	case reflect.String:
		return v.String(), nil
	case reflect.Bool:
		return v.Bool(), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return v.Int(), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32:
		return int64(v.Uint()), nil
	case reflect.Float32, reflect.Float64:
		return v.Float(), nil
	case reflect.Slice, reflect.Array:
		out := make([]any, v.Len())
		for i := range out {
			var err error
			if out[i], err = plain(v.Index(i).Interface()); err != nil {
				return nil, err
			}
		}
		return out, nil
	case reflect.Map:
		return reflectedMap(v)
	case reflect.Struct:
		return reflectedStruct(v)
	}
	return nil, fmt.Errorf("a value of type %s cannot stand in a manifest", v.Type())
}

func reflectedMap(v reflect.Value) (any, error) {
	if v.Type().Key().Kind() != reflect.String {
		return nil, fmt.Errorf("a map with keys of type %s cannot stand in a manifest", v.Type().Key())
	}
	out := make(map[string]any, v.Len())
	for it := v.MapRange(); it.Next(); {
		value, err := plain(it.Value().Interface())
		if err != nil {
			return nil, err
		}
		out[it.Key().String()] = value
	}
	return out, nil
}

func reflectedStruct(v reflect.Value) (any, error) {
	out := make(map[string]any, v.NumField())
	for i := range v.NumField() {
		name, options, tagged := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if name == "" || (tagged && options == "omitempty" && v.Field(i).IsZero()) {
			continue
		}
		value, err := plain(v.Field(i).Interface())
		if err != nil {
			return nil, err
		}
		out[name] = value
	}
	return out, nil
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
		return strconv.FormatFloat(v, 'g', -1, 64), nil
	case nil:
		return "", fmt.Errorf("a value is missing inside a string")
	}
	return "", fmt.Errorf("a list or a map cannot stand inside a string; use toJson and quote for its JSON")
}

func jsonText(v any) (string, error) {
	p, err := plain(v)
	if err != nil {
		return "", err
	}
	b, err := json.Marshal(p)
	if err != nil {
		return "", fmt.Errorf("encoding a value as JSON: %w", err)
	}
	return string(b), nil
}
