package objects

import (
	"slices"
	"unique"

	"k8s.io/apimachinery/pkg/types"
)

// PodSource is a kind of watch that reports Pods and ReplicaSets.
type PodSource uint8

const (
	// Labelled is a watch of objects with the managed-by label: managed Deployments hand the label on to their
	// ReplicaSets and Pods.
	Labelled PodSource = iota
	// Unfiltered is a watch of a whole namespace: the Pods of a Deployment that is created only once have no label
	// (MR-30).
	Unfiltered
	podSources
)

// PodSource reports the Pods of a Deployment.
func (r Ref) PodSource() PodSource {
	if r.Unlabelled {
		return Unfiltered
	}
	return Labelled
}

// podCounts are the counts by the source that reported the Pods.
//
// Invariant: a count has only what its own source reported. In a namespace, one watch of each source reports Pods, and
// one reports ReplicaSets. Objects that the list of the watch does not have, or that leave the watch by losing the
// label, are gone from the count; when the watch ends, all that it reported is gone. None of that changes the other
// count: the same Pod may be in both counts.
type podCounts [podSources]podCount

// podCount counts the Pods of Deployments: a Pod belongs to a ReplicaSet, a ReplicaSet to a Deployment (MRP-10,
// MRB-30).
type podCount struct {
	sets   map[types.UID]replicaSet
	pods   map[types.UID]pod
	counts map[types.UID]int64       // relevant Pods by ReplicaSet
	setsOf map[types.UID][]types.UID // ReplicaSets by Deployment
}

type replicaSet struct {
	deployment types.UID
	namespace  unique.Handle[string]
}

type pod struct {
	replicaSet types.UID
	counts     bool
	namespace  unique.Handle[string]
}

func newPodCounts() podCounts {
	var counts podCounts
	for source := range counts {
		counts[source] = podCount{map[types.UID]replicaSet{}, map[types.UID]pod{}, map[types.UID]int64{},
			map[types.UID][]types.UID{}}
	}
	return counts
}

// SetReplicaSet reports a ReplicaSet and the Deployment that controls it; an empty deployment means that it is gone.
func (l *Tracker) SetReplicaSet(from PodSource, namespace string, uid, deployment types.UID) {
	l.mu.Lock()
	known := &l.pods[from]
	before := known.sets[uid].deployment
	if before == deployment {
		l.mu.Unlock()
		return
	}
	if before != "" {
		sets := slices.DeleteFunc(known.setsOf[before], func(set types.UID) bool { return set == uid })
		if len(sets) == 0 {
			delete(known.setsOf, before)
		} else {
			known.setsOf[before] = sets
		}
		delete(known.sets, uid)
	}
	if deployment != "" {
		known.sets[uid] = replicaSet{deployment, unique.Make(namespace)}
		known.setsOf[deployment] = append(known.setsOf[deployment], uid)
	}
	owners := l.ownersByUIDLocked(before, deployment)
	l.mu.Unlock()
	l.notify(owners)
}

// SetPod reports a Pod, the ReplicaSet that controls it and whether it counts; an empty ReplicaSet means that it is
// gone.
func (l *Tracker) SetPod(from PodSource, namespace string, uid, replicaSet types.UID, counts bool) {
	l.mu.Lock()
	known := &l.pods[from]
	before, after := known.pods[uid], pod{replicaSet, counts, unique.Make(namespace)}
	if before == after {
		l.mu.Unlock()
		return
	}
	if before.counts {
		if known.counts[before.replicaSet]--; known.counts[before.replicaSet] == 0 {
			delete(known.counts, before.replicaSet)
		}
	}
	delete(known.pods, uid)
	if replicaSet != "" {
		known.pods[uid] = after
		if counts {
			known.counts[replicaSet]++
		}
	}
	owners := l.ownersByUIDLocked(known.sets[before.replicaSet].deployment, known.sets[replicaSet].deployment)
	l.mu.Unlock()
	l.notify(owners)
}

// Pods returns the number of Pods of a Deployment that count, according to one source.
func (l *Tracker) Pods(from PodSource, deployment types.UID) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := &l.pods[from]
	var count int64
	for _, set := range known.setsOf[deployment] {
		count += known.counts[set]
	}
	return count
}

// ForgetPods forgets the Pods of a namespace, or of all namespaces if it is empty, that a complete list of the source
// does not have.
func (l *Tracker) ForgetPods(from PodSource, namespace string, listed map[types.UID]struct{}) {
	l.mu.Lock()
	known := &l.pods[from]
	var gone []types.UID
	for uid, p := range known.pods {
		if _, found := listed[uid]; !found && (namespace == "" || p.namespace.Value() == namespace) {
			gone = append(gone, uid)
		}
	}
	l.mu.Unlock()
	for _, uid := range gone {
		l.SetPod(from, namespace, uid, "", false)
	}
}

// ForgetReplicaSets is ForgetPods for ReplicaSets.
func (l *Tracker) ForgetReplicaSets(from PodSource, namespace string, listed map[types.UID]struct{}) {
	l.mu.Lock()
	known := &l.pods[from]
	var gone []types.UID
	for uid, set := range known.sets {
		if _, found := listed[uid]; !found && (namespace == "" || set.namespace.Value() == namespace) {
			gone = append(gone, uid)
		}
	}
	l.mu.Unlock()
	for _, uid := range gone {
		l.SetReplicaSet(from, namespace, uid, "")
	}
}

// ownersByUIDLocked finds the ManagedResources of Deployments.
func (l *Tracker) ownersByUIDLocked(uids ...types.UID) []Owner {
	var owners []Owner
	for _, uid := range uids {
		if r := l.deployments[uid]; r != nil {
			for _, o := range r.owners {
				owners = append(owners, o.owner)
			}
		}
	}
	return owners
}

// setUIDLocked records the identity of an object.
func (l *Tracker) setUIDLocked(r *record, uid types.UID) {
	if r.uid == uid {
		return
	}
	if r.kind.Value().Kind == "Deployment" {
		delete(l.deployments, r.uid)
		if uid != "" {
			l.deployments[uid] = r
		}
	}
	r.uid = uid
}

func (l *Tracker) notify(owners []Owner) {
	notify := notices{verdicts: owners}
	notify.send(l)
}
