// Package cluster is the live side of Kubernetes, for reading only: a watched
// cache of the runner's Pods that answers every question about a workload.
package cluster
