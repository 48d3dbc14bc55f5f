package config

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"

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
	// Text stands for a file called Name that has been read already.
	Text []byte
	Name string
	// Namespace is kube.namespace where no source has it, for use without a
	// cluster.
	Namespace string
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
// setting and where it was made, and never holds its value.
func Load(from Sources) (Config, error) {
	k := koanf.New(".")
	defaults := Default()
	defaults.Kube.Namespace = from.Namespace
	if err := k.Load(structs.Provider(defaults, "koanf"), nil); err != nil {
		return Config{}, fmt.Errorf("reading the defaults: %w", err)
	}
	for _, read := range [...]func(Sources) (*koanf.Koanf, error){readFile, readEnvironment, readFlags} {
		layer, err := read(from)
		if err != nil {
			return Config{}, err
		}
		if err := overlay(k, layer); err != nil {
			return Config{}, err
		}
	}
	c, err := decode(k)
	if err != nil {
		return Config{}, err
	}
	return c, c.check()
}

// overlay replaces each setting that layer has.
func overlay(k, layer *koanf.Koanf) error {
	for _, s := range settings() {
		if value := layer.Get(s.key); value != nil {
			if err := k.Set(s.key, value); err != nil {
				return named(s.key, "cannot be set")
			}
		}
	}
	return nil
}

func readFile(from Sources) (*koanf.Koanf, error) {
	k := koanf.New(".")
	var source koanf.Provider = text(from.Text)
	name := from.Name
	if from.File != "" {
		source, name = file.Provider(from.File), from.File
	}
	err := k.Load(source, yaml.Parser())
	var notRead *fs.PathError
	switch {
	case errors.As(err, &notRead):
		return nil, fmt.Errorf("reading the settings: %w", err)
	case err != nil:
		return nil, fmt.Errorf("reading %s: %s", name, withoutValues(err))
	}
	return k, unknownKeys(k, name)
}

// text is a koanf.Provider of what was read already.
type text []byte

// ReadBytes returns it.
func (t text) ReadBytes() ([]byte, error) { return t, nil }

// Read is not used: a parser makes values of the bytes.
func (t text) Read() (map[string]any, error) { return nil, errors.ErrUnsupported }

func readEnvironment(from Sources) (*koanf.Koanf, error) {
	byEnv := map[string]string{}
	for _, s := range settings() {
		byEnv[s.env] = s.key
	}
	var unknown []string
	provider := envprovider.Provider(".", envprovider.Opt{
		EnvironFunc: func() []string { return from.Environ },
		TransformFunc: func(name, value string) (string, any) {
			key, known := byEnv[name]
			if !known && strings.HasPrefix(name, envPrefix) {
				unknown = append(unknown, name)
			}
			if !known || value == "" {
				return "", nil // koanf leaves out an empty key
			}
			return key, value
		},
	})
	k := koanf.New(".")
	if err := k.Load(provider, nil); err != nil {
		return nil, errors.New("reading the environment: two variables exclude each other")
	}
	if len(unknown) > 0 {
		slices.Sort(unknown)
		return nil, fmt.Errorf("unknown environment variables %s; k8s-runner serve --help lists the known ones", strings.Join(unknown, ", "))
	}
	return k, nil
}

func readFlags(from Sources) (*koanf.Koanf, error) {
	k := koanf.New(".")
	if from.Flags == nil {
		return k, nil
	}
	byFlag := map[string]string{}
	for _, s := range settings() {
		byFlag[flagName(s.key)] = s.key
	}
	provider := posflag.ProviderWithFlag(from.Flags, ".", k, func(f *pflag.Flag) (string, any) {
		key, ours := byFlag[f.Name]
		if !ours || !f.Changed {
			return "", nil
		}
		return key, f.Value.String()
	})
	if err := k.Load(provider, nil); err != nil {
		return nil, errors.New("reading the flags: two flags exclude each other")
	}
	return k, nil
}

// unknownKeys refuses keys of a file that are no settings. A section without
// content is none.
func unknownKeys(k *koanf.Koanf, path string) error {
	var unknown []string
	for _, key := range k.Keys() {
		empty := k.Get(key) == nil
		known := slices.ContainsFunc(settings(), func(s setting) bool {
			return s.key == key || strings.HasPrefix(key, s.key+".") || (empty && strings.HasPrefix(s.key, key+"."))
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

// withoutValues keeps of what the YAML parser says the lines. It quotes text of
// the file, which may be a token.
func withoutValues(err error) string {
	lines := regexp.MustCompile(`line \d+`).FindAllString(err.Error(), -1)
	if len(lines) == 0 {
		return "it is not a YAML mapping"
	}
	return "it is not a YAML mapping, or has a key twice: " + strings.Join(lines, ", ")
}
