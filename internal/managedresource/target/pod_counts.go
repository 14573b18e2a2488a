package target

import (
	"slices"
	"sync"
	"unique"

	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-project/espalier/internal/managedresource/objects"
)

// podSource is a kind of watch that reports Pods and ReplicaSets.
type podSource uint8

const (
	// labelled is a watch of objects with the managed-by label: managed Deployments hand the label on to their
	// ReplicaSets and Pods.
	labelled podSource = iota
	// unfiltered is a watch of a whole namespace: the Pods of a Deployment that is created only once have no label
	// (MR-30).
	unfiltered
	podSources
)

// podSourceOf returns the watch that reports the Pods of a Deployment.
func podSourceOf(deployment objects.Ref) podSource {
	if deployment.Unlabelled {
		return unfiltered
	}
	return labelled
}

// podCounts are the counts by the source that reported the Pods.
//
// Invariant: a count has only what its own source reported. In a namespace, one watch of each source reports Pods, and
// one reports ReplicaSets. Objects that the list of the watch does not have, or that leave the watch by losing the
// label, are gone from the count; when the watch ends, all that it reported is gone. None of that changes the other
// count: the same Pod may be in both counts.
type podCounts struct {
	// changed is called outside mu, but maybe under the lock of Watches, with Deployments whose Pods changed.
	changed func(deployments ...types.UID)

	mu sync.Mutex
	by [podSources]podCount
}

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

func (s replicaSet) in() string { return s.namespace.Value() }

func (p pod) in() string { return p.namespace.Value() }

func newPodCounts(changed func(deployments ...types.UID)) *podCounts {
	counts := &podCounts{changed: changed}
	for source := range counts.by {
		counts.by[source] = podCount{map[types.UID]replicaSet{}, map[types.UID]pod{}, map[types.UID]int64{},
			map[types.UID][]types.UID{}}
	}
	return counts
}

// setReplicaSet reports a ReplicaSet and the Deployment that controls it; an empty deployment means that it is gone.
func (c *podCounts) setReplicaSet(from podSource, namespace string, uid, deployment types.UID) {
	if before := c.recordReplicaSet(from, namespace, uid, deployment); before != deployment {
		c.tell(before, deployment)
	}
}

// recordReplicaSet returns the Deployment that controlled the ReplicaSet before.
func (c *podCounts) recordReplicaSet(from podSource, namespace string, uid, deployment types.UID) types.UID {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := &c.by[from]
	before := known.sets[uid].deployment
	if before == deployment {
		return before
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
	return before
}

func (c *podCounts) tell(was, is types.UID) {
	if was != "" || is != "" {
		c.changed(was, is)
	}
}

// setPod reports a Pod, the ReplicaSet that controls it and whether it counts; an empty ReplicaSet means that it is
// gone.
func (c *podCounts) setPod(from podSource, namespace string, uid, replicaSet types.UID, counts bool) {
	c.tell(c.recordPod(from, uid, pod{replicaSet, counts, unique.Make(namespace)}))
}

// recordPod returns the Deployments whose counts may have changed; empty ones if none has.
func (c *podCounts) recordPod(from podSource, uid types.UID, after pod) (was, is types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := &c.by[from]
	before := known.pods[uid]
	if before == after {
		return "", ""
	}
	if before.counts {
		if known.counts[before.replicaSet]--; known.counts[before.replicaSet] == 0 {
			delete(known.counts, before.replicaSet)
		}
	}
	delete(known.pods, uid)
	if after.replicaSet != "" {
		known.pods[uid] = after
		if after.counts {
			known.counts[after.replicaSet]++
		}
	}
	return known.sets[before.replicaSet].deployment, known.sets[after.replicaSet].deployment
}

// of returns the number of Pods of a Deployment that count, according to one source.
func (c *podCounts) of(from podSource, deployment types.UID) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := &c.by[from]
	var count int64
	for _, set := range known.setsOf[deployment] {
		count += known.counts[set]
	}
	return count
}

// forgetPods forgets the Pods of a namespace, or of all namespaces if it is empty, that a complete list of the source
// does not have.
func (c *podCounts) forgetPods(from podSource, namespace string, listed map[types.UID]struct{}) {
	for _, uid := range unlisted(c, func() map[types.UID]pod { return c.by[from].pods }, namespace, listed) {
		c.setPod(from, namespace, uid, "", false)
	}
}

// forgetReplicaSets is forgetPods for ReplicaSets.
func (c *podCounts) forgetReplicaSets(from podSource, namespace string, listed map[types.UID]struct{}) {
	for _, uid := range unlisted(c, func() map[types.UID]replicaSet { return c.by[from].sets }, namespace, listed) {
		c.setReplicaSet(from, namespace, uid, "")
	}
}

func unlisted[T interface{ in() string }](c *podCounts, known func() map[types.UID]T, namespace string,
	listed map[types.UID]struct{}) (uids []types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for uid, object := range known() {
		if _, found := listed[uid]; !found && (namespace == "" || object.in() == namespace) {
			uids = append(uids, uid)
		}
	}
	return uids
}
