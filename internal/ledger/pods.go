package ledger

import (
	"k8s.io/apimachinery/pkg/types"
)

// podCounts counts the Pods of Deployments: a Pod belongs to a ReplicaSet, a ReplicaSet to a Deployment (MRP-10, MRB-30).
type podCounts struct {
	deploymentOf map[types.UID]types.UID   // by ReplicaSet
	pods         map[types.UID]pod         // by Pod
	countOf      map[types.UID]int64       // relevant Pods by ReplicaSet
	setsOf       map[types.UID][]types.UID // ReplicaSets by Deployment
}

type pod struct {
	replicaSet types.UID
	counts     bool
}

func newPodCounts() podCounts {
	return podCounts{map[types.UID]types.UID{}, map[types.UID]pod{}, map[types.UID]int64{}, map[types.UID][]types.UID{}}
}

// SetReplicaSet reports a ReplicaSet and the Deployment that controls it; an empty deployment means that it is gone.
func (l *Ledger) SetReplicaSet(replicaSet, deployment types.UID) {
	l.mu.Lock()
	before := l.pods.deploymentOf[replicaSet]
	if before == deployment {
		l.mu.Unlock()
		return
	}
	if before != "" {
		sets := l.pods.setsOf[before]
		for i, set := range sets {
			if set == replicaSet {
				sets = append(sets[:i:i], sets[i+1:]...)
				break
			}
		}
		if len(sets) == 0 {
			delete(l.pods.setsOf, before)
		} else {
			l.pods.setsOf[before] = sets
		}
		delete(l.pods.deploymentOf, replicaSet)
	}
	if deployment != "" {
		l.pods.deploymentOf[replicaSet] = deployment
		l.pods.setsOf[deployment] = append(l.pods.setsOf[deployment], replicaSet)
	}
	owners := l.ownersByUIDLocked(before, deployment)
	l.mu.Unlock()
	l.notify(owners)
}

// SetPod reports a Pod, the ReplicaSet that controls it and whether it counts; an empty ReplicaSet means that it is gone.
func (l *Ledger) SetPod(uid, replicaSet types.UID, counts bool) {
	l.mu.Lock()
	before, after := l.pods.pods[uid], pod{replicaSet, counts}
	if before == after {
		l.mu.Unlock()
		return
	}
	if before.counts {
		if l.pods.countOf[before.replicaSet]--; l.pods.countOf[before.replicaSet] == 0 {
			delete(l.pods.countOf, before.replicaSet)
		}
	}
	delete(l.pods.pods, uid)
	if replicaSet != "" {
		l.pods.pods[uid] = after
		if counts {
			l.pods.countOf[replicaSet]++
		}
	}
	owners := l.ownersByUIDLocked(l.pods.deploymentOf[before.replicaSet], l.pods.deploymentOf[replicaSet])
	l.mu.Unlock()
	l.notify(owners)
}

// Pods returns how many Pods of a Deployment count.
func (l *Ledger) Pods(deployment types.UID) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	var count int64
	for _, set := range l.pods.setsOf[deployment] {
		count += l.pods.countOf[set]
	}
	return count
}

// KnownPods and KnownReplicaSets return what is on record, so that a complete list can tell what is gone.
func (l *Ledger) KnownPods() []types.UID {
	l.mu.Lock()
	defer l.mu.Unlock()
	return keysOf(l.pods.pods)
}

// KnownReplicaSets is described at KnownPods.
func (l *Ledger) KnownReplicaSets() []types.UID {
	l.mu.Lock()
	defer l.mu.Unlock()
	return keysOf(l.pods.deploymentOf)
}

func keysOf[V any](m map[types.UID]V) []types.UID {
	keys := make([]types.UID, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	return keys
}

// ownersByUIDLocked finds the ManagedResources of Deployments.
func (l *Ledger) ownersByUIDLocked(uids ...types.UID) []Owner {
	var owners []Owner
	for _, uid := range uids {
		if key, found := l.deployments[uid]; found {
			if r := l.records[key]; r != nil {
				owners = append(owners, r.owners...)
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
	if r.ref.Kind == "Deployment" {
		delete(l.deployments, r.uid)
		if uid != "" {
			l.deployments[uid] = r.ref.Key
		}
	}
	r.uid = uid
}

func (l *Ledger) notify(owners []Owner) {
	for _, owner := range owners {
		l.onVerdict(owner)
	}
}
