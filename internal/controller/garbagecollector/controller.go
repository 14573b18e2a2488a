// Package garbagecollector deletes collectable ConfigMaps and Secrets of the target that nothing refers to any more:
// a run marks them for deletion, and a later run deletes those that are still marked (phases.go). Package references
// finds the references, and package marked removes the mark of an object when this process handles an object that
// refers to it.
package garbagecollector

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	ctrlsource "sigs.k8s.io/controller-runtime/pkg/source"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/api/resources/v1alpha1/references"
	internalreferences "github.com/espalier-project/espalier/internal/controller/garbagecollector/references"
	"github.com/espalier-project/espalier/internal/controller/kit"
	"github.com/espalier-project/espalier/internal/marked"
)

// Name is the name of the controller in logs and metrics.
const Name = "garbage-collector"

const (
	// parallel is the number of concurrent writes.
	parallel = 10
	// page is the number of objects in a page of a list: only one page is in memory at a time.
	page = 500
	// shown bounds the objects in an error or a log line, and maxText the text of each, in bytes, so that a line
	// stays readable.
	shown   = 10
	maxText = 512
)

// Options are the dependencies of the collector; all are required.
type Options struct {
	Config config.GarbageCollectorControllerConfig
	// Namespaces are the namespaces of the collection; empty means all (COM-3). References do not cross namespaces,
	// so the collector finds all of them.
	Namespaces []string
	// Target lists and deletes in the target, without a cache: a cache that is behind must not cause a deletion.
	Target client.Client
	// Marked receives the marked objects, and has the references of the objects that this process handles.
	Marked  *marked.Set
	Clock   clock.PassiveClock
	Metrics *Metrics
}

// Reconciler collects garbage. It has one worker.
type Reconciler struct {
	Options
	refused refusals
	retries *retries
}

// New returns a reconciler.
func New(o Options) *Reconciler {
	if len(o.Namespaces) == 0 {
		o.Namespaces = []string{metav1.NamespaceAll}
	}
	return &Reconciler{Options: o, refused: refusals{}, retries: newRetries()}
}

// Reconcile marks unreferenced objects. It deletes a marked object if two complete lists of all holders, the second
// right before the deletion, have no reference to it. An incomplete list ends the run, and nothing is deleted (GC-4,
// GC-6). A failed write is retried after a back-off (GC-10).
func (r *Reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	r.retries.later.Store(0)
	all, err := r.candidates(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	r.learn(ctx, all)
	tried, failed := r.refused.split(all, r.Clock.Now())
	unused, used, err := r.look(ctx, tried)
	if err != nil {
		return reconcile.Result{}, err
	}
	failed = append(failed, r.each(ctx, withMark(used), r.unmark)...)
	free, doomed := r.judge(unused)
	failed = append(failed, r.each(ctx, free, r.mark)...)
	if doomed, used, err = r.look(ctx, doomed); err != nil {
		return reconcile.Result{}, err
	}
	failed = append(failed, r.each(ctx, withMark(used), r.unmark)...)
	failed = append(failed, r.each(ctx, doomed, r.delete)...)
	if len(failed) > 0 {
		r.retries.later.Store(int64(r.later()))
		return reconcile.Result{}, aggregate(failed)
	}
	r.Metrics.done(r.Clock.Now())
	return reconcile.Result{RequeueAfter: r.Config.SyncPeriod.Duration}, nil
}

// later returns the delay of the next run after a run in which deletions failed.
func (r *Reconciler) later() time.Duration {
	period := r.Config.SyncPeriod.Duration
	if r.refused.first() {
		return min(retryDeletions, period)
	}
	return period
}

// collectable selects the objects to collect, including those that the controller of ManagedResources leaves to the
// collector (GC-13): otherwise they would stay forever (GC-15).
var collectable = labels.SelectorFromSet(nil).Add(*mustValue(labels.NewRequirement(resourcesv1alpha1.LabelGarbageCollectableReference, selection.In,
	[]string{"1", "t", "T", "true", "TRUE", "True"})))

// mustValue panics on an error. All values are constants, so an error is a bug.
func mustValue[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// candidate is a collectable object, with the fields of the listed version that the decision needs.
type candidate struct {
	marked.Key
	uid              types.UID
	version, content string
	standing         internalreferences.Standing
	marked           bool
}

func (c candidate) object() object { return object{c.Key, c.uid} }

// candidates lists the metadata of collectable objects that are old enough (GC-4, GC-5).
func (r *Reconciler) candidates(ctx context.Context) ([]candidate, error) {
	var all []candidate
	for _, kind := range []struct {
		references.Kind
		list, plural string
	}{{references.Secret, "SecretList", "secrets"}, {references.ConfigMap, "ConfigMapList", "configmaps"}} {
		list := func() client.ObjectList {
			l := &metav1.PartialObjectMetadataList{}
			l.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind.list))
			return l
		}
		err := r.pages(ctx, list, func(l client.ObjectList) error {
			for i := range l.(*metav1.PartialObjectMetadataList).Items {
				object := &l.(*metav1.PartialObjectMetadataList).Items[i]
				if internalreferences.Old(&object.ObjectMeta, r.Config.MinimumAge.Duration, r.Clock.Now()) {
					all = append(all, r.candidate(kind.Kind, &object.ObjectMeta))
				}
			}
			return nil
		}, client.MatchingLabelsSelector{Selector: collectable})
		if err != nil {
			return nil, fmt.Errorf("failed listing %s: %w", kind.plural, err)
		}
	}
	return all, nil
}

func (r *Reconciler) candidate(kind references.Kind, o *metav1.ObjectMeta) candidate {
	return candidate{
		Key: marked.Key{Kind: kind, Namespace: o.Namespace, Name: o.Name}, uid: o.UID, version: o.ResourceVersion, content: internalreferences.Content(o),
		standing: internalreferences.StandingOf(o, internalreferences.Grace(r.Config.SyncPeriod.Duration), r.Clock.Now()), marked: internalreferences.Marked(o),
	}
}

// references lists all holders and returns their references. An error means that the references are incomplete. If a
// holder cannot be read, all objects in its namespace count as used (T3-8).
func (r *Reconciler) references(ctx context.Context) (*internalreferences.Graph, error) {
	graph, specs := internalreferences.NewGraph(), ptr.Deref(r.Config.ScanPodSpecs, true)
	unread := &unreadable{}
	for _, kind := range holders {
		if kind.specsOnly && !specs {
			continue
		}
		err := r.pages(ctx, kind.list(specs), func(list client.ObjectList) error {
			return addReferences(graph, kind, list, unread)
		})
		if kind.optional && isUnknown(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("failed listing objects of gvk %s: %w", kind.gvk, err)
		}
	}
	r.Metrics.unreadable(unread.count)
	unread.log(log.FromContext(ctx))
	return graph, nil
}

// pages lists page by page in all namespaces.
func (r *Reconciler) pages(ctx context.Context, list func() client.ObjectList, visit func(client.ObjectList) error, options ...client.ListOption) error {
	for _, namespace := range r.Namespaces {
		token := ""
		for {
			found := list()
			if err := r.Target.List(ctx, found, append([]client.ListOption{client.InNamespace(namespace), client.Limit(page), client.Continue(token)}, options...)...); err != nil {
				return err
			}
			if err := visit(found); err != nil {
				return err
			}
			if token = found.GetContinue(); token == "" {
				break
			}
		}
	}
	return nil
}

// aggregate returns the errors of deletions in the format of the contract (GC-10). If there are many, it includes
// only some.
func aggregate(errs []error) error {
	switch len(errs) {
	case 0:
		return nil
	case 1:
		return fmt.Errorf("Could not delete all unused resources: 1 error occurred: %w", errs[0]) //nolint:revive,staticcheck // The contract gives the text.
	}
	texts := make([]string, 0, shown+1)
	for _, err := range errs[:min(len(errs), shown)] {
		texts = append(texts, err.Error())
	}
	if more := len(errs) - shown; more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return fmt.Errorf("Could not delete all unused resources: %d errors occurred: [%s]", len(errs), strings.Join(texts, ", ")) //nolint:revive,staticcheck // The contract gives the text.
}

// AddToManager adds the controller with one worker and one initial request. A run takes no longer than the period
// (GC-1, GC-3).
func (r *Reconciler) AddToManager(mgr manager.Manager, cacheSyncTimeout time.Duration) error {
	return kit.Add(mgr, Name, controller.Options{
		Reconciler: r, MaxConcurrentReconciles: 1, CacheSyncTimeout: cacheSyncTimeout, ReconciliationTimeout: r.Config.SyncPeriod.Duration, RateLimiter: r.retries,
	}, ctrlsource.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		queue.Add(reconcile.Request{})
		return nil
	}))
}
