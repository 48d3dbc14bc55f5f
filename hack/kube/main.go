// Command kube does what the demo needs of Kubernetes beside the runner, so
// that it runs on a machine without kubectl. The cluster is that of KUBECONFIG.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	clientv1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/agynio/k8s-runner/workload"
)

const usage = `usage: kube create-namespace NAME    wait for the old one of the name to go, and for the new one to take Pods
       kube delete-namespace NAME    and wait until it is gone
       kube manifest NAMESPACE POD   what the runner applied, as the API server has it on record`

func main() {
	output, err := run(context.Background(), os.Args[1:])
	if err == nil {
		_, err = os.Stdout.Write(output)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "kube %s: %v\n", strings.Join(os.Args[1:], " "), err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) (output []byte, err error) {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return nil, fmt.Errorf("reading KUBECONFIG: %w", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	api := client.CoreV1()
	if len(args) < 2 {
		return nil, errors.New(usage)
	}
	switch command := args[0]; {
	case command == "create-namespace" && len(args) == 2:
		return nil, poll(ctx, func(ctx context.Context) (bool, error) { return createNamespace(ctx, api, args[1]) })
	case command == "delete-namespace" && len(args) == 2:
		return nil, poll(ctx, func(ctx context.Context) (bool, error) { return deleteNamespace(ctx, api, args[1]) })
	case command == "manifest" && len(args) == 3:
		return manifest(ctx, api.Pods(args[1]), args[2])
	}
	return nil, errors.New(usage)
}

// poll calls step until it is done.
func poll(ctx context.Context, step wait.ConditionWithContextFunc) error {
	return wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, time.Minute, true, step)
}

// createNamespace is done once the namespace has its default service account,
// without which it admits no Pod.
func createNamespace(ctx context.Context, api clientv1.CoreV1Interface, name string) (done bool, err error) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	found, err := api.Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		found, err = api.Namespaces().Get(ctx, name, metav1.GetOptions{})
	}
	if err != nil || found.DeletionTimestamp != nil {
		return false, ignoreNotFound(err)
	}
	_, err = api.ServiceAccounts(name).Get(ctx, "default", metav1.GetOptions{})
	return err == nil, ignoreNotFound(err)
}

func deleteNamespace(ctx context.Context, api clientv1.CoreV1Interface, name string) (done bool, err error) {
	err = api.Namespaces().Delete(ctx, name, metav1.DeleteOptions{})
	if apierrors.IsConflict(err) {
		return false, nil // it is being deleted
	}
	return apierrors.IsNotFound(err), ignoreNotFound(err)
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// manifest is what the runner's field manager owns of a Pod: without what the
// API server, the scheduler and the kubelet added.
func manifest(ctx context.Context, pods clientv1.PodInterface, name string) ([]byte, error) {
	pod, err := pods.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	for i := range pod.ManagedFields {
		entry := &pod.ManagedFields[i]
		if entry.Manager != workload.FieldManager || entry.Subresource != "" {
			continue
		}
		// Extraction knows only fields that were applied; ours were created.
		entry.Operation = metav1.ManagedFieldsOperationApply
		ours, err := applycorev1.ExtractPod(pod, entry.Manager)
		if err != nil {
			return nil, fmt.Errorf("extracting what %s made: %w", entry.Manager, err)
		}
		return yaml.Marshal(ours)
	}
	return nil, errors.New("no runner made it")
}
