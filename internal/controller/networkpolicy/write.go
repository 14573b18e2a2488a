package networkpolicy

import (
	"context"
	"fmt"

	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-project/espalier/internal/controller/kit"
	"github.com/espalier-project/espalier/internal/controller/networkpolicy/desired"
)

// atOnce is the number of concurrent writes in one reconciliation (NP-8: in parallel). With five workers, the
// default, a target that other clients also use can handle them.
const atOnce = 4

// write executes a decision. It attempts all writes, even if some fail (NP-8).
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
	if !r.index.Knows(p.NamespacedName) {
		if err := r.create(ctx, p); !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return retry.RetryOnConflict(retry.DefaultRetry, func() error { return r.patch(ctx, p) })
}

func (r *Reconciler) create(ctx context.Context, p *desired.Policy) error {
	if err := r.Client.Create(ctx, p.Object()); err != nil {
		return fmt.Errorf("creating NetworkPolicy %s: %w", p, err)
	}
	return nil
}

// patch updates an existing policy. Its precondition is the version that was read, as the labels of that version
// decide whether the policy may be changed.
func (r *Reconciler) patch(ctx context.Context, p *desired.Policy) error {
	present := &networkingv1.NetworkPolicy{}
	switch err := r.Client.Get(ctx, p.NamespacedName, present); {
	case apierrors.IsNotFound(err):
		return r.create(ctx, p)
	case err != nil:
		return fmt.Errorf("reading NetworkPolicy %s: %w", p, err)
	}
	// A policy without labels of a Service has lost them, or is adopted by its name; a policy of another Service is
	// not changed.
	if of := desired.ServiceOfPolicy(present); of != p.Service && of.Name != "" && of.Namespace != "" {
		return fmt.Errorf("NetworkPolicy %s already exists for Service %s and is not changed", p, of)
	}
	if desired.DigestOf(present) == p.Digest() {
		return nil
	}
	changed := present.DeepCopy()
	p.Apply(changed)
	if err := kit.Patch(ctx, r.Client, present, changed); err != nil {
		return fmt.Errorf("patching NetworkPolicy %s: %w", p, err)
	}
	return nil
}

// remove deletes a policy, if it is still the object with the known UID and version.
func (r *Reconciler) remove(ctx context.Context, e desired.Existing) error {
	object := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: e.Name}}
	err := r.Client.Delete(ctx, object, client.Preconditions{UID: ptr.To(e.UID), ResourceVersion: ptr.To(e.ResourceVersion)})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting NetworkPolicy %s: %w", e, err)
	}
	return nil
}
