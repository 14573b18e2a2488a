package ledger

import (
	"slices"
	"unique"

	"k8s.io/apimachinery/pkg/types"
)

// podCounts counts the Pods of Deployments: a Pod belongs to a ReplicaSet, a ReplicaSet to a Deployment (MRP-10, MRB-30).
type podCounts struct {
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
	return podCounts{map[types.UID]replicaSet{}, map[types.UID]pod{}, map[types.UID]int64{}, map[types.UID][]types.UID{}}
}

// SetReplicaSet reports a ReplicaSet and the Deployment that controls it; an empty deployment means that it is gone.
func (l *Ledger) SetReplicaSet(namespace string, uid, deployment types.UID) {
	l.mu.Lock()
	before := l.pods.sets[uid].deployment
	if before == deployment {
		l.mu.Unlock()
		return
	}
	if before != "" {
		sets := slices.DeleteFunc(l.pods.setsOf[before], func(set types.UID) bool { return set == uid })
		if len(sets) == 0 {
			delete(l.pods.setsOf, before)
		} else {
			l.pods.setsOf[before] = sets
		}
		delete(l.pods.sets, uid)
	}
	if deployment != "" {
		l.pods.sets[uid] = replicaSet{deployment, unique.Make(namespace)}
		l.pods.setsOf[deployment] = append(l.pods.setsOf[deployment], uid)
	}
	owners := l.ownersByUIDLocked(before, deployment)
	l.mu.Unlock()
	l.notify(owners)
}

// SetPod reports a Pod, the ReplicaSet that controls it and whether it counts; an empty ReplicaSet means that it is gone.
func (l *Ledger) SetPod(namespace string, uid, replicaSet types.UID, counts bool) {
	l.mu.Lock()
	before, after := l.pods.pods[uid], pod{replicaSet, counts, unique.Make(namespace)}
	if before == after {
		l.mu.Unlock()
		return
	}
	if before.counts {
		if l.pods.counts[before.replicaSet]--; l.pods.counts[before.replicaSet] == 0 {
			delete(l.pods.counts, before.replicaSet)
		}
	}
	delete(l.pods.pods, uid)
	if replicaSet != "" {
		l.pods.pods[uid] = after
		if counts {
			l.pods.counts[replicaSet]++
		}
	}
	owners := l.ownersByUIDLocked(l.pods.sets[before.replicaSet].deployment, l.pods.sets[replicaSet].deployment)
	l.mu.Unlock()
	l.notify(owners)
}

// Pods returns how many Pods of a Deployment count.
func (l *Ledger) Pods(deployment types.UID) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	var count int64
	for _, set := range l.pods.setsOf[deployment] {
		count += l.pods.counts[set]
	}
	return count
}

// ForgetPods forgets the Pods of a namespace, of all of them if it is empty, that a complete list does not have.
func (l *Ledger) ForgetPods(namespace string, listed map[types.UID]struct{}) {
	l.mu.Lock()
	var gone []types.UID
	for uid, p := range l.pods.pods {
		if _, found := listed[uid]; !found && (namespace == "" || p.namespace.Value() == namespace) {
			gone = append(gone, uid)
		}
	}
	l.mu.Unlock()
	for _, uid := range gone {
		l.SetPod(namespace, uid, "", false)
	}
}

// ForgetReplicaSets is ForgetPods for ReplicaSets.
func (l *Ledger) ForgetReplicaSets(namespace string, listed map[types.UID]struct{}) {
	l.mu.Lock()
	var gone []types.UID
	for uid, set := range l.pods.sets {
		if _, found := listed[uid]; !found && (namespace == "" || set.namespace.Value() == namespace) {
			gone = append(gone, uid)
		}
	}
	l.mu.Unlock()
	for _, uid := range gone {
		l.SetReplicaSet(namespace, uid, "")
	}
}

// ownersByUIDLocked finds the ManagedResources of Deployments.
func (l *Ledger) ownersByUIDLocked(uids ...types.UID) []Owner {
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

// setUIDLocked notes the identity of an object.
func (l *Ledger) setUIDLocked(r *record, uid types.UID) {
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

func (l *Ledger) notify(owners []Owner) {
	for _, owner := range owners {
		l.onVerdict(owner)
	}
}
