// Package rollout decides when changed content of ManagedResources that belong together is applied: wave after wave, as
// long as the members that have it pass the gate.
//
// A group is a ConfigMap, and its members are the ManagedResources that name it. Decide is a function of the group, of
// the state of its members, and of the time. There is no memory of a roll-out: whether a wave is through, whether the
// group is halted, and whose turn it is follow from the cluster, so that a restart, another leader or a deleted
// ConfigMap loses nothing.
//
// The package has pure functions only: the callers pass the members and the time.
package rollout
