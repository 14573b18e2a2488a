package steps

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

// Claims are the claims of other ManagedResources on objects, by their inventories.
type Claims struct {
	tracker *objects.Tracker
	scopes  scopes
	byID    map[objects.ID][]ownership.Claim
}

// scopes are the scopes of kinds as they are now.
type scopes struct {
	clusterScoped map[schema.GroupKind]bool
	// failed has the kinds whose scope is unknown.
	failed map[schema.GroupKind]error
}

// mayBeClusterScoped reports whether entries for objects of a kind may be about one object though they name different
// namespaces.
func (s scopes) mayBeClusterScoped(kind schema.GroupKind) bool {
	return s.clusterScoped[kind] || s.failed[kind] != nil
}

// at returns the key of the claims on an object: its ID, without the namespace if that may mean nothing.
func (s scopes) at(id objects.ID) objects.ID {
	if s.mayBeClusterScoped(id.GroupKind()) {
		id.Namespace = ""
	}
	return id
}

// ClaimsOn finds objects in the inventories of other ManagedResources that this instance has to do with.
func (o Owners) ClaimsOn(ctx context.Context, except objects.Owner, entries []objects.Entry) (Claims, error) {
	if len(entries) == 0 {
		return Claims{}, nil
	}
	all := Claims{tracker: o.Tracker, scopes: o.scopesOf(ctx, entries), byID: map[objects.ID][]ownership.Claim{}}
	wanted := make(map[objects.ID]struct{}, len(entries))
	for _, entry := range entries {
		wanted[all.scopes.at(entry.ID)] = struct{}{}
	}
	err := o.Statuses.All(ctx, except, func(other *resourcesv1alpha1.ManagedResource) {
		if !o.Class.Handles(other) {
			return // Its objects may be in another cluster.
		}
		for i := range other.Status.Resources { // Without a copy: an inventory may be long, and few of its objects wanted.
			entry := &other.Status.Resources[i]
			id := objects.IDOfEntry(entry)
			at := all.scopes.at(id)
			if _, found := wanted[at]; found {
				all.byID[at] = append(all.byID[at], ownership.Claim{
					Owner: OwnerOf(other), ID: id, Keeps: o.keeps(other),
					CreateOnly: CreatedOnce(entry), Ignored: meta.Ignored(other),
				})
			}
		}
	})
	if err != nil {
		return Claims{}, fmt.Errorf("looking for other ManagedResources that have the objects: %w", err)
	}
	return all, nil
}

// scopesOf returns the scopes of the kinds of entries. A kind that is not served has no objects in any scope.
func (o Owners) scopesOf(ctx context.Context, entries []objects.Entry) scopes {
	all := scopes{map[schema.GroupKind]bool{}, map[schema.GroupKind]error{}}
	for _, entry := range entries {
		kind := entry.GroupKind()
		if _, found := all.clusterScoped[kind]; found {
			continue
		}
		_, scope, err := o.Places.kindOf(ctx, entry.Reference)
		all.clusterScoped[kind] = scope == plan.ScopeCluster
		if err != nil && !target.Gone(err) {
			all.failed[kind] = err
		}
	}
	return all
}

// On returns the claims on an object; a run that is under way at present may end some of them. err is not nil if another
// ManagedResource has an object of that name in another namespace, and the scope of the kind is unknown: it may be the
// same object, which must not be deleted then.
func (c Claims) On(id objects.ID) (all []ownership.Claim, err error) {
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
