// Package node says what is decided about Nodes: whether their critical components are ready (critical.go, scheduling.go), how long the
// agents of nodes wait before they reconcile (delay.go), and what the number of Nodes means for spread constraints (spread.go).
package node
