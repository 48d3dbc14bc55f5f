package render

import (
	"slices"
	"strings"
)

// missing finds what the Pod refers to of this workload and no template makes:
// it would wait for it for ever.
func missing(m *Manifests, in *Input) []fault {
	r := references{in: in, made: map[string]bool{}}
	for _, obj := range m.All() {
		r.made[madeName(kindOfObject(obj.Object), obj.GetName())] = true
	}
	spec := mapAt(m.Pod.Object, "spec")
	for i, v := range entries(spec["volumes"]) {
		r.volume(v, fieldPath{"spec", "volumes", i})
	}
	for i, s := range entries(spec["imagePullSecrets"]) {
		r.reference(secretKind, s, "name", fieldPath{"spec", "imagePullSecrets", i})
	}
	for _, list := range [...]string{"initContainers", "containers"} {
		for i, c := range entries(spec[list]) {
			r.container(c, fieldPath{"spec", list, i})
		}
	}
	return r.faults
}

// references finds those that lead nowhere.
type references struct {
	in *Input
	// made has what the templates make.
	made   map[string]bool
	faults []fault
}

func madeName(k kind, name string) string { return string(k) + " " + name }

func (r *references) need(k kind, name string, at fieldPath) {
	if !r.made[madeName(k, name)] {
		r.faults = append(r.faults, fault{at, "refers to a " + k.gvk().Kind + " that no template makes"})
	}
}

// reference checks one whose field key holds a name. One that is not of this
// workload may be there without our doing.
func (r *references) reference(k kind, ref map[string]any, key string, at fieldPath) {
	if name := stringAt(ref, key); r.in.owns(name) && ref["optional"] != true {
		r.need(k, name, at.then(key))
	}
}

func (r *references) volume(v map[string]any, at fieldPath) {
	r.reference(secretKind, mapAt(v, "secret"), "secretName", at.then("secret"))
	r.reference(configMapKind, mapAt(v, "configMap"), "name", at.then("configMap"))
	for i, source := range entries(mapAt(v, "projected")["sources"]) {
		r.reference(secretKind, mapAt(source, "secret"), "name", at.then("projected", "sources", i, "secret"))
		r.reference(configMapKind, mapAt(source, "configMap"), "name", at.then("projected", "sources", i, "configMap"))
	}
	name := stringAt(mapAt(v, "persistentVolumeClaim"), "claimName")
	if slices.ContainsFunc(r.in.Claims, func(c Claim) bool { return c.Name == name }) {
		r.need(claimKind, name, at.then("persistentVolumeClaim", "claimName"))
	}
}

func (r *references) container(c map[string]any, at fieldPath) {
	for i, e := range entries(c["env"]) {
		if from := mapAt(e, "valueFrom"); from != nil { // which few have
			r.reference(secretKind, mapAt(from, "secretKeyRef"), "name", at.then("env", i, "valueFrom", "secretKeyRef"))
			r.reference(configMapKind, mapAt(from, "configMapKeyRef"), "name", at.then("env", i, "valueFrom", "configMapKeyRef"))
		}
	}
	for i, e := range entries(c["envFrom"]) {
		r.reference(secretKind, mapAt(e, "secretRef"), "name", at.then("envFrom", i, "secretRef"))
		r.reference(configMapKind, mapAt(e, "configMapRef"), "name", at.then("envFrom", i, "configMapRef"))
	}
}

// owns reports whether name is that of an object of this workload.
func (in *Input) owns(name string) bool {
	rest, ok := strings.CutPrefix(name, in.Name)
	return ok && (rest == "" || rest[0] == '-')
}
