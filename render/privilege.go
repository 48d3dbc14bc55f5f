package render

import (
	"slices"

	"github.com/agynio/k8s-runner/catalog"
)

// Privileges that a template gives a Pod only if the operator's list has them.
// Each is a way out of the Pod.
const (
	PrivilegeHostNamespaces = "host-namespaces"
	PrivilegeHostPath       = "host-path"
	PrivilegeHostPort       = "host-port"
	PrivilegePrivileged     = "privileged"
	// PrivilegeUnconfined is to run without seccomp, AppArmor or masked paths.
	PrivilegeUnconfined = "unconfined"
	PrivilegeSysctls    = "sysctls"
	// PrivilegeCapabilities is to add Linux capabilities that no request may add.
	PrivilegeCapabilities = "capabilities"
)

// dockerDaemon is the container of the capability docker.
const dockerDaemon = "docker-daemon"

// Privileges lists all of them.
func Privileges() []string {
	return []string{
		PrivilegeCapabilities, PrivilegeHostNamespaces, PrivilegeHostPath, PrivilegeHostPort, PrivilegePrivileged, PrivilegeSysctls, PrivilegeUnconfined,
	}
}

// privileges finds what the Pod has of them beyond what is granted: by the
// operator's list, and to the Docker daemon by the capability.
func privileges(pod map[string]any, in *Input, s Settings) []fault {
	f := &privilegeFinder{in: in, settings: s}
	spec := mapAt(pod, "spec")
	for _, name := range [...]string{"hostNetwork", "hostPID", "hostIPC"} {
		f.found(spec[name] == true, PrivilegeHostNamespaces, fieldPath{"spec", name})
	}
	f.context(mapAt(spec, "securityContext"), fieldPath{"spec", "securityContext"}, false)
	for i, v := range entries(spec["volumes"]) {
		tun := f.dockerIs(catalog.DockerRootless) && stringAt(mapAt(v, "hostPath"), "path") == "/dev/net/tun"
		f.found(v["hostPath"] != nil && !tun, PrivilegeHostPath, fieldPath{"spec", "volumes", i, "hostPath"})
	}
	for _, list := range [...]string{"initContainers", "containers"} {
		for i, c := range entries(spec[list]) {
			f.container(c, fieldPath{"spec", list, i})
		}
	}
	return f.faults
}

type privilegeFinder struct {
	in       *Input
	settings Settings
	faults   []fault
}

func (f *privilegeFinder) found(has bool, privilege string, at fieldPath) {
	if has && !slices.Contains(f.settings.AllowedPrivileges, privilege) {
		f.faults = append(f.faults, fault{at, "is refused: the setting security.allowed_privileges has no " + privilege})
	}
}

func (f *privilegeFinder) dockerIs(implementation string) bool {
	return f.in.Docker != nil && f.in.Docker.Implementation == implementation
}

func (f *privilegeFinder) container(c map[string]any, at fieldPath) {
	daemon := f.in.Docker != nil && stringAt(c, "name") == dockerDaemon
	for i, p := range entries(c["ports"]) {
		port := p["hostPort"]
		f.found(port != nil && port != int64(0), PrivilegeHostPort, at.then("ports", i, "hostPort"))
	}
	context := mapAt(c, "securityContext")
	if context == nil {
		return
	}
	at = at.then("securityContext")
	privileged := daemon && !f.dockerIs(catalog.DockerRootless)
	f.found(context["privileged"] == true && !privileged, PrivilegePrivileged, at.then("privileged"))
	f.context(context, at, daemon)
	added, _ := mapAt(context, "capabilities")["add"].([]any)
	for i, name := range added {
		text, _ := name.(string)
		f.found(!slices.Contains(f.settings.LinuxCapabilities, text), PrivilegeCapabilities, at.then("capabilities", "add", i))
	}
}

// context checks a security context, which Pods and containers have.
func (f *privilegeFinder) context(context map[string]any, at fieldPath, daemon bool) {
	for _, profile := range [...]string{"seccompProfile", "appArmorProfile"} {
		unconfined := stringAt(mapAt(context, profile), "type") == "Unconfined"
		f.found(unconfined && !daemon, PrivilegeUnconfined, at.then(profile, "type"))
	}
	f.found(context["procMount"] == "Unmasked", PrivilegeUnconfined, at.then("procMount"))
	f.found(mapAt(context, "windowsOptions")["hostProcess"] == true, PrivilegePrivileged, at.then("windowsOptions", "hostProcess"))
	sysctls, _ := context["sysctls"].([]any)
	f.found(len(sysctls) > 0, PrivilegeSysctls, at.then("sysctls"))
}
