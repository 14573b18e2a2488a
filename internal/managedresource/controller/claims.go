package controller

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
	// byID has the claims by the ID that at returns for the object.
	byID map[objects.ID][]ownership.Claim
	// clusterScoped are kinds that have no namespaces, though entries may name one.
	clusterScoped map[schema.GroupKind]bool
	// unknown has, for IDs without namespaces, the error that hides whether another ManagedResource has such an object.
	unknown map[objects.ID]error
}

// claimsOn finds objects in the inventories of other ManagedResources that this instance has to do with. The tracker
// names these ManagedResources, so that the cost is in proportion to the objects, and not to all ManagedResources.
func (r *Reconciler) claimsOn(ctx context.Context, except objects.Owner,
	refs []resourcesv1alpha1.ObjectReference) (claims, error) {
	if len(refs) == 0 {
		return claims{}, nil
	}
	all := claims{byID: map[objects.ID][]ownership.Claim{}, clusterScoped: map[schema.GroupKind]bool{},
		unknown: map[objects.ID]error{}}
	failed := r.scopesOf(ctx, refs, all.clusterScoped)
	ids := make([]objects.ID, len(refs))
	wanted := make(map[objects.ID]struct{}, 2*len(refs)) // With the namespaces that count, and without any.
	for i := range refs {
		ids[i] = objects.IDOfEntry(&refs[i])
		wanted[all.at(ids[i])], wanted[ids[i].WithoutNamespace()] = struct{}{}, struct{}{}
	}
	anywhere := func(kind schema.GroupKind) bool { return all.clusterScoped[kind] || failed[kind] != nil }
	err := r.Statuses.ForEachOther(ctx, except, r.Tracker.Claimants(ids, anywhere),
		func(other *resourcesv1alpha1.ManagedResource) {
			if !r.Class.Handles(other) {
				return // Its objects may be in another cluster.
			}
			for i := range other.Status.Resources {
				entry := &other.Status.Resources[i]
				id := objects.IDOfEntry(entry)
				at, name := all.at(id), id.WithoutNamespace()
				if _, found := wanted[at]; found {
					all.byID[at] = append(all.byID[at], ownership.Claim{
						Owner: ownerOf(other), ID: id,
						Keeps: r.keepsObject(other, id), CreateOnly: createdOnce(entry), Ignored: meta.Ignored(other),
					})
				} else if _, named := wanted[name]; named && failed[id.GroupKind()] != nil {
					all.unknown[name] = failed[id.GroupKind()]
				}
			}
		})
	if err != nil {
		return claims{}, fmt.Errorf("looking for other ManagedResources that have the objects: %w", err)
	}
	return all, nil
}

// scopesOf records which kinds of entries are cluster-scoped now, and returns the errors of kinds whose scope cannot
// be told. A kind that is not served has no objects in any scope.
func (r *Reconciler) scopesOf(ctx context.Context, refs []resourcesv1alpha1.ObjectReference,
	clusterScoped map[schema.GroupKind]bool) map[schema.GroupKind]error {
	failed := map[schema.GroupKind]error{}
	for i := range refs {
		kind := refs[i].GroupVersionKind().GroupKind()
		if _, asked := clusterScoped[kind]; asked {
			continue
		}
		_, scope, err := r.kindOf(ctx, &refs[i])
		clusterScoped[kind] = scope == plan.ScopeCluster
		if err != nil && !target.Gone(err) {
			failed[kind] = err
		}
	}
	return failed
}

// at returns the ID by which the claims on an object are found.
func (c claims) at(id objects.ID) objects.ID {
	if c.clusterScoped[id.GroupKind()] {
		return id.WithoutNamespace()
	}
	return id
}

// keeps reports whether this instance keeps the objects of a ManagedResource. Objects that another class has still to
// clean up may be in another cluster.
func (r *Reconciler) keeps(mr *resourcesv1alpha1.ManagedResource) bool {
	return mr.DeletionTimestamp == nil && r.Class.Responsible(mr) && !r.Class.WaitsForHandOver(mr)
}

// keepsObject reports whether a ManagedResource that has an object in its inventory goes on having it.
func (r *Reconciler) keepsObject(mr *resourcesv1alpha1.ManagedResource, object objects.ID) bool {
	return r.keeps(mr) && r.Tracker.Keeps(ownerOf(mr), mr.UID, mr.Generation, object)
}

// on returns the claims on an object, with the present value of Releases.
func (c claims) on(id objects.ID, tracker *objects.Tracker) []ownership.Claim {
	all := slices.Clone(c.byID[c.at(id)])
	for i := range all {
		all[i].Releases = tracker.Releases(all[i].Owner, all[i].ID)
	}
	return all
}

// originOf returns the owner that an object names. isOfSource reports whether an origin is of this source.
func originOf(object *unstructured.Unstructured, isOfSource func(meta.Origin) bool) ownership.Origin {
	text, found := object.GetAnnotations()[resourcesv1alpha1.AnnotationOrigin]
	if !found {
		return ownership.Origin{}
	}
	origin, err := meta.ParseOrigin(text)
	switch {
	case err != nil:
		return ownership.Origin{Source: ownership.Unreadable, Text: text}
	case isOfSource(origin):
		return ownership.Origin{Source: ownership.ThisSource, Owner: origin.Key, Text: text}
	}
	return ownership.Origin{Source: ownership.AnotherSource, Owner: origin.Key, Text: text}
}
