package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"

	"github.com/agynio/k8s-runner/applier"
	"github.com/agynio/k8s-runner/cluster/contact"
	"github.com/agynio/k8s-runner/config"
	"github.com/agynio/k8s-runner/metrics"
	"github.com/agynio/k8s-runner/workload"
)

// drainLook is how often it is looked whether workloads are left.
const drainLook = time.Second

func newDrain() *cobra.Command {
	var file string
	var limit time.Duration
	cmd := &cobra.Command{
		Use:   "drain",
		Short: "End all workloads of a namespace, and wait until they are gone",
		Long: `End all workloads of kube.namespace gracefully, and wait until they are gone. Their
claims stay. It needs no running service: it has the settings of serve, and asks
Kubernetes itself. An uninstall does this before the workloads' fence goes.`,
		Example: `  k8s-runner drain --kube-namespace workloads`,
		GroupID: groupService,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := config.Load(config.Sources{File: file, Environ: os.Environ(), Flags: cmd.Flags()})
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), limit)
			defer cancel()
			return drain(ctx, c)
		},
	}
	cmd.Flags().StringVar(&file, "config", "", "YAML file of settings")
	cmd.Flags().DurationVar(&limit, "limit", 5*time.Minute, "longest time until they are gone")
	config.AddFlags(cmd.Flags())
	return cmd
}

// drain deletes workloads until none is left, also those that are started meanwhile.
func drain(ctx context.Context, c config.Config) error {
	log, err := newLog(c.Log)
	if err != nil {
		return err
	}
	measured, err := metrics.New()
	if err != nil {
		return err
	}
	access, err := newAccess(c.Kube, contact.New(measured.API))
	if err != nil {
		return err
	}
	resources := discovery.ToServerResourcesInterfaceWithContext(access.reads.Discovery())
	writer := applier.New(access.writes, resources, c.Kube.Namespace)
	mine := metav1.ListOptions{LabelSelector: workload.LabelManagedBy + "=" + workload.ManagedBy}
	for {
		pods, err := access.reads.CoreV1().Pods(c.Kube.Namespace).List(ctx, mine)
		if err != nil {
			return fmt.Errorf("listing the workloads of %s: %w", c.Kube.Namespace, err)
		}
		if len(pods.Items) == 0 {
			log.WithField("namespace", c.Kube.Namespace).Info("no workload is left")
			return nil
		}
		if err := endAll(ctx, writer, pods.Items, log); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s of %s to go: %w", counted(len(pods.Items), "workload"), c.Kube.Namespace, ctx.Err())
		case <-time.After(drainLook):
		}
	}
}

// endAll deletes the Pods that are not being deleted yet.
func endAll(ctx context.Context, writer *applier.Applier, pods []corev1.Pod, log *logrus.Logger) error {
	for _, pod := range pods {
		if pod.DeletionTimestamp != nil {
			continue
		}
		err := writer.Delete(ctx, pod.Labels[workload.LabelID], string(pod.UID), nil)
		var known *workload.Error
		if errors.As(err, &known) && known.Kind == workload.NotFound {
			continue // somebody was faster
		}
		if err != nil {
			return fmt.Errorf("ending the workload of the Pod %s: %w", pod.Name, err)
		}
		log.WithField("pod", pod.Name).Info("ending a workload")
	}
	return nil
}
