package catalog

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agynio/k8s-runner/workload"
)

// TestShipped: the catalog at the top of the tree is one.
func TestShipped(t *testing.T) {
	data, err := os.ReadFile("../catalog.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c, faults := Parse(data)
	if len(faults) > 0 {
		t.Fatalf("it has faults: %v", faults)
	}
	if len(c.Flavors) == 0 || len(c.StorageClasses) == 0 || len(c.Capabilities) != len(known()) {
		t.Errorf("it holds %+v", c)
	}
	// Existing callers name no flavor and expect no size.
	if slices.ContainsFunc(c.Flavors, func(f Flavor) bool { return f.Default }) {
		t.Error("it has a default flavor")
	}
}

func TestParse(t *testing.T) {
	const text = `
flavors:
  - name: gpu
    default: true
    deprecated: true
    resources: {requestsCpu: 1, requests_memory: 1Gi, limitsCpu: "2", limitsMemory: 2Gi}
    sidecar_resources: {limits_cpu: 100m}
    devices: {nvidia.com/gpu: 1}
    nodeSelector: {pool: "7"}
    tolerations:
      - {key: gpu, operator: Exists, effect: NoExecute, tolerationSeconds: 30}
    runtimeClass: gvisor
    priority_class: high
    supplementalGroups: [44, 109]
storage_classes:
  - {name: fast, storageClassName: ssd}
  - {name: any, default: true}
capabilities: [docker, compute-resources]
`
	got, faults := Parse([]byte(text))
	if len(faults) > 0 {
		t.Fatalf("faults: %v", faults)
	}
	seconds := int64(30)
	want := &Catalog{
		Flavors: []Flavor{{
			Name: "gpu", Default: true, Deprecated: true,
			Resources:          workload.Resources{RequestsCPU: "1", RequestsMemory: "1Gi", LimitsCPU: "2", LimitsMemory: "2Gi"},
			SidecarResources:   workload.Resources{LimitsCPU: "100m"},
			Devices:            map[string]string{"nvidia.com/gpu": "1"},
			NodeSelector:       map[string]string{"pool": "7"},
			Tolerations:        []Toleration{{Key: "gpu", Operator: "Exists", Effect: "NoExecute", Seconds: &seconds}},
			RuntimeClass:       "gvisor",
			PriorityClass:      "high",
			SupplementalGroups: []int64{44, 109},
		}},
		StorageClasses: []StorageClass{{Name: "fast", ClassName: "ssd"}, {Name: "any", Default: true}},
		Capabilities:   []string{"docker", "compute-resources"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestFaults: each fault is found with its line and field, and one hides no
// other.
func TestFaults(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"empty":           {text: "", want: nil},
		"not YAML":        {text: "flavors: [", want: []string{"1: file"}},
		"not a mapping":   {text: "- x", want: []string{"1: "}},
		"unknown key":     {text: "flavours: []", want: []string{"1: flavours"}},
		"key twice":       {text: "capabilities: []\ncapabilities: []", want: []string{"2: capabilities"}},
		"both spellings":  {text: "storageClasses: []\nstorage_classes: []", want: []string{"2: storage_classes"}},
		"not a list":      {text: "flavors: {}", want: []string{"1: flavors"}},
		"a mapping":       {text: "flavors: {a: b}\nstorageClasses: {a: b}\ncapabilities: {a: b}", want: []string{"1: flavors", "2: storageClasses", "3: capabilities"}},
		"null, tagged":    {text: "flavors: !!null {a: b}", want: []string{"1: flavors"}},
		"null":            {text: "flavors:\nstorageClasses: ~\ncapabilities:", want: nil},
		"two documents":   {text: "flavors: [{name: A}]\n---\nflavors: []", want: []string{"1: flavors[0].name", "2: file"}},
		"the second bad":  {text: "flavors: []\n---\n[", want: []string{"3: file"}},
		"no name":         {text: "flavors:\n  - default: true", want: []string{"2: flavors[0].name"}},
		"bad name":        {text: "flavors:\n  - name: A_B", want: []string{"2: flavors[0].name"}},
		"long name":       {text: "flavors:\n  - name: " + strings.Repeat("a", 65), want: []string{"2: flavors[0].name"}},
		"name twice":      {text: "flavors:\n  - name: a\n  - name: a", want: []string{"3: flavors[1].name"}},
		"two defaults":    {text: "storageClasses:\n  - {name: a, default: true}\n  - {name: b, default: true}", want: []string{"3: storageClasses[1].name"}},
		"bad quantity":    {text: "flavors:\n  - name: a\n    resources:\n      limitsCpu: lots", want: []string{"4: flavors[0].resources.limitsCpu"}},
		"endless":         {text: "flavors:\n  - name: a\n    resources: {limitsCpu: 1e-99999999}\n    devices: {x.y/gpu: 1e-99999999}", want: []string{"3: flavors[0].resources.limitsCpu", "4: flavors[0].devices.x.y/gpu"}},
		"above its limit": {text: "flavors:\n  - name: a\n    resources: {requestsCpu: 2, limits_cpu: 1500m}", want: []string{"3: flavors[0].resources"}},
		"bad flag":        {text: "flavors:\n  - {name: a, default: maybe}", want: []string{"2: flavors[0].default"}},
		"bad label":       {text: "flavors:\n  - name: a\n    nodeSelector: {pool: 'a b'}", want: []string{"3: flavors[0].nodeSelector.pool"}},
		"no device":       {text: "flavors:\n  - name: a\n    devices: {cpu: 1}", want: []string{"3: flavors[0].devices.cpu"}},
		"none of others": {text: "flavors:\n  - name: a\n    devices:\n      kubernetes.io/gpu: 1\n      x.kubernetes.io/gpu: 1\n      requests.x.y/gpu: 1\n      hugepages-2Mi: 1\n      x y/gpu: 1\n      x.y/requests.gpu: 1", want: []string{
			"4: flavors[0].devices.kubernetes.io/gpu", "5: flavors[0].devices.x.kubernetes.io/gpu", "6: flavors[0].devices.requests.x.y/gpu",
			"7: flavors[0].devices.hugepages-2Mi", "8: flavors[0].devices.x y/gpu",
		}},
		"long for quota":  {text: "flavors:\n  - name: a\n    devices: {" + strings.Repeat("a.", 123) + "io/gpu: 1}", want: []string{"3: flavors[0].devices." + strings.Repeat("a.", 123) + "io/gpu"}},
		"half a device":   {text: "flavors:\n  - name: a\n    devices: {x.y/gpu: 500m}", want: []string{"3: flavors[0].devices.x.y/gpu"}},
		"bad effect":      {text: "flavors:\n  - name: a\n    tolerations: [{key: k, effect: Never}]", want: []string{"3: flavors[0].tolerations[0].effect"}},
		"value of Exists": {text: "flavors:\n  - name: a\n    tolerations: [{key: k, operator: Exists, value: v}]", want: []string{"3: flavors[0].tolerations[0]"}},
		"bad taint": {text: "flavors:\n  - name: a\n    tolerations:\n      - {key: a b, operator: Exists}\n      - {key: a/b/c, operator: Exists}\n      - {key: k, value: a b}\n      - {key: '', operator: Exists}\n      - {key: x.y/k, value: ''}", want: []string{
			"4: flavors[0].tolerations[0].key", "5: flavors[0].tolerations[1].key", "6: flavors[0].tolerations[2].value",
		}},
		"seconds":         {text: "flavors:\n  - name: a\n    tolerations:\n      - {key: k, effect: NoSchedule, tolerationSeconds: 1}\n      - {key: k, tolerationSeconds: 1}\n      - {key: k, effect: NoExecute, tolerationSeconds: 0}", want: []string{"4: flavors[0].tolerations[0]", "5: flavors[0].tolerations[1]"}},
		"no taint at all": {text: "flavors:\n  - name: a\n    tolerations: [{}, {value: v}]", want: []string{"3: flavors[0].tolerations[0]", "3: flavors[0].tolerations[1]"}},
		"bad class":       {text: "flavors:\n  - {name: a, runtimeClass: A B}", want: []string{"2: flavors[0].runtimeClass"}},
		"bad group":       {text: "flavors:\n  - name: a\n    supplementalGroups: [-1, x, 0, 2147483647, 2147483648, 99999999999999999999]", want: []string{"3: flavors[0].supplementalGroups[0]", "3: flavors[0].supplementalGroups[1]", "3: flavors[0].supplementalGroups[4]", "3: flavors[0].supplementalGroups[5]"}},
		"bad capability":  {text: "capabilities:\n  - docker\n  - dokcer", want: []string{"3: capabilities[1]"}},
		"several": {
			text: "flavors:\n  - name: A\n    resources: {cpu: 1}\ncapabilities: x",
			want: []string{"2: flavors[0].name", "3: flavors[0].resources.cpu", "4: capabilities"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, faults := Parse([]byte(test.text))
			var got []string
			for _, f := range faults {
				got = append(got, strings.TrimSuffix(f.String(), ": "+f.Message))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s\n%v", diff, faults)
			}
		})
	}
}

// FuzzParse: no text makes it panic, and what has no fault is a catalog. Each
// kind of node is among the seeds, wherever another one is due.
func FuzzParse(f *testing.F) {
	for _, value := range []string{"{a: b}", "[a]", "[[a]]", "[{a: b}]", "a", "1", "", "!!null {a: b}", "!!seq {a: b}", "!!map [a]", "!!int {a: b}", "!!bool [a]", "&a [*a]", "!x a", "{? [a] : b}", "{<<: [a]}", "b\n---\nc: d"} {
		for _, key := range []string{"flavors: %", "storageClasses: %", "capabilities: %", "%"} {
			f.Add([]byte(strings.ReplaceAll(key, "%", value)))
		}
		for _, key := range []string{"name", "default", "resources", "devices", "nodeSelector", "runtimeClass", "tolerations", "supplementalGroups"} {
			f.Add([]byte("flavors: [{name: a, " + key + ": " + value + "}]"))
		}
	}
	f.Add([]byte("flavors: [{name: a, resources: {limitsCpu: 1}}]\nstorageClasses: [{name: b}]\ncapabilities: [docker]"))
	f.Add([]byte("flavors: &a\n  - *a"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, faults := Parse(data)
		if len(faults) > 0 {
			return
		}
		for _, flavor := range c.Flavors {
			if !nameForm.MatchString(flavor.Name) {
				t.Errorf("a flavor is called %q", flavor.Name)
			}
		}
	})
}
