//go:build e2e

package e2e

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
)

// outside is a host beyond the node, which has an address of each kind.
type outside struct {
	internet, overlay, metadata, overlayMetadata, private string
}

// newOutside makes a host in a network of its own, behind the node. It answers on port 8080.
func newOutside(t *testing.T) outside {
	t.Helper()
	const name = "fence"
	host := outside{
		internet: "203.0.113.2", overlay: "100.64.0.2", metadata: "169.254.169.254",
		overlayMetadata: "100.100.100.200", private: "192.168.77.2",
	}
	_ = devcluster(t.Context(), t, "netns", "--", "ip", "netns", "del", name).Run() // of a run that was killed
	onNode(t, "ip", "netns", "add", name)
	t.Cleanup(func() { onNode(t, "ip", "netns", "del", name) })
	onNode(t, "ip", "link", "add", "fence0", "type", "veth", "peer", "name", "eth0", "netns", name)
	onNode(t, "ip", "addr", "add", "203.0.113.1/24", "dev", "fence0")
	onNode(t, "ip", "link", "set", "fence0", "up")
	inside := func(args ...string) { onNode(t, append([]string{"ip", "netns", "exec", name, "ip"}, args...)...) }
	inside("addr", "add", host.internet+"/24", "dev", "eth0")
	inside("link", "set", "eth0", "up")
	inside("route", "add", "default", "via", "203.0.113.1")
	for _, address := range []string{host.overlay, host.metadata, host.overlayMetadata, host.private} {
		inside("addr", "add", address+"/32", "dev", "eth0")
		onNode(t, "ip", "route", "add", address+"/32", "via", host.internet)
	}
	server := devcluster(t.Context(), t, "netns", "--", "ip", "netns", "exec", name, suite.probe, "serve", ":8080")
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	})
	return host
}

// server is a Pod that answers on some ports, and its Service.
type server struct {
	namespace, name string
	// pod and service are addresses.
	pod, service string
}

// newServer makes one, which goes with the test.
func newServer(t *testing.T, namespace string, labels map[string]string, ports ...int32) server {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "server-", Labels: labels},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: new(int64),
			Containers: []corev1.Container{{
				Name: "server", Image: "busybox", ImagePullPolicy: corev1.PullIfNotPresent, Command: []string{"/probe/probe", "serve"},
				VolumeMounts: []corev1.VolumeMount{{Name: "probe", MountPath: "/probe", ReadOnly: true}},
			}},
			Volumes: []corev1.Volume{{Name: "probe", VolumeSource: corev1.VolumeSource{
				HostPath: &corev1.HostPathVolumeSource{Path: filepath.Dir(suite.probe)},
			}}},
		},
	}
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "server-"},
		Spec:       corev1.ServiceSpec{Selector: labels},
	}
	for _, port := range ports {
		pod.Spec.Containers[0].Command = append(pod.Spec.Containers[0].Command, fmt.Sprintf(":%d", port))
		for _, protocol := range []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP} {
			service.Spec.Ports = append(service.Spec.Ports, corev1.ServicePort{
				Name: fmt.Sprintf("p%d%s", port, map[corev1.Protocol]string{corev1.ProtocolTCP: "t", corev1.ProtocolUDP: "u"}[protocol]), Port: port, Protocol: protocol,
			})
		}
	}
	core := suite.admin.CoreV1()
	pod, err := core.Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
	t.Cleanup(func() { _ = core.Pods(namespace).Delete(cleanup(t), pod.Name, now) })
	service, err = core.Services(namespace).Create(t.Context(), service, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = core.Services(namespace).Delete(cleanup(t), service.Name, metav1.DeleteOptions{}) })
	eventually(t, time.Minute, "a server runs in "+namespace, func() error {
		if pod, err = core.Pods(namespace).Get(t.Context(), pod.Name, metav1.GetOptions{}); err == nil && !isReady(pod) {
			err = fmt.Errorf("it is %v", pod.Status)
		}
		return err
	})
	return server{namespace: namespace, name: pod.Name, pod: pod.Status.PodIP, service: service.Spec.ClusterIP}
}

// cleanup is a context for what a test leaves: the test's own has ended then.
func cleanup(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// ask asks an address from inside the server's Pod.
func (s server) ask(t *testing.T, target string) string {
	t.Helper()
	request := suite.admin.CoreV1().RESTClient().Post().Resource("pods").Namespace(s.namespace).Name(s.name).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Command: []string{"/probe/probe", "ask", target}, Stdout: true}, scheme.ParameterCodec)
	command, err := remotecommand.NewWebSocketExecutor(suite.config, "GET", request.URL().String())
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := command.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: &out}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// probeArchive is the probe, as PutArchive takes it.
func probeArchive(t *testing.T) []byte {
	t.Helper()
	data, err := os.ReadFile(suite.probe)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	archive := tar.NewWriter(&out)
	if err := archive.WriteHeader(&tar.Header{Name: "probe", Mode: 0o755, Size: int64(len(data))}); err != nil {
		t.Fatal(err)
	}
	if _, err := archive.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
