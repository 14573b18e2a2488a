package networkpolicy

import (
	"context"
	"fmt"

	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-project/espalier/internal/controller/kit"
	"github.com/espalier-project/espalier/internal/controller/networkpolicy/desired"
)

// atOnce is the number of concurrent writes in one reconciliation (NP-8: in parallel). With the default of five
// workers, a target that serves other clients, too, can take them.
const atOnce = 4

// write executes a decision. All of it is attempted, whatever fails (NP-8).
func (r *Reconciler) write(ctx context.Context, d *desired.Decision) error {
	todo := make([]func() error, 0, len(d.Write)+len(d.Delete))
	for _, p := range d.Write {
		todo = append(todo, func() error { return r.ensure(ctx, p) })
	}
	for _, e := range d.Delete {
		todo = append(todo, func() error { return r.remove(ctx, e) })
	}
	return bounded(kit.Parallel(ctx, atOnce, len(todo), func(i int) error { return todo[i]() }))
}

// ensure creates or repairs a policy (NP-9: it is read, then created or patched).
func (r *Reconciler) ensure(ctx context.Context, p *desired.Policy) error {
	w := r.index.Begin(p.NamespacedName)
	var now *networkingv1.NetworkPolicy
	defer func() { r.index.End(w, now, "") }()
	if !r.index.Knows(p.NamespacedName) {
		object := p.Object()
		err := r.Client.Create(ctx, object)
		if err == nil {
			now = object
			return nil
		}
		if !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("creating NetworkPolicy %s: %w", p, err)
		}
	}
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		var err error
		now, err = r.patch(ctx, p)
		return err
	})
}

// patch brings a policy that is there to its form. The version that was read is a precondition: its labels said that it is ours.
func (r *Reconciler) patch(ctx context.Context, p *desired.Policy) (*networkingv1.NetworkPolicy, error) {
	present := &networkingv1.NetworkPolicy{}
	switch err := r.Client.Get(ctx, p.NamespacedName, present); {
	case apierrors.IsNotFound(err):
		object := p.Object()
		if err := r.Client.Create(ctx, object); err != nil {
			return nil, fmt.Errorf("creating NetworkPolicy %s: %w", p, err)
		}
		return object, nil
	case err != nil:
		return nil, fmt.Errorf("reading NetworkPolicy %s: %w", p, err)
	}
	// One without labels of a Service was ours, or is taken over as it has our name; one of another Service is left to it.
	if of := desired.ServiceOfPolicy(present); of != p.Service && of.Name != "" && of.Namespace != "" {
		return nil, fmt.Errorf("NetworkPolicy %s already exists for Service %s and is not changed", p, of)
	}
	if desired.DigestOf(present) == p.Digest() {
		return present, nil
	}
	changed := present.DeepCopy()
	p.Apply(changed)
	if err := kit.Patch(ctx, r.Client, present, changed); err != nil {
		return nil, fmt.Errorf("patching NetworkPolicy %s: %w", p, err)
	}
	return changed, nil
}

// remove deletes a policy in the form in which it was known, whose labels named the Service, and no other.
func (r *Reconciler) remove(ctx context.Context, e desired.Existing) error {
	w := r.index.Begin(e.NamespacedName)
	var deleted types.UID
	defer func() { r.index.End(w, nil, deleted) }()
	object := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: e.Name}}
	err := r.Client.Delete(ctx, object, client.Preconditions{UID: ptr.To(e.UID), ResourceVersion: ptr.To(e.ResourceVersion)})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting NetworkPolicy %s: %w", e, err)
	}
	deleted = e.UID
	return nil
}
