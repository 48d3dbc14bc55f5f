package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	"github.com/agynio/k8s-runner/request"
	"github.com/agynio/k8s-runner/workload"
)

// propReadOnlyRoot is the additional property of a container behind --read-only.
const propReadOnlyRoot = "read_only_root_filesystem"

// runFlags are the flags of run that say what to start.
type runFlags struct {
	file, id                   string
	env, envFiles              []string
	labels, volumes            []string
	entrypoint, workdir        string
	nameservers, searchDomains []string
	readOnly                   bool
}

func (f *runFlags) add(flags *pflag.FlagSet) {
	flags.StringVarP(&f.file, "file", "f", "", "read the request from this YAML `FILE`; - is stdin")
	flags.StringVar(&f.id, "id", "", "id of the workload, a `UUID` (default: the runner makes one)")
	flags.StringArrayVarP(&f.env, "env", "e", nil, "variable `KEY=VALUE`, or KEY alone to pass on the client's own")
	flags.StringArrayVar(&f.envFiles, "env-file", nil, "`FILE` of lines as --env takes them, and # comments; --env wins over it")
	flags.StringArrayVarP(&f.labels, "label", "l", nil, "label `KEY=VALUE`")
	flags.StringArrayVarP(&f.volumes, "volume", "v", nil, "ephemeral volume `[NAME:]PATH[:ro]`; :ro needs a NAME")
	flags.StringVar(&f.entrypoint, "entrypoint", "", "`PROGRAM` to run instead of the image's own")
	flags.StringVarP(&f.workdir, "workdir", "w", "", "`FOLDER` in which the process starts")
	flags.StringArrayVar(&f.nameservers, "dns", nil, "`IP` address of a name server, instead of the cluster's")
	flags.StringArrayVar(&f.searchDomains, "dns-search", nil, "`DOMAIN` in which names are looked up")
	flags.BoolVar(&f.readOnly, "read-only", false, "make the image's file system read-only")
}

// apply changes req by the flags that were given and the words after them. No
// error tells a value, which may be secret.
func (f *runFlags) apply(req *runnerv1.StartWorkloadRequest, flags *pflag.FlagSet) error {
	if req.Main == nil {
		req.Main = &runnerv1.ContainerSpec{}
	}
	image, command := words(flags, f.file != "")
	if image == "" && f.file == "" {
		return errors.New("there is no IMAGE and no --file")
	}
	set(&req.Main.Image, image, image != "")
	set(&req.Main.Cmd, command, len(command) > 0)
	set(&req.WorkloadId, f.id, flags.Changed("id"))
	set(&req.Main.Entrypoint, f.entrypoint, flags.Changed("entrypoint"))
	set(&req.Main.WorkingDir, f.workdir, flags.Changed("workdir"))
	if flags.Changed("read-only") {
		put(&req.Main.AdditionalProperties, propReadOnlyRoot, strconv.FormatBool(f.readOnly))
	}
	if len(f.nameservers)+len(f.searchDomains) > 0 && req.DnsConfig == nil {
		req.DnsConfig = &runnerv1.DnsConfig{}
	}
	if req.DnsConfig != nil {
		set(&req.DnsConfig.Nameservers, f.nameservers, len(f.nameservers) > 0)
		set(&req.DnsConfig.Searches, f.searchDomains, len(f.searchDomains) > 0)
	}
	return errors.Join(f.addEnv(req.Main), f.addLabels(req), f.addVolumes(req))
}

// words splits what follows the flags into an image and a command.
func words(flags *pflag.FlagSet, fromFile bool) (image string, command []string) {
	args := flags.Args()
	if len(args) == 0 || fromFile && flags.ArgsLenAtDash() == 0 {
		return "", args
	}
	image, command = args[0], args[1:]
	if len(command) > 0 && command[0] == "--" {
		command = command[1:]
	}
	return image, command
}

func (f *runFlags) addEnv(main *runnerv1.ContainerSpec) error {
	for _, path := range f.envFiles {
		text, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("reading --env-file: %w", err)
		}
		for i, line := range strings.Split(string(text), "\n") {
			line = strings.TrimSuffix(strings.TrimLeft(line, " \t"), "\r")
			if line == "" || line[0] == '#' {
				continue
			}
			if err := addVariable(main, line); err != nil {
				return fmt.Errorf("%s:%d: %w", path, i+1, err)
			}
		}
	}
	for _, e := range f.env {
		if err := addVariable(main, e); err != nil {
			return fmt.Errorf("--env: %w", err)
		}
	}
	return nil
}

// addVariable adds a variable. Of equal names the runner takes the last.
func addVariable(main *runnerv1.ContainerSpec, text string) error {
	variable, err := readVariable(text)
	if variable != nil {
		main.Env = append(main.Env, variable)
	}
	return err
}

// readVariable reads NAME=VALUE, or NAME with its value from the environment; if that
// has none it returns nil.
func readVariable(text string) (*runnerv1.EnvVar, error) {
	name, value, whole := strings.Cut(text, "=")
	if name == "" {
		return nil, errors.New("a variable has no name before its =")
	}
	if !whole {
		if value, whole = os.LookupEnv(name); !whole {
			return nil, nil //nolint:nilnil // it is left out
		}
	}
	return &runnerv1.EnvVar{Name: name, Value: value}, nil
}

func (f *runFlags) addLabels(req *runnerv1.StartWorkloadRequest) error {
	for _, l := range f.labels {
		key, value, _ := strings.Cut(l, "=")
		if key == "" {
			return fmt.Errorf("--label %q has no key", l)
		}
		put(&req.Labels, key, value)
	}
	return nil
}

// addVolumes adds a mount for each -v, and its volume unless that is declared.
func (f *runFlags) addVolumes(req *runnerv1.StartWorkloadRequest) error {
	for _, text := range f.volumes {
		parts := strings.Split(text, ":")
		if len(parts) == 1 {
			parts = []string{unusedName(req), text}
		}
		switch {
		case strings.HasPrefix(parts[0], "/"), strings.HasPrefix(parts[0], "."):
			return fmt.Errorf("--volume %q: folders of this machine cannot be mounted; want [NAME:]PATH[:ro]", text)
		case len(parts) > 3, len(parts) == 3 && parts[2] != "ro" && parts[2] != "rw":
			return fmt.Errorf("--volume %q is not [NAME:]PATH[:ro]", text)
		}
		name := parts[0]
		if !declares(req, name) {
			req.Volumes = append(req.Volumes, &runnerv1.VolumeSpec{Name: name, Kind: runnerv1.VolumeKind_VOLUME_KIND_EPHEMERAL})
		}
		req.Main.Mounts = append(req.Main.Mounts, &runnerv1.VolumeMount{
			Volume: name, MountPath: parts[1], ReadOnly: len(parts) == 3 && parts[2] == "ro",
		})
	}
	return nil
}

func declares(req *runnerv1.StartWorkloadRequest, volume string) bool {
	return slices.ContainsFunc(req.GetVolumes(), func(v *runnerv1.VolumeSpec) bool { return v.GetName() == volume })
}

func unusedName(req *runnerv1.StartWorkloadRequest) string {
	for i := 1; ; i++ {
		if name := "volume-" + strconv.Itoa(i); !declares(req, name) {
			return name
		}
	}
}

// readRequest reads the file of --file; without one the request is empty.
func readRequest(path string, stdin io.Reader) (*runnerv1.StartWorkloadRequest, error) {
	var text []byte
	var err error
	switch path {
	case "":
		return &runnerv1.StartWorkloadRequest{}, nil
	case "-":
		text, err = io.ReadAll(stdin)
	default:
		text, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, fmt.Errorf("reading --file: %w", err)
	}
	req, err := request.Unmarshal(text)
	if err != nil {
		return nil, workload.Errorf(workload.InvalidArgument, "invalid_request_file", "%s: %v", path, err)
	}
	return req, nil
}

func set[T any](field *T, value T, given bool) {
	if given {
		*field = value
	}
}

func put(m *map[string]string, key, value string) {
	if *m == nil {
		*m = map[string]string{}
	}
	(*m)[key] = value
}
