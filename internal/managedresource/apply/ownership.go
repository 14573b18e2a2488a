package apply

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/ownership"
	"github.com/espalier-project/espalier/internal/managedresource/steps"
)

// ownerOfOrigin returns the ManagedResource that owns an object by its origin, if it is not this one; zero if this
// one may write the object (MRB-16). An object that is new in the inventory is taken over, once.
func (a *attempt) ownerOfOrigin(ctx context.Context, origin ownership.Origin) (owner objects.Owner, err error) {
	takesOver := a.desired.IsNew() && !a.desired.CreateOnly
	if takesOver || origin.Source != ownership.ThisSource || origin.Owner == steps.OwnerOf(a.mr) {
		return owner, nil
	}
	latest, err := a.Statuses.Get(ctx, origin.Owner)
	if err != nil {
		return owner, client.IgnoreNotFound(err)
	}
	entry := a.Owners.Entry(latest, a.desired.Ref.ID, a.desired.GetNamespace() == "")
	if entry != nil && !steps.CreatedOnce(entry) {
		owner = origin.Owner
	}
	return owner, nil
}

// ownerOfMissing is ownerOfOrigin for a missing object; verified is the ManagedResource that verified it last.
func (a *attempt) ownerOfMissing(ctx context.Context, verified objects.Owner) (objects.Owner, error) {
	owner, err := a.ownerOfOrigin(ctx, ownership.Origin{Source: ownership.ThisSource, Owner: verified})
	if err == nil && owner != (objects.Owner{}) {
		_, err = a.Target.Served(ctx, a.desired.GroupVersionKind())
	}
	return owner, err
}

// noteTakeover reports an object that carries the origin of another ManagedResource and is about to be written.
func (a *attempt) noteTakeover(ctx context.Context) {
	origin := a.live.GetAnnotations()[resourcesv1alpha1.AnnotationOrigin]
	if named, err := meta.ParseOrigin(origin); err == nil && named.Key != steps.OwnerOf(a.mr) && !a.desired.CreateOnly {
		a.Metrics.Takeovers.Inc()
		log.FromContext(ctx).Info("Taking over an object of another ManagedResource", "resource", a.desired.Name(), "origin",
			origin)
	}
}
