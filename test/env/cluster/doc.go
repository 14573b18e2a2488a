// Package cluster starts real clusters for tests, benchmarks and the local run: etcd, kube-apiserver and, if wanted,
// kube-controller-manager as processes, on free loopback ports, with TLS, RBAC and a ServiceAccount issuer.
//
// Several run side by side. Each logs to files in its folder, and none outlives the process that started it.
package cluster
