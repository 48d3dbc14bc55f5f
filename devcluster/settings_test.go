package main

import "testing"

func TestLoadSettings(t *testing.T) {
	tests := []struct {
		name string
		env  map[string]string
		want settings
		bad  bool
	}{
		{
			name: "preset",
			env:  map[string]string{"XDG_CACHE_HOME": "/cache"},
			want: settings{Dir: "/cache/k8s-runner/devcluster", APIPort: 16443, MirrorPort: 15001},
		},
		{
			name: "all chosen",
			env:  map[string]string{"DEVCLUSTER_DIR": "/x/", "DEVCLUSTER_API_PORT": "1", "DEVCLUSTER_MIRROR_PORT": "65535"},
			want: settings{Dir: "/x", APIPort: 1, MirrorPort: 65535},
		},
		{name: "no number", env: map[string]string{"DEVCLUSTER_DIR": "/x", "DEVCLUSTER_API_PORT": "http"}, bad: true},
		{name: "no port", env: map[string]string{"DEVCLUSTER_DIR": "/x", "DEVCLUSTER_MIRROR_PORT": "65536"}, bad: true},
		{name: "hidden from the node", env: map[string]string{"DEVCLUSTER_DIR": "/run/x"}, bad: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, name := range []string{"DEVCLUSTER_DIR", "DEVCLUSTER_API_PORT", "DEVCLUSTER_MIRROR_PORT"} {
				t.Setenv(name, "")
			}
			for name, value := range tt.env {
				t.Setenv(name, value)
			}
			got, err := loadSettings()
			if (err != nil) != tt.bad {
				t.Fatalf("error %v, want one: %t", err, tt.bad)
			}
			if !tt.bad && got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}
