package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

const (
	provisionerName     = "devcluster/hostdir"
	provisionedBy       = "pv.kubernetes.io/provisioned-by"
	selectedNode        = "volume.kubernetes.io/selected-node"
	claimKey, volumeKey = "claim", "volume"
)

// provisioner makes a folder and a PersistentVolume for each claim of its class,
// and removes both when the claim is gone. It is the only one, so there is no
// leader to elect.
type provisioner struct {
	client  kubernetes.Interface
	root    string // folder of the volumes
	node    string
	claims  corelisters.PersistentVolumeClaimLister
	volumes corelisters.PersistentVolumeLister
	classes storagelisters.StorageClassLister
	queue   workqueue.TypedRateLimitingInterface[string]
}

func provision(ctx context.Context, args []string) error {
	fs := flag.NewFlagSet("provisioner", flag.ContinueOnError)
	kubeconfig := fs.String("kubeconfig", "", "kubeconfig")
	root := fs.String("root", "", "folder for the volumes")
	node := fs.String("node", "", "node name")
	if err := fs.Parse(args); err != nil {
		return err
	}
	client, err := newClient(*kubeconfig)
	if err != nil {
		return err
	}
	f := informers.NewSharedInformerFactory(client, 30*time.Second)
	p := &provisioner{
		client: client, root: *root, node: *node,
		claims:  f.Core().V1().PersistentVolumeClaims().Lister(),
		volumes: f.Core().V1().PersistentVolumes().Lister(),
		classes: f.Storage().V1().StorageClasses().Lister(),
		queue:   workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]()),
	}
	for kind, informer := range map[string]cache.SharedIndexInformer{
		claimKey:  f.Core().V1().PersistentVolumeClaims().Informer(),
		volumeKey: f.Core().V1().PersistentVolumes().Informer(),
	} {
		if _, err := informer.AddEventHandler(p.enqueue(kind)); err != nil {
			return fmt.Errorf("watching: %w", err)
		}
	}
	f.Start(ctx.Done())
	f.WaitForCacheSync(ctx.Done())
	stop := context.AfterFunc(ctx, p.queue.ShutDown)
	defer stop()
	p.work(ctx)
	return nil
}

func (p *provisioner) enqueue(kind string) cache.ResourceEventHandlerFuncs {
	add := func(o any) {
		if key, err := cache.MetaNamespaceKeyFunc(o); err == nil {
			p.queue.Add(kind + ":" + key)
		}
	}
	return cache.ResourceEventHandlerFuncs{AddFunc: add, UpdateFunc: func(_, o any) { add(o) }}
}

func (p *provisioner) work(ctx context.Context) {
	for {
		item, done := p.queue.Get()
		if done {
			return
		}
		kind, key, _ := strings.Cut(item, ":")
		do := p.serveClaim
		if kind == volumeKey {
			do = p.serveVolume
		}
		if err := do(ctx, key); err != nil {
			log.Printf("%s: %v", item, err)
			p.queue.AddRateLimited(item)
		} else {
			p.queue.Forget(item)
		}
		p.queue.Done(item)
	}
}

// serveClaim makes the volume of a claim that waits for one.
func (p *provisioner) serveClaim(ctx context.Context, key string) error {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return err
	}
	claim, err := p.claims.PersistentVolumeClaims(namespace).Get(name)
	if err != nil || claim.Spec.VolumeName != "" || claim.DeletionTimestamp != nil || claim.Spec.StorageClassName == nil {
		return nil // gone, or not waiting
	}
	class, err := p.classes.Get(*claim.Spec.StorageClassName)
	if err != nil || class.Provisioner != provisionerName {
		return nil // somebody else's
	}
	waits := class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer
	if waits && claim.Annotations[selectedNode] == "" {
		return nil // no Pod wants it yet
	}
	pv := p.volumeFor(claim, class)
	dir := pv.Spec.Local.Path
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	if err := os.Chmod(dir, 0o777); err != nil { // whatever the umask took
		return err
	}
	_, err = p.client.CoreV1().PersistentVolumes().Create(ctx, pv, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func (p *provisioner) volumeFor(claim *v1.PersistentVolumeClaim, class *storagev1.StorageClass) *v1.PersistentVolume {
	name := "pvc-" + string(claim.UID)
	here := v1.NodeSelectorRequirement{Key: v1.LabelHostname, Operator: v1.NodeSelectorOpIn, Values: []string{p.node}}
	return &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{provisionedBy: provisionerName}},
		Spec: v1.PersistentVolumeSpec{
			StorageClassName:              class.Name,
			PersistentVolumeReclaimPolicy: *class.ReclaimPolicy,
			AccessModes:                   claim.Spec.AccessModes,
			Capacity:                      v1.ResourceList{v1.ResourceStorage: claim.Spec.Resources.Requests[v1.ResourceStorage]},
			ClaimRef:                      &v1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID},
			// "local" rather than "hostPath": fsGroup is applied to it
			PersistentVolumeSource: v1.PersistentVolumeSource{Local: &v1.LocalVolumeSource{Path: filepath.Join(p.root, name)}},
			NodeAffinity: &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
				MatchExpressions: []v1.NodeSelectorRequirement{here}}}}},
		},
	}
}

// serveVolume removes a released volume and its folder.
func (p *provisioner) serveVolume(ctx context.Context, name string) error {
	pv, err := p.volumes.Get(name)
	if err != nil || pv.Annotations[provisionedBy] != provisionerName || pv.Status.Phase != v1.VolumeReleased ||
		pv.Spec.PersistentVolumeReclaimPolicy != v1.PersistentVolumeReclaimDelete {
		return nil
	}
	// nothing but a folder that serveClaim made
	dir := filepath.Join(p.root, name)
	if pv.Spec.Local != nil && pv.Spec.Local.Path == dir && strings.HasPrefix(name, "pvc-") {
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	err = p.client.CoreV1().PersistentVolumes().Delete(ctx, name, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
