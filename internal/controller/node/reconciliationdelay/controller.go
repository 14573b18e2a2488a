// Package reconciliationdelay spreads the reconciliations of node agents: it gives each Node a delay. Package node
// computes the delays.
package reconciliationdelay

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	"github.com/espalier-project/espalier/internal/controller/kit"
	"github.com/espalier-project/espalier/internal/controller/node"
)

// Name is the name of the controller in logs and metrics.
const Name = "node-agent-reconciliation-delay"

// parallel is the number of concurrent writes: a new Node among 10,000 changes the delay of each.
const parallel = 10

// Options are the dependencies of the controller; all are required.
type Options struct {
	Config config.NodeAgentReconciliationDelayControllerConfig
	// Kept reads the metadata of Nodes and of Secrets with configurations. It may be a cache: a Node is written only
	// in the version that was read, and a late change is an event.
	Kept client.Reader
	// Live reads and writes the metadata of single Nodes.
	Live client.Client
}

// Reconciler sets the delays of all Nodes.
type Reconciler struct{ Options }

// New returns a reconciler.
func New(o Options) *Reconciler { return &Reconciler{o} }

// Reconcile computes the delays of all Nodes, and writes those that differ (NRD-4, NRD-8). It keeps no state: it
// compares the present annotation of a Node with the wanted one.
func (r *Reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	nodes, secrets := list("NodeList"), list("SecretList")
	if err := r.Kept.List(ctx, nodes); err != nil {
		return reconcile.Result{}, fmt.Errorf("failed listing nodes from store: %w", err)
	}
	if err := r.Kept.List(ctx, secrets, client.InNamespace(metav1.NamespaceSystem), client.MatchingLabels{node.LabelRole: node.RoleConfiguration}); err != nil {
		return reconcile.Result{}, fmt.Errorf("failed to filter out nodes with serial operating system config reconciliation: %w", err)
	}
	delays := node.Delays(nodes.Items, node.Serial(secrets.Items), r.Config.MinDelay.Duration, r.Config.MaxDelay.Duration)

	differ := slices.DeleteFunc(nodes.Items, func(n metav1.PartialObjectMetadata) bool {
		return n.Annotations[node.AnnotationDelay] == delays[n.Name]
	})
	return reconcile.Result{}, errors.Join(kit.Parallel(ctx, parallel, len(differ), func(i int) error {
		n := &differ[i]
		if err := r.write(ctx, n, delays[n.Name]); err != nil {
			return fmt.Errorf("node %s: %w", n.Name, err)
		}
		return nil
	})...)
}

// write sets or removes the annotation of a Node. If another writer has changed the Node, only this write is
// repeated.
func (r *Reconciler) write(ctx context.Context, known *metav1.PartialObjectMetadata, delay string) error {
	current := known.DeepCopy()
	current.SetGroupVersionKind(nodeKind)
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		changed := current.DeepCopy()
		if delay == "" {
			delete(changed.Annotations, node.AnnotationDelay)
		} else {
			metav1.SetMetaDataAnnotation(&changed.ObjectMeta, node.AnnotationDelay, delay)
		}
		err := kit.Patch(ctx, r.Live, current, changed)
		if apierrors.IsConflict(err) {
			if err := r.Live.Get(ctx, client.ObjectKeyFromObject(known), current); err != nil {
				return err
			}
		}
		return err
	})
	return client.IgnoreNotFound(err)
}

var (
	nodeKind   = corev1.SchemeGroupVersion.WithKind("Node")
	secretKind = corev1.SchemeGroupVersion.WithKind("Secret")
)

func list(kind string) *metav1.PartialObjectMetadataList {
	l := &metav1.PartialObjectMetadataList{}
	l.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	return l
}
