// Package networkpolicy manages the NetworkPolicies of Services. Package desired decides which ones; this package
// fills its index with watches, and writes the differences.
package networkpolicy

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	"github.com/espalier-project/espalier/internal/cluster"
	"github.com/espalier-project/espalier/internal/controller/kit"
	"github.com/espalier-project/espalier/internal/controller/networkpolicy/desired"
)

const (
	// Name is the name of the controller in logs and metrics.
	Name = "networkpolicy"
	// reporter is the source of Events (OBS-34). Their reasons are too long label keys, and problems of a Service.
	reporter      = "networkpolicy-controller"
	reasonTooLong = "PodLabelSelectorKey(s)TooLong"
	reasonProblem = "NetworkPolicyProblem"
)

// Options are the dependencies of the controller; all are required.
type Options struct {
	Config config.NetworkPolicyControllerConfig
	// Namespaces are the watched namespaces of the target; none means all.
	Namespaces []string
	// Target is the connection for watches of the target; Client reads and writes it without a cache.
	Target cluster.Connection
	Client client.Client
	Clock  clock.WithTicker
	Log    logr.Logger
}

// Reconciler reconciles the policies of a Service.
type Reconciler struct {
	Options
	index *desired.Index
	// problems are Events about invalid annotations and failed policies, keys are Events about label keys that are
	// too long (NP-23). Both are about the Service.
	problems, keys *kit.Notes
}

// New returns a reconciler with an empty index. It fails if a selector cannot be parsed (OPB-7: the configuration's
// validation also refuses that).
func New(o Options) (*Reconciler, error) {
	shape := desired.Options{
		Watched: o.Namespaces, OnlyForExistingPods: ptr.Deref(o.Config.OnlyForExistingPods, false),
		Descriptions: desired.DescriptionFormat(o.Config.DescriptionFormat),
	}
	for i := range o.Config.NamespaceSelectors {
		selector, err := metav1.LabelSelectorAsSelector(&o.Config.NamespaceSelectors[i])
		if err != nil {
			return nil, fmt.Errorf("failed parsing namespace selector %s to labels.Selector: %w", o.Config.NamespaceSelectors[i].String(), err)
		}
		shape.Handled = append(shape.Handled, selector)
	}
	if c := o.Config.IngressControllerSelector; c != nil {
		shape.IngressController = &desired.IngressController{Namespace: c.Namespace, PodSelector: c.PodSelector}
	}
	return &Reconciler{
		Options: o, index: desired.NewIndex(shape), problems: kit.NewNotes(o.Client, o.Clock, reporter), keys: kit.NewNotes(o.Client, o.Clock, reporter),
	}, nil
}

// Index returns the reconciler's index. Tests and benchmarks fill it without watches.
func (r *Reconciler) Index() *desired.Index { return r.index }

// AddToManager adds the controller and its watches.
func (r *Reconciler) AddToManager(mgr manager.Manager, cacheSyncTimeout time.Duration) error {
	watches, err := newWatches(r)
	if err != nil {
		return err
	}
	return kit.Add(mgr, Name, controller.TypedOptions[desired.Request]{
		Reconciler: r, MaxConcurrentReconciles: *r.Config.ConcurrentSyncs, CacheSyncTimeout: cacheSyncTimeout,
		ReconciliationTimeout: kit.Timeout, RateLimiter: kit.RetriesOf[desired.Request](), LogConstructor: r.logger,
	}, watches)
}

func (r *Reconciler) logger(request *desired.Request) logr.Logger {
	logger := r.Log.WithValues("controller", Name)
	if request == nil {
		return logger
	}
	logger = logger.WithValues("namespace", request.Service.Namespace, "name", request.Service.Name)
	switch {
	case request.Peer != "":
		return logger.WithValues("clients", request.Peer)
	case request.Policy != types.NamespacedName{}:
		return logger.WithValues("policy", request.Policy.String())
	}
	return logger
}

// Reconcile writes the differences. The event of each write enqueues its policy again.
func (r *Reconciler) Reconcile(ctx context.Context, request desired.Request) (reconcile.Result, error) {
	d := r.index.Decide(request)
	r.notify(ctx, request, &d)
	if len(d.Delete) > 0 {
		if err := r.gone(ctx, request, &d); err != nil {
			return reconcile.Result{}, err
		}
	}
	if err := r.write(ctx, &d); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, problemsOf(d.Problems)
}

// problemsOf returns an error that is not retried: a change of the Service, or of the conflicting object, triggers
// the next run.
func problemsOf(problems []desired.Problem) error {
	if len(problems) == 0 {
		return nil
	}
	return reconcile.TerminalError(joined(problems))
}

func joined(problems []desired.Problem) error {
	all := make([]error, 0, len(problems))
	for _, p := range problems {
		all = append(all, p)
	}
	return bounded(all)
}

// notify records Events about problems that the author of the Service can solve. They are in the target, where the
// author looks for them. A request for some of the policies records none, as it finds only some of the problems.
func (r *Reconciler) notify(ctx context.Context, request desired.Request, d *desired.Decision) {
	if d.Service == nil || !request.All() {
		return
	}
	about := corev1.ObjectReference{APIVersion: "v1", Kind: "Service", Namespace: d.Service.Namespace, Name: d.Service.Name, UID: d.Service.UID}
	if len(d.Problems) == 0 {
		r.problems.Forget(d.Service.UID)
	} else {
		r.problems.Record(ctx, about, corev1.EventTypeWarning, reasonProblem, joined(d.Problems).Error())
	}
	if d.Long == "" {
		r.keys.Forget(d.Service.UID)
		return
	}
	long, short := map[string]string{d.Long: desired.Allowed}, map[string]string{d.Short: desired.Allowed}
	log.FromContext(ctx).V(1).Info("Usual pod label selector contained at least one key exceeding 63 characters - it had to be mutated", "key", d.Long, "mutated", d.Short)
	r.keys.Record(ctx, about, corev1.EventTypeWarning, reasonTooLong, fmt.Sprintf("Usual pod label selector has at least one key exceeding 63 characters and had to be mutated - "+
		"consider shortening the namespace name or the service name (%v was mutated to %v)", long, short))
}

// gone verifies that a Service that no watch has reported does not exist, before its policies are deleted.
func (r *Reconciler) gone(ctx context.Context, request desired.Request, d *desired.Decision) error {
	if d.Service != nil {
		return nil
	}
	service := &metav1.PartialObjectMetadata{}
	service.SetGroupVersionKind(serviceKind)
	switch err := r.Client.Get(ctx, request.Service, service); {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("reading Service %s before its policies are deleted: %w", request.Service, err)
	case service.DeletionTimestamp != nil:
		return nil // NP-3: its policies are deleted with it.
	}
	return fmt.Errorf("Service %s exists, but its event has not arrived yet; its policies stay", request.Service)
}

// shown is the maximum number of errors in a message.
const shown = 5

// bounded joins at most shown errors, and counts the others.
func bounded(all []error) error {
	if len(all) > shown {
		all = append(all[:shown:shown], fmt.Errorf("and %d more", len(all)-shown))
	}
	return errors.Join(all...)
}
