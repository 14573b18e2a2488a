package controller

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/ownership"
	"github.com/espalier-project/espalier/internal/managedresource/plan"
	"github.com/espalier-project/espalier/internal/managedresource/target"
)

// claims are the claims of other ManagedResources on objects, by their inventories.
type claims struct {
	tracker *objects.Tracker
	scopes  scopes
	byID    map[objects.ID][]ownership.Claim
}

// scopes are the scopes of kinds as they are now.
type scopes struct {
	clusterScoped map[schema.GroupKind]bool
	// failed has the kinds whose scope cannot be told.
	failed map[schema.GroupKind]error
}

// mayBeClusterScoped reports whether entries for objects of a kind may be about one object though they name different
// namespaces.
func (s scopes) mayBeClusterScoped(kind schema.GroupKind) bool {
	return s.clusterScoped[kind] || s.failed[kind] != nil
}

// at returns the ID by which claims on an object are found.
func (s scopes) at(id objects.ID) objects.ID { return id.Scoped(s.mayBeClusterScoped(id.GroupKind())) }

// claimsOn finds objects in the inventories of other ManagedResources that this instance has to do with.
func (r *Reconciler) claimsOn(ctx context.Context, except objects.Owner, entries []objects.Entry) (claims, error) {
	if len(entries) == 0 {
		return claims{}, nil
	}
	all := claims{tracker: r.Tracker, scopes: r.scopesOf(ctx, entries), byID: map[objects.ID][]ownership.Claim{}}
	wanted := make(map[objects.ID]struct{}, len(entries))
	for _, entry := range entries {
		wanted[all.scopes.at(entry.ID)] = struct{}{}
	}
	err := r.Statuses.All(ctx, except, func(other *resourcesv1alpha1.ManagedResource) {
		if !r.Class.Handles(other) {
			return // Its objects may be in another cluster.
		}
		for i := range other.Status.Resources { // Without a copy: an inventory may be long, and few of its objects wanted.
			entry := &other.Status.Resources[i]
			id := objects.IDOfEntry(entry)
			at := all.scopes.at(id)
			if _, found := wanted[at]; found {
				all.byID[at] = append(all.byID[at], ownership.Claim{
					Owner: ownerOf(other), ID: id, Keeps: r.keeps(other),
					CreateOnly: createdOnce(entry), Ignored: meta.Ignored(other),
				})
			}
		}
	})
	if err != nil {
		return claims{}, fmt.Errorf("looking for other ManagedResources that have the objects: %w", err)
	}
	return all, nil
}

// scopesOf returns the scopes of the kinds of entries. A kind that is not served has no objects in any scope.
func (r *Reconciler) scopesOf(ctx context.Context, entries []objects.Entry) scopes {
	all := scopes{map[schema.GroupKind]bool{}, map[schema.GroupKind]error{}}
	for _, entry := range entries {
		kind := entry.GroupKind()
		if _, asked := all.clusterScoped[kind]; asked {
			continue
		}
		_, scope, err := r.kindOf(ctx, entry.Reference)
		all.clusterScoped[kind] = scope == plan.ScopeCluster
		if err != nil && !target.Gone(err) {
			all.failed[kind] = err
		}
	}
	return all
}

// on returns the claims on an object; a run that is under way at present may end some of them. err is not nil if another ManagedResource has
// an object of that name in another namespace, and the scope of the kind cannot be told: it may be the same object, which
// must not be deleted then.
func (c claims) on(id objects.ID) (all []ownership.Claim, err error) {
	for _, claim := range c.byID[c.scopes.at(id)] {
		if failed := c.scopes.failed[id.GroupKind()]; failed != nil && claim.ID != id {
			err = failed
			continue
		}
		claim.Keeps = claim.Keeps && !c.tracker.Releases(claim.Owner, claim.ID)
		all = append(all, claim)
	}
	return all, err
}

// keeps reports whether this instance keeps the objects of a ManagedResource. Objects that another class has still to
// clean up may be in another cluster.
func (r *Reconciler) keeps(mr *resourcesv1alpha1.ManagedResource) bool {
	return mr.DeletionTimestamp == nil && r.Class.Responsible(mr) && !r.Class.WaitsForHandOver(mr)
}

// keepsObject reports whether a ManagedResource that has an object in its inventory goes on having it.
func (r *Reconciler) keepsObject(mr *resourcesv1alpha1.ManagedResource, id objects.ID) bool {
	return r.keeps(mr) && !r.Tracker.Releases(ownerOf(mr), id)
}
