package restriction

import (
	"context"
	"maps"
	"net/http"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-project/espalier/internal/endpoint/admission"
	gardencorev1beta1 "github.com/espalier-project/espalier/internal/externalapi/core/v1beta1"
	"github.com/espalier-project/espalier/internal/externalapi/wellknown"
	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
)

// A client that names an object in one of its own objects reaches the named object afterwards. So a client may name
// only objects that it reaches already (T3-4: edges that clients can make themselves). A client that hands over one
// of its objects to another seed or shoot loses it, and the receiver would reconcile the client's content. So
// BackupBuckets, ControllerInstallations, ManagedSeeds and Shoots keep their owners.
//
// The garden's API itself leaves these fields mutable: ValidateBackupBucketSpecUpdate,
// ValidateControllerInstallationSpecUpdate, validateGardenletUpdate and ValidateShootSpecUpdate (pkg/api of the
// reference) check few of them.

// operations are the operations, by kind, for which the names in the object are checked.
type operations = map[graph.Kind][]admissionv1.Operation

// guarded are the kinds whose references are checked in every mode: current gardenlets never add a reference there,
// or only one that follows from their Seed or Shoot (own backup credentials).
var guarded = operations{
	relation.BackupBucket:           {admissionv1.Create, admissionv1.Update},
	relation.ControllerInstallation: {admissionv1.Update},
	relation.Gardenlet:              {admissionv1.Update},
	relation.ManagedSeed:            {admissionv1.Update},
	// A bootstrap ServiceAccount names the Secrets of its tokens. kube-controller-manager adds them; gardenlets do
	// not.
	relation.ServiceAccount: {admissionv1.Create, admissionv1.Update},
	relation.Shoot:          {admissionv1.Update},
}

// registering are the kinds with which a gardenlet registers itself. It names Secrets there that no other object
// names, so that their references are checked only with references Checked.
var registering = operations{
	relation.Seed:      {admissionv1.Create, admissionv1.Update},
	relation.Gardenlet: {admissionv1.Create},
}

var (
	// rules are the rules of SeedRestriction with references Trusted.
	rules = judging(base, guarded)
	// checked are the rules of SeedRestriction with references Checked.
	checked = judging(rules, registering)
)

func (q *request) rules() map[schema.GroupResource]byOperation {
	if q.Checked {
		return checked
	}
	return rules
}

// judging returns the rules, each followed by a check of references.
func judging(before map[schema.GroupResource]byOperation, kinds operations) map[schema.GroupResource]byOperation {
	result := maps.Clone(before)
	for kind, all := range kinds {
		w := relation.WatchOf(kind)
		resource := w.Resource.GroupResource()
		result[resource] = maps.Clone(before[resource])
		if result[resource] == nil {
			result[resource] = byOperation{}
		}
		for _, operation := range all {
			first := before[resource][operation]
			result[resource][operation] = func(q *request, ctx context.Context) error {
				if first != nil {
					if err := first(q, ctx); err != nil {
						return err
					}
				}
				return q.namesOnlyReachable(ctx, w)
			}
		}
	}
	return result
}

// reach is a part of the graph that a client reaches: the vertices that lead to a vertex; if managed is set, only over
// a managed edge.
type reach struct {
	in      *graph.Graph
	to      graph.Vertex
	managed bool
}

// reaches reports whether the client reaches the start of an edge without the edge. If the edge would let the client
// write the start, the client must be able to write it without the edge, too: over a managed edge under writeScope
// Owned (B-6), and over a Shoot, which may be self-hosted, because there is no writeScope for self-hosted shoots.
func (q *request) reaches(e graph.Edge, w *relation.Watch) bool {
	writes := e.Class == graph.Manages || w.Kind == relation.Shoot
	return slices.ContainsFunc(q.reach, func(r reach) bool {
		if r.managed || writes && r.to.Kind == relation.Seed {
			return r.in.CheckManaged(e.From, r.to).Managed
		}
		return r.in.Check(e.From, r.to).Reached
	})
}

// owns reports whether a vertex is the client's own Seed or Shoot.
func (q *request) owns(v graph.Vertex) bool { return q.reach[0].to == v }

// owned are the kinds that keep their owner.
var owned = []graph.Kind{relation.BackupBucket, relation.ControllerInstallation, relation.ManagedSeed, relation.Shoot}

// namesOnlyReachable requires that the client can already reach every object that the object names, or that the
// object named it before.
func (q *request) namesOnlyReachable(ctx context.Context, w *relation.Watch) error {
	object := w.New()
	if err := q.decode(object); err != nil {
		return err
	}
	after, err := named(w, object)
	if err != nil {
		return err
	}
	before, err := q.namedBefore(w)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(after.ends, q.owns) {
		after.generated = nil
	}
	for _, e := range after.starts {
		if slices.Contains(before.starts, e) || slices.Contains(after.generated, e.From) || q.reaches(e, w) {
			continue
		}
		if own, err := q.isOwnBackup(ctx, w, e); err != nil {
			return err
		} else if !own {
			return q.unreachable(e.From)
		}
	}
	return q.keepsOwner(w, before, after)
}

// unreachable refuses a reference.
func (q *request) unreachable(v graph.Vertex) error {
	why := "does not lead to"
	if slices.ContainsFunc(q.reach, func(r reach) bool { return r.in.Check(v, r.to).Reached }) {
		why = "is only read by"
	}
	return refuse(http.StatusForbidden, "object refers to %s, which %s %s", relation.Schema.String(v), why, q.called)
}

// keepsOwner requires that the ends of an object's edges do not change, or are the client's own Seed or Shoot.
func (q *request) keepsOwner(w *relation.Watch, before, after references) error {
	if !slices.Contains(owned, w.Kind) {
		return nil
	}
	for _, v := range after.ends {
		if !slices.Contains(before.ends, v) && !q.owns(v) {
			return refuse(http.StatusForbidden, "object would belong to %s, which is not %s", relation.Schema.String(v), q.called)
		}
	}
	return nil
}

// isOwnBackup reports whether a BackupBucket names the backup credentials of the client's own Seed or Shoot. These
// are read, because the graph may lack the latest change of the Seed, and does not follow the backup of a Shoot at
// all.
func (q *request) isOwnBackup(ctx context.Context, w *relation.Watch, e graph.Edge) (bool, error) {
	if w.Kind != relation.BackupBucket || e.Class == graph.Manages {
		return false, nil
	}
	own, err := q.backup(ctx)
	return slices.Contains(own, e.From), err
}

// backupOfSeed returns the backup credentials of the client's Seed.
func (q *request) backupOfSeed(ctx context.Context) ([]graph.Vertex, error) {
	seed, err := q.seed(ctx, q.client.Seed, absentIsFine)
	if err != nil || seed == nil {
		return nil, err
	}
	return relation.BackupCredentials(seed.Spec.Backup), nil
}

// unnamed gives a name to an object whose name is still to be generated, because an object without a name has no
// edges.
const unnamed = `{"metadata":{"name":"-"}}`

// references are the starts and ends of the edges that follow from the fields of an object.
type references struct {
	starts []graph.Edge
	ends   []graph.Vertex
	// generated is the Secret that the gardenlet writes for the object, if it is a BackupBucket (RES-29).
	generated []graph.Vertex
}

// namedBefore returns the references of the object before the update.
func (q *request) namedBefore(w *relation.Watch) (references, error) {
	if q.Operation != admissionv1.Update || len(q.OldObject.Raw) == 0 {
		return references{}, nil
	}
	old := w.New()
	if err := admission.Unmarshal(q.OldObject.Raw, old); err != nil {
		return references{}, refuse(http.StatusInternalServerError, "the current object cannot be read: %s", err)
	}
	return named(w, old)
}

// named returns the references of an object.
func named(w *relation.Watch, object runtime.Object) (references, error) {
	if w.Owner(object).Name == "" {
		if err := admission.Unmarshal([]byte(unnamed), object); err != nil {
			return references{}, err
		}
	}
	result := references{}
	for _, e := range w.ByFields(object) {
		if e.From == w.Owner(object) {
			result.ends = append(result.ends, e.To)
		} else {
			result.starts = append(result.starts, e)
		}
	}
	switch typed := object.(type) {
	case *gardencorev1beta1.BackupBucket:
		result.generated = []graph.Vertex{{Kind: relation.Secret, Namespace: wellknown.Garden, Name: wellknown.GeneratedBucketPrefix + typed.Name}}
	case *gardencorev1beta1.Shoot:
		for _, v := range relation.ControlPlaneBackups(typed) {
			result.starts = append(result.starts, graph.Edge{From: v, To: w.Owner(object)}) // The BackupBucket will name it.
		}
	}
	return result, nil
}
