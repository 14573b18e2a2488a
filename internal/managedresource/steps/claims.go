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

// scopes has the present scope of each kind.
type scopes map[schema.GroupKind]kindScope

// kindScope is the scope of a kind; failed is the error if the scope is unknown.
type kindScope struct {
	clusterScoped bool
	failed        error
}

// at returns the key of the claims on an object: its ID, without the namespace if entries that name different
// namespaces may be about one object.
func (s scopes) at(id objects.ID) objects.ID {
	if its := s[id.GroupKind()]; its.clusterScoped || its.failed != nil {
		id.Namespace = ""
	}
	return id
}

// ClaimsOn finds the objects of entries in the inventories of the ManagedResources that this instance handles, other
// than except.
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
	all := scopes{}
	for _, entry := range entries {
		kind := entry.GroupKind()
		if _, found := all[kind]; found {
			continue
		}
		_, scope, err := o.Locations.kindOf(ctx, entry.Reference)
		if target.Gone(err) {
			err = nil
		}
		all[kind] = kindScope{scope == plan.ScopeCluster, err}
	}
	return all
}

// On returns the claims on an object; a run in progress may end some of them. err is not nil if another
// ManagedResource has an object of that name in another namespace, and the scope of the kind is unknown: it may be
// the same object, which must not be deleted then.
func (c Claims) On(id objects.ID) (all []ownership.Claim, err error) {
	for _, claim := range c.byID[c.scopes.at(id)] {
		if failed := c.scopes[id.GroupKind()].failed; failed != nil && claim.ID != id {
			err = failed
			continue
		}
		claim.Keeps = claim.Keeps && !c.tracker.Releases(claim.Owner, claim.ID)
		all = append(all, claim)
	}
	return all, err
}
