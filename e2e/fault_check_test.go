//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/agynio/k8s-runner/applier"
	"github.com/agynio/k8s-runner/request"
	"github.com/agynio/k8s-runner/workload"
)

// world is what the cluster has of a run.
type world struct {
	pods     map[string]corev1.Pod
	secrets  map[string]corev1.Secret
	policies map[string]networkingv1.NetworkPolicy
	claims   map[string]corev1.PersistentVolumeClaim
}

// look reads the world of a run.
func look(ctx context.Context, namespace, run string) (world, error) {
	all := metav1.ListOptions{LabelSelector: runLabel + "=" + run}
	core := suite.admin.CoreV1()
	pods, err := core.Pods(namespace).List(ctx, all)
	if err != nil {
		return world{}, err
	}
	secrets, err := core.Secrets(namespace).List(ctx, all)
	if err != nil {
		return world{}, err
	}
	policies, err := suite.admin.NetworkingV1().NetworkPolicies(namespace).List(ctx, all)
	if err != nil {
		return world{}, err
	}
	claims, err := core.PersistentVolumeClaims(namespace).List(ctx, all)
	if err != nil {
		return world{}, err
	}
	return world{
		pods:     byName(pods.Items, func(p corev1.Pod) string { return p.Name }),
		secrets:  byName(secrets.Items, func(s corev1.Secret) string { return s.Name }),
		policies: byName(policies.Items, func(p networkingv1.NetworkPolicy) string { return p.Name }),
		claims:   byName(claims.Items, func(c corev1.PersistentVolumeClaim) string { return c.Name }),
	}, nil
}

func byName[T any](items []T, name func(T) string) map[string]T {
	out := make(map[string]T, len(items))
	for _, item := range items {
		out[name(item)] = item
	}
	return out
}

// compare returns an error unless the world is as a caller knows it. grace is how
// old an unfinished start may be.
func (m *model) compare(w world, grace time.Duration) error {
	for _, s := range m.subjects {
		if err := m.compareSubject(w, s, grace); err != nil {
			return fmt.Errorf("workload %s, which is %s: %w", s.id, s.state, err)
		}
	}
	for name, claim := range m.claims {
		if err := claim.compare(w, name); err != nil {
			return fmt.Errorf("the claim %s, which is %s: %w", name, claim.state, err)
		}
	}
	for name := range w.pods {
		if !slices.ContainsFunc(m.subjects, func(s *subject) bool { return workload.PodName(s.id) == name }) {
			return fmt.Errorf("there is the Pod %s, which nobody started", name)
		}
	}
	for name, claim := range w.claims {
		if m.claims[name] == nil {
			return fmt.Errorf("there is the claim %s, which nobody asked for", name)
		}
		if len(claim.OwnerReferences) > 0 {
			return fmt.Errorf("the claim %s has owners: %v", name, claim.OwnerReferences)
		}
	}
	return nil
}

func (m *model) compareSubject(w world, s *subject, grace time.Duration) error {
	pod, ok := w.pods[workload.PodName(s.id)]
	switch {
	case s.state == gone && ok:
		return fmt.Errorf("its Pod is there: %v", pod.ObjectMeta)
	case s.state == gone, s.state == unknown && !ok:
		return nil
	case !ok:
		return fmt.Errorf("its Pod is not there")
	case pod.DeletionTimestamp != nil:
		return fmt.Errorf("its Pod is going")
	}
	spec, err := request.Parse(s.request)
	if err != nil {
		return err
	}
	if digest := pod.Annotations[workload.AnnotationDigest]; digest != spec.Digest {
		return fmt.Errorf("its Pod is of the request %s and not %s", digest, spec.Digest)
	}
	if isGated(pod) {
		if age := time.Since(pod.CreationTimestamp.Time); s.state == unknown && age < grace {
			return nil
		}
		return fmt.Errorf("its Pod is gated, since %s", pod.CreationTimestamp)
	}
	if s.shape.foreign {
		return fmt.Errorf("its Pod may run, and its claim is somebody else's")
	}
	if s.state == there && s.uid != "" && s.uid != string(pod.UID) {
		return fmt.Errorf("its Pod was %s and is now %s", s.uid, pod.UID)
	}
	if s.state == there {
		s.uid = string(pod.UID)
	}
	return m.compareOwned(w, s, pod)
}

// compareOwned looks for what goes with a Pod that may run.
func (m *model) compareOwned(w world, s *subject, pod corev1.Pod) error {
	for _, suffix := range []string{"-pull", "-inline-files"} {
		secret, ok := w.secrets[pod.Name+suffix]
		if ok != s.shape.secrets {
			return fmt.Errorf("the Secret %s: there is one: %v", pod.Name+suffix, ok)
		}
		if ok && !ownedOnlyBy(secret.OwnerReferences, pod) {
			return fmt.Errorf("the Secret %s is owned by %v and not by %s", secret.Name, secret.OwnerReferences, pod.UID)
		}
		for key, value := range secret.Data {
			if content := s.request.GetMain().GetEnv()[0].GetValue(); !strings.Contains(string(value), content) {
				return fmt.Errorf("the Secret %s has at %s not the content %q", secret.Name, key, content)
			}
		}
	}
	policy, ok := w.policies[pod.Name]
	if ok != m.policies {
		return fmt.Errorf("a NetworkPolicy: there is one: %v", ok)
	}
	if ok && !ownedOnlyBy(policy.OwnerReferences, pod) {
		return fmt.Errorf("the NetworkPolicy is owned by %v and not by %s", policy.OwnerReferences, pod.UID)
	}
	return nil
}

// compare looks at one claim, and remembers its UID: a claim that stays is the
// same.
func (c *claimState) compare(w world, name string) error {
	claim, ok := w.claims[name]
	ok = ok && claim.DeletionTimestamp == nil
	switch {
	case c.state == there && !ok:
		return fmt.Errorf("there is none")
	case c.state == gone && ok:
		return fmt.Errorf("there is one: %v", claim.ObjectMeta)
	case c.state == there && c.uid != "" && c.uid != string(claim.UID):
		return fmt.Errorf("it was %s and is now %s", c.uid, claim.UID)
	case c.state == there:
		c.uid = string(claim.UID)
	}
	return nil
}

// orphans returns an error if something is there whose Pod is not.
func (w world) orphans() error {
	alive := func(owners []metav1.OwnerReference) bool {
		return len(owners) == 1 && string(w.pods[owners[0].Name].UID) == string(owners[0].UID)
	}
	for name, secret := range w.secrets {
		if !alive(secret.OwnerReferences) {
			return fmt.Errorf("the Secret %s is left, of %v", name, secret.OwnerReferences)
		}
	}
	for name, policy := range w.policies {
		if !alive(policy.OwnerReferences) {
			return fmt.Errorf("the NetworkPolicy %s is left, of %v", name, policy.OwnerReferences)
		}
	}
	return nil
}

func ownedOnlyBy(owners []metav1.OwnerReference, pod corev1.Pod) bool {
	return len(owners) == 1 && owners[0].UID == pod.UID
}

func isGated(pod corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.SchedulingGates, func(g corev1.PodSchedulingGate) bool { return g.Name == applier.Gate })
}
