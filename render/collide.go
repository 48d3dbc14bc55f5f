package render

import (
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/agynio/k8s-runner/workload"
)

// collision returns an InvalidArgument error for the duplicates of which the
// request has one and the templates the other, and nil if there are none. A
// request alone has none: they were refused before. Its cause names the places
// in the templates.
func (m *manifest) collision(found []duplicate, spec *workload.Spec) error {
	var violations []workload.Violation
	var ours []duplicate
	for _, d := range found {
		if field, token := requested(spec, d); field != "" {
			ours = append(ours, d)
			violations = append(violations, workload.Violation{
				Field: field, Token: token,
				Message: fmt.Sprintf("the runner's template has %q in its %s as well (%s)", d.key, d.list, m.places(d)),
			})
		}
	}
	err := workload.Invalid(violations)
	if refused := (*workload.Error)(nil); errors.As(err, &refused) {
		refused.Err = m.errorOf(twice(ours))
	}
	return err
}

// places names both entries: which of them is the template's own cannot be told.
func (m *manifest) places(d duplicate) string {
	first, second := m.at(d.first), m.at(d.path)
	if first == second {
		return first
	}
	return first + " and " + second
}

// requested returns the field of the request that an entry comes from, or "".
func requested(spec *workload.Spec, d duplicate) (field, token string) {
	if d.list == listVolumes {
		i := slices.IndexFunc(spec.Volumes, func(v workload.Volume) bool { return v.Name == d.key })
		return entry("volumes", i, ".name"), "duplicate_volume_name"
	}
	name := d.container
	if d.list == listContainers {
		name = d.key
	}
	field, c := containerNamed(spec, name)
	if c == nil {
		return "", ""
	}
	switch d.list {
	case listContainers:
		return field + ".name", "duplicate_container_name"
	case listEnv:
		if slices.ContainsFunc(c.Env, func(e workload.EnvVar) bool { return e.Name == d.key }) {
			return field + ".env", "duplicate_env_name"
		}
	case listMounts:
		return requestedMount(c, field, d.key)
	}
	return "", ""
}

// requestedMount returns the field of the request that mounts something at where, in
// the container c at field, or "".
func requestedMount(c *workload.Container, field, where string) (asked, token string) {
	if i := slices.Index(c.InlineFiles, where); i >= 0 {
		return entry(field+".inline_file_mounts", i, ".path"), "duplicate_mount_path"
	}
	i := slices.IndexFunc(c.Mounts, func(m workload.Mount) bool { return path.Clean(m.Path) == where })
	return entry(field+".mounts", i, ".mount_path"), "duplicate_mount_path"
}

func entry(list string, i int, field string) string {
	if i < 0 {
		return ""
	}
	return fmt.Sprintf("%s[%d]%s", list, i, field)
}

func containerNamed(spec *workload.Spec, name string) (field string, c *workload.Container) {
	if spec.Main.Name == name {
		return "main", &spec.Main
	}
	named := func(c workload.Container) bool { return c.Name == name }
	if i := slices.IndexFunc(spec.Sidecars, named); i >= 0 {
		return entry("sidecars", i, ""), &spec.Sidecars[i]
	}
	if i := slices.IndexFunc(spec.Inits, named); i >= 0 {
		return entry("init_containers", i, ""), &spec.Inits[i]
	}
	return "", nil
}
