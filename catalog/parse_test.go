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
		"half a device":   {text: "flavors:\n  - name: a\n    devices: {x.y/gpu: 500m}", want: []string{"3: flavors[0].devices.x.y/gpu"}},
		"bad effect":      {text: "flavors:\n  - name: a\n    tolerations: [{key: k, effect: Never}]", want: []string{"3: flavors[0].tolerations[0].effect"}},
		"value of Exists": {text: "flavors:\n  - name: a\n    tolerations: [{key: k, operator: Exists, value: v}]", want: []string{"3: flavors[0].tolerations[0]"}},
		"bad class":       {text: "flavors:\n  - {name: a, runtimeClass: A B}", want: []string{"2: flavors[0].runtimeClass"}},
		"bad group":       {text: "flavors:\n  - name: a\n    supplementalGroups: [-1, x]", want: []string{"3: flavors[0].supplementalGroups[0]", "3: flavors[0].supplementalGroups[1]"}},
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

// FuzzParse: no text makes it panic, and what has no fault is a catalog.
func FuzzParse(f *testing.F) {
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
