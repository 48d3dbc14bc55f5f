package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-viper/mapstructure/v2"
	"github.com/knadh/koanf/parsers/yaml"
	envprovider "github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/providers/file"
	"github.com/knadh/koanf/providers/posflag"
	"github.com/knadh/koanf/providers/structs"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"
)

// Sources says where settings come from beside the defaults.
type Sources struct {
	// File is a YAML file; empty means none.
	File string
	// Environ is the environment as os.Environ returns it.
	Environ []string
	// Flags are those that AddFlags made; nil means none.
	Flags *pflag.FlagSet
}

// AddFlags gives flags a flag for each setting that may have one: grpc.address
// becomes --grpc-address.
func AddFlags(flags *pflag.FlagSet) {
	for _, s := range settings() {
		if !s.secret {
			flags.String(flagName(s.key), "", s.usage+" ["+s.env+"]")
		}
	}
}

func flagName(key string) string { return strings.NewReplacer(".", "-", "_", "-").Replace(key) }

// Load reads all sources and returns the checked settings. An error names the
// setting and where it was made.
func Load(from Sources) (Config, error) {
	k := koanf.New(".")
	if err := k.Load(structs.Provider(Default(), "koanf"), nil); err != nil {
		return Config{}, fmt.Errorf("reading the defaults: %w", err)
	}
	if from.File != "" {
		if err := k.Load(file.Provider(from.File), yaml.Parser()); err != nil {
			return Config{}, fmt.Errorf("reading %s: %w", from.File, err)
		}
	}
	if err := loadEnvironment(k, from.Environ); err != nil {
		return Config{}, err
	}
	if from.Flags != nil {
		if err := loadFlags(k, from.Flags); err != nil {
			return Config{}, err
		}
	}
	if err := unknownKeys(k, from.File); err != nil {
		return Config{}, err
	}
	c, err := decode(k)
	if err != nil {
		return Config{}, err
	}
	return c, c.check()
}

func loadEnvironment(k *koanf.Koanf, environ []string) error {
	byEnv := map[string]string{}
	for _, s := range settings() {
		byEnv[s.env] = s.key
	}
	var unknown []string
	provider := envprovider.Provider(".", envprovider.Opt{
		EnvironFunc: func() []string { return environ },
		TransformFunc: func(name, value string) (string, any) {
			key, known := byEnv[name]
			if !known && strings.HasPrefix(name, envPrefix) {
				unknown = append(unknown, name)
			}
			if !known || value == "" {
				return "", nil // koanf leaves out an empty key
			}
			return key, structured(key, value)
		},
	})
	if err := k.Load(provider, nil); err != nil {
		return fmt.Errorf("reading the environment: %w", err)
	}
	if len(unknown) > 0 {
		slices.Sort(unknown)
		return fmt.Errorf("unknown environment variables %s; k8s-runner serve --help lists the known ones", strings.Join(unknown, ", "))
	}
	return nil
}

func loadFlags(k *koanf.Koanf, flags *pflag.FlagSet) error {
	byFlag := map[string]string{}
	for _, s := range settings() {
		byFlag[flagName(s.key)] = s.key
	}
	provider := posflag.ProviderWithFlag(flags, ".", k, func(f *pflag.Flag) (string, any) {
		key, ours := byFlag[f.Name]
		if !ours || !f.Changed {
			return "", nil
		}
		return key, structured(key, f.Value.String())
	})
	if err := k.Load(provider, nil); err != nil {
		return fmt.Errorf("reading the flags: %w", err)
	}
	return nil
}

// structured reads the one setting that is not a scalar. What is not JSON
// stays text, which decode then refuses by the setting's name.
func structured(key, value string) any {
	var m map[string]any
	if key == "capabilities.implementations" && json.Unmarshal([]byte(value), &m) == nil {
		return m
	}
	return value
}

// unknownKeys refuses keys of the file that are no settings.
func unknownKeys(k *koanf.Koanf, path string) error {
	var unknown []string
	for _, key := range k.Keys() {
		known := slices.ContainsFunc(settings(), func(s setting) bool {
			return s.key == key || strings.HasPrefix(key, s.key+".")
		})
		if !known {
			unknown = append(unknown, key)
		}
	}
	if len(unknown) > 0 {
		return fmt.Errorf("%s: unknown settings %s; k8s-runner serve --print-config shows the known ones", path, strings.Join(unknown, ", "))
	}
	return nil
}

// decode turns text into the types of Config.
func decode(k *koanf.Koanf) (Config, error) {
	var c Config
	err := k.UnmarshalWithConf("", &c, koanf.UnmarshalConf{DecoderConfig: &mapstructure.DecoderConfig{
		DecodeHook:       mapstructure.StringToTimeDurationHookFunc(),
		ErrorUnused:      true,
		WeaklyTypedInput: true,
		Result:           &c,
		TagName:          "koanf",
	}})
	if err != nil {
		return Config{}, explain(err)
	}
	return c, nil
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
		case errors.As(err, &wrong):
			problems = append(problems, named(wrong.Name(), "has a value of the wrong type"))
		case errors.As(err, &joined):
			for _, e := range joined.Unwrap() {
				walk(e)
			}
		default:
			problems = append(problems, err)
		}
	}
	walk(err)
	return errors.Join(problems...)
}

// named is an error about the setting key, with all its names.
func named(key, problem string) error {
	for _, s := range settings() {
		if s.key == key {
			return fmt.Errorf("%s (environment %s) %s", key, s.env, problem)
		}
	}
	return fmt.Errorf("%s %s", key, problem)
}
