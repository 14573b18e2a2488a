// Package node has the decisions about Nodes: whether their critical components are ready (critical.go,
// scheduling.go), the delay of their agents before they reconcile (delay.go), and the effect of the number of Nodes on
// spread constraints (spread.go).
package node
