// Package tokeninvalidator labels Secrets with static tokens of ServiceAccounts that no client should use, so that
// the webhook of the same name makes the tokens invalid. Package invalidation decides which Secrets these are. The
// controller writes labels only (TI-10).
package tokeninvalidator

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	"github.com/espalier-project/espalier/internal/controller/kit"
	"github.com/espalier-project/espalier/internal/controller/tokeninvalidator/invalidation"
)

// Name is the name of the controller in logs and metrics.
const Name = "token-invalidator"

// Options are the dependencies of the controller; all are required.
type Options struct {
	Config config.SwitchableControllerConfig
	// Live reads and writes the target without a cache: a cache that is behind must not invalidate a token that was
	// just mounted.
	Live client.Client
	// Kept lists the metadata of Secrets, to find the Secrets of a ServiceAccount. It may be a cache: a late Secret
	// is an event of its own.
	Kept client.Reader
}

// Reconciler labels Secrets.
type Reconciler struct {
	Options
	// waiting is the back-off of Secrets that are in use.
	waiting workqueue.TypedRateLimiter[reconcile.Request]
}

// New returns a reconciler.
func New(o Options) *Reconciler { return &Reconciler{Options: o, waiting: kit.Retries()} }

// Reconcile labels one Secret, or checks it again later if its token is to be invalidated and is in use (TI-3 to
// TI-9).
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	secret := &corev1.Secret{}
	if err := r.Live.Get(ctx, request.NamespacedName, secret); err != nil {
		r.waiting.Forget(request)
		return reconcile.Result{}, kit.Retrieving(err)
	}
	name := invalidation.AccountOf(secret.Annotations)
	if name == "" || secret.Type != corev1.SecretTypeServiceAccountToken || secret.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	account := &corev1.ServiceAccount{}
	if err := r.Live.Get(ctx, client.ObjectKey{Namespace: secret.Namespace, Name: name}, account); err != nil {
		if apierrors.IsNotFound(err) {
			return reconcile.Result{}, nil // Its Secrets are deleted with it.
		}
		return reconcile.Result{}, fmt.Errorf("could not fetch ServiceAccount: %w", err)
	}
	consider := invalidation.Wanted(account)
	user := ""
	if _, considered := secret.Labels[invalidation.LabelConsider]; consider && !considered {
		var err error
		if user, err = r.user(ctx, secret); err != nil {
			return reconcile.Result{}, err
		}
	}
	if err := r.label(ctx, secret, consider && user == ""); err != nil {
		return reconcile.Result{}, err
	}
	if user != "" {
		log.FromContext(ctx).V(1).Info("A static token is in use and not invalidated yet", "pod", user)
		return reconcile.Result{RequeueAfter: r.waiting.When(request)}, nil
	}
	r.waiting.Forget(request)
	return reconcile.Result{}, nil
}

// user returns the name of a Pod that uses a Secret; empty if there is none (TI-8).
func (r *Reconciler) user(ctx context.Context, secret *corev1.Secret) (string, error) {
	pods := &corev1.PodList{}
	if err := r.Live.List(ctx, pods, client.InNamespace(secret.Namespace)); err != nil {
		return "", fmt.Errorf("could not list Pods: %w", err)
	}
	return invalidation.InUse(secret.Name, pods.Items), nil
}

// label writes the labels if they differ, with the version that was checked as precondition (TI-5, TI-6, TI-7, TI-9).
func (r *Reconciler) label(ctx context.Context, secret *corev1.Secret, consider bool) error {
	labels, differ := invalidation.Labelled(secret.Labels, consider)
	if consider && labels[invalidation.LabelPurpose] != invalidation.Purpose {
		log.FromContext(ctx).Info("The webhook does not see this Secret: its label for the purpose has another value", "label", invalidation.LabelPurpose)
	}
	if !differ {
		return nil
	}
	changed := secret.DeepCopy()
	changed.Labels = labels
	if err := kit.Patch(ctx, r.Live, secret, changed); err != nil {
		return fmt.Errorf("labelling the Secret: %w", err)
	}
	return nil
}
