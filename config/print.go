package config

import (
	"fmt"
	"time"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/structs"
	"github.com/knadh/koanf/v2"
)

const mask = "********"

// YAML returns c in the form of its file, with secrets masked.
func (c Config) YAML() ([]byte, error) {
	k := koanf.New(".")
	if err := k.Load(structs.Provider(c, "koanf"), nil); err != nil {
		return nil, fmt.Errorf("reading the settings: %w", err)
	}
	for _, s := range settings() {
		if !s.secret || k.String(s.key) == "" {
			continue
		}
		if err := k.Set(s.key, mask); err != nil {
			return nil, fmt.Errorf("masking %s: %w", s.key, err)
		}
	}
	for key, length := range map[string]time.Duration{"starts.grace": c.Starts.Grace, "ziti.enrollment_timeout": c.Ziti.EnrollmentTimeout} {
		if err := k.Set(key, length.String()); err != nil {
			return nil, fmt.Errorf("writing the settings: %w", err)
		}
	}
	out, err := k.Marshal(yaml.Parser())
	if err != nil {
		return nil, fmt.Errorf("writing the settings: %w", err)
	}
	return out, nil
}
