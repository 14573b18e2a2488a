// Package criticalcomponents removes the taint from Nodes whose critical components are scheduled and ready. Package
// node has the rules.
package criticalcomponents

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	"github.com/espalier-project/espalier/internal/controller/kit"
	"github.com/espalier-project/espalier/internal/controller/node"
)

// Name is the name of the controller in logs and metrics.
const Name = "node-critical-components"

// Options are the dependencies of the controller; all are required.
type Options struct {
	Config config.NodeCriticalComponentsControllerConfig
	// Kept reads Nodes, critical DaemonSets and critical Pods, the latter also by fieldNode. It may be a cache: a
	// taint is removed only from the version of the Node that was checked, and a late event triggers another check.
	Kept client.Reader
	// CSINodes reads CSINodes from the target without a cache, Nodes writes to it.
	CSINodes client.Reader
	Nodes    client.Writer
	Notes    *kit.Notes
}

// Reconciler removes the taint from Nodes.
type Reconciler struct{ Options }

// New returns a reconciler.
func New(o Options) *Reconciler { return &Reconciler{o} }

// Reconcile removes the taint from a Node that is ready for it, or checks the Node again after a while.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	n := &corev1.Node{}
	err := r.Kept.Get(ctx, request.NamespacedName, n)
	gone := apierrors.IsNotFound(err)
	if err != nil && !gone {
		return reconcile.Result{}, kit.Retrieving(err)
	}
	if gone || !node.Tainted(n) {
		r.Notes.Forget(n.UID)
		return reconcile.Result{}, nil
	}
	reason, message, err := r.missing(ctx, n)
	if err != nil {
		return reconcile.Result{}, err
	}
	if reason != "" {
		r.Notes.Record(ctx, reference(n), corev1.EventTypeWarning, reason, message)
		return reconcile.Result{RequeueAfter: r.Config.Backoff.Duration}, nil
	}
	return reconcile.Result{}, r.untaint(ctx, n)
}

// missing returns the first of the three checks that fails (NCC-9), as reason and message of an Event.
func (r *Reconciler) missing(ctx context.Context, n *corev1.Node) (reason, message string, err error) {
	labelled := client.MatchingLabels{node.LabelCritical: "true"}
	sets, pods := &appsv1.DaemonSetList{}, &corev1.PodList{}
	if err := r.Kept.List(ctx, sets, client.InNamespace(node.NamespaceCritical), labelled); err != nil {
		return "", "", fmt.Errorf("failed listing node-critical DaemonSets on node: %w", err)
	}
	if err := r.Kept.List(ctx, pods, client.InNamespace(node.NamespaceCritical), labelled, client.MatchingFields{fieldNode: n.Name}); err != nil {
		return "", "", fmt.Errorf("failed listing node-critical Pods on node: %w", err)
	}
	if unscheduled := node.Unscheduled(n, sets.Items, pods.Items); len(unscheduled) > 0 {
		return "UnscheduledNodeCriticalDaemonSets", "Node-critical DaemonSets found that were not scheduled to Node yet: " + strings.Join(unscheduled, ", "), nil
	}
	if unready := node.Unready(pods.Items); len(unready) > 0 {
		return "UnreadyNodeCriticalPods", "Unready node-critical Pods found on Node: " + strings.Join(unready, ", "), nil
	}
	required := node.RequiredDrivers(pods.Items)
	if len(required) == 0 {
		return "", "", nil
	}
	drivers := &storagev1.CSINode{}
	if err := r.CSINodes.Get(ctx, client.ObjectKey{Name: n.Name}, drivers); client.IgnoreNotFound(err) != nil {
		return "", "", fmt.Errorf("failed getting existing drivers from CSINode object for node: %w", err)
	}
	if missing := node.MissingDrivers(required, drivers); len(missing) > 0 {
		return "UnreadyRequiredCSIDrivers", fmt.Sprintf("Unready required CSI drivers for Node: %v", missing), nil
	}
	return "", "", nil
}

// untaint removes the taint from the version of the Node that was checked, so that a taint added meanwhile is kept
// (NCC-10).
func (r *Reconciler) untaint(ctx context.Context, n *corev1.Node) error {
	free := n.DeepCopy()
	free.Spec.Taints = node.Untainted(n)
	err := kit.Patch(ctx, r.Nodes, n, free)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("removing the taint: %w", err)
	}
	log.FromContext(ctx).Info("All node-critical components are ready, the taint is removed")
	r.Notes.Record(ctx, reference(n), corev1.EventTypeNormal, "NodeCriticalComponentsReady", "All node-critical components got ready, removing taint")
	r.Notes.Forget(n.UID)
	return nil
}

func reference(n *corev1.Node) corev1.ObjectReference {
	return corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: n.Name, UID: n.UID}
}

func workers(cfg config.NodeCriticalComponentsControllerConfig) int {
	return ptr.Deref(cfg.ConcurrentSyncs, 5)
}
