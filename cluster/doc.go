// Package cluster is the live side of Kubernetes, for reading only: watched
// caches of the runner's Pods and claims that answer every question about a
// workload or a volume, and show a caller's own writes.
package cluster
