package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/go-viper/mapstructure/v2"
	"github.com/knadh/koanf/v2"
)

// decode turns text into the types of Config.
func decode(k *koanf.Koanf) (Config, error) {
	var c Config
	err := k.UnmarshalWithConf("", &c, koanf.UnmarshalConf{DecoderConfig: &mapstructure.DecoderConfig{
		DecodeHook:  convert,
		ErrorUnused: true,
		Result:      &c,
		TagName:     "koanf",
	}})
	if err != nil {
		return Config{}, explain(err)
	}
	return c, nil
}

// convert reads text as what a setting is: the environment and flags know only
// text. What YAML took for another type is refused: a token 0123 would be 83.
func convert(from, to reflect.Value) (any, error) {
	text, isText := from.Interface().(string)
	switch {
	case to.Type() == reflect.TypeFor[time.Duration]():
		if isText {
			return time.ParseDuration(text)
		}
		if from.Type() != to.Type() {
			return nil, errors.New("a duration needs a unit")
		}
	case to.Type() == reflect.TypeFor[map[string]string]() && isText:
		var m map[string]string
		if err := json.Unmarshal([]byte(text), &m); err != nil || m == nil {
			return nil, errors.New("not a JSON object of strings")
		}
		return m, nil
	case to.Type() == reflect.TypeFor[[]string]() && isText:
		return items(text), nil
	case to.Kind() == reflect.Bool && isText:
		return strconv.ParseBool(text)
	case to.CanInt() && isText:
		return strconv.ParseInt(text, 10, 64)
	case to.CanInt() && from.CanFloat() && from.Float() != math.Trunc(from.Float()):
		return nil, errors.New("not a whole number")
	case to.CanFloat() && isText:
		return strconv.ParseFloat(text, 64)
	}
	return from.Interface(), nil
}

// items are those of a list, with commas between.
func items(text string) []string {
	list := []string{}
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			list = append(list, item)
		}
	}
	return list
}

// explain keeps the name of each wrong setting and leaves out its value, which
// may be secret.
func explain(err error) error {
	var problems []error
	var walk func(error)
	walk = func(err error) {
		var joined interface{ Unwrap() []error }
		var wrong *mapstructure.DecodeError
		switch {
		case errors.As(err, &joined):
			for _, e := range joined.Unwrap() {
				walk(e)
			}
		case errors.As(err, &wrong):
			problems = append(problems, named(wrong.Name(), "has a value of the wrong type"))
		default:
			problems = append(problems, errors.New("the settings cannot be read"))
		}
	}
	walk(err)
	return errors.Join(problems...)
}

// named is an error about the setting key, or an entry of it, with all its
// names.
func named(key, problem string) error {
	for _, s := range settings() {
		if s.key == key || strings.HasPrefix(key, s.key+"[") {
			return fmt.Errorf("%s (environment %s) %s", key, s.env, problem)
		}
	}
	return fmt.Errorf("%s %s", key, problem)
}
