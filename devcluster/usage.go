package main

const usage = `devcluster runs a real single-node Kubernetes on this machine, built from Go
modules: etcd, API server, controllers, scheduler, kubelet, kube-proxy,
containerd, runc, network policies, volumes, two registries. The whole node
lives in namespaces of its own; the machine's network, firewall and mounts stay
as they are, and only 127.0.0.1 listens.

Usage: go run . COMMAND   (in this folder; later also STATE/bin/devcluster COMMAND)

  up [--simulated]     start a cluster, or say that a healthy one is up. The first
                       time everything is built (12 minutes on two cores). What
                       is broken is torn down and begun afresh.
                       --simulated: no root; the API server is real, the node and
                       its Pods are simulated by kwok (no logs, exec, volumes)
  down [--purge]       end it and remove its data; --purge: binaries, images, logs too
  status               processes, memory, logs, health (exit code 1 if not healthy)
  restart-api [--down DURATION]
                       end the API server as an upgrade does, and start it again
                       after the duration. --check only says whether it can be done
  kubeconfig           print the path of the kubeconfig
  push TARBALL REF     push an image (docker save, docker archive): REF is the name
                       that Pods use, e.g. docker.io/library/tool:1. With
                       127.0.0.1:5000/... it goes to the private registry (a
                       pull secret with dev / devpass is needed)
  image dind           make Docker in Docker of Debian's packages and push it as
                       docker:27-dind; later starts push it again
  netns -- CMD...      run a command inside the node's network (and mounts), e.g.
                       for another test host: netns -- ip netns add outside
  crictl -- ARG...     ask containerd
  help

Environment:
  DEVCLUSTER_DIR          state: binaries, logs, data, kubeconfig
                          (default: ~/.cache/k8s-runner/devcluster)
  DEVCLUSTER_API_PORT     API server on 127.0.0.1 (16443)
  DEVCLUSTER_MIRROR_PORT  registry of public images on 127.0.0.1 (15001)
Two clusters on one machine need only different values of all three.

To begin:
  go run . up
  export KUBECONFIG=$(go run . kubeconfig)
  kubectl run hello --image=busybox --image-pull-policy=IfNotPresent -- sleep 1000
  kubectl exec hello -- ip addr
  go run . down
`
