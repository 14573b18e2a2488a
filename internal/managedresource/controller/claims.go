package controller

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/ownership"
	"github.com/espalier-project/espalier/internal/managedresource/plan"
	"github.com/espalier-project/espalier/internal/managedresource/target"
)

// claims are the claims of other ManagedResources on objects, by their inventories.
type claims struct {
	// byKey has the claims by the key that keyed returns for the object.
	byKey map[plan.Key][]ownership.Claim
	// clusterScoped are kinds that have no namespaces though some of these entries name one; their objects are found by
	// keys without namespaces.
	clusterScoped map[metav1.GroupKind]bool
	// unknown has, for keys without namespaces, the error that hides whether another ManagedResource has such an
	// object.
	unknown map[plan.Key]error
}

// claimsOn finds objects in the inventories of other ManagedResources that this instance has to do with. The tracker
// names these ManagedResources, so that the cost is in proportion to the objects, and not to all ManagedResources.
func (r *Reconciler) claimsOn(ctx context.Context, except objects.Owner, refs []resourcesv1alpha1.ObjectReference) (claims, error) {
	if len(refs) == 0 {
		return claims{}, nil
	}
	wanted := make(map[plan.Key]struct{}, len(refs))
	wantedAt := map[plan.Key]*resourcesv1alpha1.ObjectReference{} // by key without namespace
	for i := range refs {
		key := plan.KeyOfReference(&refs[i].ObjectReference)
		wanted[key] = struct{}{}
		wantedAt[key.WithoutNamespace()] = &refs[i]
	}
	var found []ownership.Claim
	err := r.Statuses.ForEachOther(ctx, except, r.Tracker.Claimants(keysOf(refs)), func(other *resourcesv1alpha1.ManagedResource) {
		if !r.Class.Handles(other) {
			return // Its objects may be in another cluster.
		}
		for i := range other.Status.Resources {
			key := plan.KeyOfReference(&other.Status.Resources[i].ObjectReference)
			if wantedAt[key.WithoutNamespace()] == nil {
				continue
			}
			object := objects.RefOf(&other.Status.Resources[i]).Key
			found = append(found, ownership.Claim{
				Owner: ownerOf(other), Entry: key, Object: object,
				Keeps: r.keepsObject(other, object), CreateOnly: createdOnce(&other.Status.Resources[i]), Ignored: meta.Ignored(other),
			})
		}
	})
	if err != nil {
		return claims{}, fmt.Errorf("looking for other ManagedResources that have the objects: %w", err)
	}
	return r.sortClaims(ctx, found, wanted, wantedAt), nil
}

// sortClaims leaves out the claims on objects that have the name of a wanted object but another namespace, unless
// their kind is cluster-scoped now.
func (r *Reconciler) sortClaims(ctx context.Context, found []ownership.Claim, wanted map[plan.Key]struct{}, wantedAt map[plan.Key]*resourcesv1alpha1.ObjectReference) claims {
	all := claims{byKey: map[plan.Key][]ownership.Claim{}, clusterScoped: map[metav1.GroupKind]bool{}, unknown: map[plan.Key]error{}}
	failed := map[metav1.GroupKind]error{}
	for _, claim := range found {
		if _, exactly := wanted[claim.Entry]; exactly {
			continue
		}
		kind, name := claim.Entry.GroupKind(), claim.Entry.WithoutNamespace()
		if _, asked := all.clusterScoped[kind]; !asked {
			all.clusterScoped[kind], failed[kind] = r.clusterScoped(ctx, wantedAt[name])
		}
		if failed[kind] != nil {
			all.unknown[name] = failed[kind]
		}
	}
	for _, claim := range found {
		if _, exactly := wanted[claim.Entry]; exactly || all.clusterScoped[claim.Entry.GroupKind()] {
			key := all.keyed(claim.Entry)
			all.byKey[key] = append(all.byKey[key], claim)
		}
	}
	return all
}

// clusterScoped reports whether the kind of an entry is cluster-scoped now. A kind that is not served has no objects
// in any scope.
func (r *Reconciler) clusterScoped(ctx context.Context, ref *resourcesv1alpha1.ObjectReference) (bool, error) {
	_, scope, err := r.kindOf(ctx, ref)
	if target.Gone(err) {
		return false, nil
	}
	return scope == plan.ScopeCluster, err
}

// keyed returns the key by which an object is found.
func (c claims) keyed(key plan.Key) plan.Key {
	if c.clusterScoped[key.GroupKind()] {
		return key.WithoutNamespace()
	}
	return key
}

// keeps reports whether this instance keeps the objects of a ManagedResource. Objects that another class has still to
// clean up may be in another cluster.
func (r *Reconciler) keeps(mr *resourcesv1alpha1.ManagedResource) bool {
	return mr.DeletionTimestamp == nil && r.Class.Responsible(mr) && !r.Class.WaitsForHandOver(mr)
}

// keepsObject reports whether a ManagedResource that has an object in its inventory goes on having it.
func (r *Reconciler) keepsObject(mr *resourcesv1alpha1.ManagedResource, object objects.Key) bool {
	return r.keeps(mr) && r.Tracker.Keeps(ownerOf(mr), mr.UID, mr.Generation, object)
}

// on returns the claims on an object, with the present value of Releases.
func (c claims) on(key plan.Key, tracker *objects.Tracker) []ownership.Claim {
	all := slices.Clone(c.byKey[c.keyed(key)])
	for i := range all {
		all[i].Releases = tracker.Releases(all[i].Owner, all[i].Object)
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
