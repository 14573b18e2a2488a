// Package relation says which objects of the garden depend on which: one row for each edge of the graph, in one table (Watches),
// from which what is watched, the labels of metrics and docs/reference/graph.md come.
//
// A row is a pure function from an object of a watched kind to edges. The few rows that also look at another object name it in
// Needs; State keeps the little that they need of it and computes again what depends on it when it changes.
package relation
