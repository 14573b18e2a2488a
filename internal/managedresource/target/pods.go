package target

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-project/espalier/internal/managedresource/healthcheck"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
)

const (
	// countPause is the shortest time between two counts of the Pods of a namespace, so that one count serves many
	// Deployments after a start, or while they are rolled out.
	countPause = time.Second
	// countedBySelector is the largest number of Deployments whose Pods are listed separately. For more, all Pods of
	// the namespace are listed once.
	countedBySelector = 3
)

// podCounter counts the Pods of Deployments whose status reports the end of a roll-out (MRP-10, MRT-13).
type podCounter struct {
	client  *Client
	tracker *objects.Tracker

	// namespaces maps each namespace to its *counting.
	namespaces sync.Map
}

// counting serializes the counts in a namespace; turn has a value during a count, and began is the start of the last
// one.
type counting struct {
	turn  chan struct{}
	began time.Time
}

// count counts the Pods of all Deployments of a namespace that need it, and reports them to the tracker, unless
// another caller has done so since the call.
func (c *podCounter) count(ctx context.Context, namespace string) error {
	called := time.Now()
	known, _ := c.namespaces.LoadOrStore(namespace, &counting{turn: make(chan struct{}, 1)})
	n := known.(*counting)
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	select {
	case n.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-n.turn }()
	if n.began.After(called) {
		return nil
	}
	select {
	case <-time.After(time.Until(n.began.Add(countPause))):
	case <-ctx.Done():
		return ctx.Err()
	}
	began := time.Now()
	deployments := c.tracker.Deployments(namespace)
	if len(deployments) > countedBySelector {
		if err := c.countAll(ctx, namespace, "", deployments); err != nil {
			return err
		}
	} else {
		for _, deployment := range deployments {
			if err := c.countAll(ctx, namespace, deployment.Health.Selector, []objects.Deployment{deployment}); err != nil {
				return err
			}
		}
	}
	n.began = began
	return nil
}

func anyVersion(string) error { return nil }

// countAll counts, among the Pods that a selector matches, the Pods of Deployments: those of their ReplicaSets, and
// those without a controller, which are about to be adopted (MRB-30).
func (c *podCounter) countAll(ctx context.Context, namespace, selector string, deployments []objects.Deployment) error {
	options := metav1.ListOptions{LabelSelector: selector}
	bySet, orphans := map[types.UID]int64{}, []labels.Set{}
	pods := paging{
		start: func() { clear(bySet); orphans = nil },
		begin: anyVersion,
		each: func(object runtime.Object) error {
			pod, isPod := object.(*corev1.Pod)
			if !isPod || !healthcheck.CountsForDeployment(&pod.Status) {
				return nil
			}
			if controller := metav1.GetControllerOf(pod); controller != nil {
				bySet[controller.UID]++
			} else {
				orphans = append(orphans, pod.Labels)
			}
			return nil
		},
	}
	// The Pods are listed before the ReplicaSets: a Pod that is created later belongs to a later version of its
	// Deployment.
	if _, err := listPages(ctx, options, pagesOf(c.client.metrics, c.client.core.Pods(namespace).List), pods); err != nil {
		return err
	}
	byDeployment := map[types.UID]int64{}
	sets := paging{
		start: func() { clear(byDeployment) },
		begin: anyVersion,
		each: func(object runtime.Object) error {
			set, isSet := object.(*metav1.PartialObjectMetadata)
			if !isSet {
				return nil
			}
			if controller := metav1.GetControllerOf(set); controller != nil {
				byDeployment[controller.UID] += bySet[set.UID]
			}
			return nil
		},
	}
	list := c.client.metadata.Resource(replicaSets).Namespace(namespace).List
	if _, err := listPages(ctx, options, pagesOf(c.client.metrics, list), sets); err != nil {
		return err
	}
	for _, deployment := range deployments {
		number := byDeployment[deployment.UID]
		if matches, err := labels.Parse(deployment.Health.Selector); err == nil && !matches.Empty() {
			for _, orphan := range orphans {
				if matches.Matches(orphan) {
					number++
				}
			}
		}
		c.tracker.PodsCounted(deployment, number)
	}
	return nil
}
