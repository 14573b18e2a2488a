package inspect

import (
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/hold"
	"github.com/espalier-project/espalier/internal/managedresource/merge"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/ownership"
	"github.com/espalier-project/espalier/internal/managedresource/plan"
)

// Action names the effect of the next run on an object.
type Action string

// An object that stays as it is has no Action.
const (
	Create   Action = "create"
	Update   Action = "update"
	Delete   Action = "delete"
	Release  Action = "release"
	HandOver Action = "handOver"
	// Leave means that the object is not changed, although no manifest describes it any more or it differs from its
	// manifest: another rule, or a hold, protects it.
	Leave Action = "leave"
)

// Change is an action of the next run on an object. Why is empty if the manifest alone is the reason.
type Change struct {
	Action      Action       `json:"action"`
	APIVersion  string       `json:"apiVersion"`
	Kind        string       `json:"kind"`
	Namespace   string       `json:"namespace,omitempty"`
	Name        string       `json:"name"`
	Why         string       `json:"why,omitempty"`
	Differences []Difference `json:"differences,omitempty"`
	// Live and Wanted are the object before and after the change, nil where there is none. Values of Secrets are
	// masked.
	Live   *unstructured.Unstructured `json:"-"`
	Wanted *unstructured.Unstructured `json:"-"`
}

// Writes reports whether the change sends a write to the target.
func (c *Change) Writes() bool { return c.Action != Leave }

// Run is the input of a ManagedResource's next run.
type Run struct {
	Now             time.Time
	ManagedResource *resourcesv1alpha1.ManagedResource
	Planned         *plan.Plan
	// Live are the existing objects, by the keys of the plan; Unread has the errors of objects that could not be
	// read.
	Live   map[objects.ID]*unstructured.Unstructured
	Unread map[objects.ID]error
	// Others are the other ManagedResources of the class; they are read only if NeedsOthers returns true.
	Others []*resourcesv1alpha1.ManagedResource
	// Scaled are the objects with an autoscaler for their replicas; Defaults are the defaults of custom resources.
	Scaled   map[objects.ID]bool
	Defaults map[runtimeschema.GroupVersionKind]merge.CustomDefaults
}

// NeedsOthers reports whether the result depends on the other ManagedResources: the run leaves an object, or the
// origin of an object names another ManagedResource.
func (r *Run) NeedsOthers() bool {
	if len(r.Planned.Delete) > 0 || len(r.Planned.Release) > 0 {
		return true
	}
	for _, live := range r.Live {
		if origin, found := OriginOf(live); found && origin.Key != keyOf(r.ManagedResource) {
			return true
		}
	}
	return false
}

// Changes returns the actions of the run in their order: first for objects that no manifest describes any more, then
// for objects of manifests.
func (r *Run) Changes() (changes []Change, faults []string) {
	for _, err := range r.Planned.Errors {
		faults = append(faults, err.Error())
	}
	if meta.Ignored(r.ManagedResource) {
		return nil, faults // An ignored ManagedResource is not applied.
	}
	settings := SettingsOf(r.ManagedResource, sortedLive(r.Live)...)
	for i := range r.Planned.Delete {
		if change := r.left(&r.Planned.Delete[i]); change != nil {
			changes = append(changes, *change)
		}
	}
	for i := range r.Planned.Release {
		if change := r.released(&r.Planned.Release[i]); change != nil {
			changes = append(changes, *change)
		}
	}
	for _, desired := range r.Planned.Apply {
		if change := r.applied(desired, settings); change != nil {
			changes = append(changes, *change)
		}
	}
	for _, key := range sortedKeys(r.Unread) {
		faults = append(faults, key.String()+" was not read: "+r.Unread[key].Error())
	}
	return changes, faults
}

func sortedKeys[V any](m map[objects.ID]V) []objects.ID {
	return slices.SortedFunc(maps.Keys(m), func(a, b objects.ID) int { return strings.Compare(a.String(), b.String()) })
}

func sortedLive(live map[objects.ID]*unstructured.Unstructured) []*unstructured.Unstructured {
	var all []*unstructured.Unstructured
	for _, key := range sortedKeys(live) {
		all = append(all, live[key])
	}
	return all
}

func newChange(action Action, ref *resourcesv1alpha1.ObjectReference, why string) *Change {
	return &Change{Action: action, APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name,
		Why: why}
}

// applied returns the action of a run on an object of a manifest; nil if there is none.
func (r *Run) applied(desired *plan.Desired, settings Settings) *Change {
	if r.Unread[desired.Ref.ID] != nil {
		return nil
	}
	live := r.Live[desired.Ref.ID]
	options := settings.MergeOptions(r.ManagedResource, live, r.Scaled[desired.Ref.ID], r.Now)
	if live == nil {
		if desired.Old != nil && options.Hold.IsInForce() {
			return nil // It is not created again during a hold on the ManagedResource.
		}
		change := newChange(Create, &desired.Reference, "")
		change.Wanted = merge.ForCreation(desired, options)
		mask(nil, change.Wanted)
		return change
	}
	if desired.CreateOnly {
		return nil // It exists, and is created only once.
	}
	if r.isKept(desired, live) {
		return nil // Another ManagedResource owns it.
	}
	compared := Compare(desired, live, options, r.Defaults[live.GroupVersionKind()])
	if len(compared.Differences) == 0 {
		return r.leftAlone(desired, live, options)
	}
	change := newChange(Update, &desired.Reference, "")
	if holdUndecided(r.ManagedResource, live, r.Now) {
		change.Why = "unless the hold on it counts, which the configuration of resource-manager decides: " +
			heldOn(live, onLiveObject, r.Now)[0].What
	}
	change.Differences, change.Live, change.Wanted = compared.Differences, compared.Live, compared.Wanted
	return change
}

// leftAlone returns the change for an object that the run would write if there was no hold; nil for other objects.
func (r *Run) leftAlone(desired *plan.Desired, live *unstructured.Unstructured, options merge.Options) *Change {
	if !options.Hold.IsInForce() {
		return nil
	}
	options.Hold = hold.Effect{}
	if len(Compare(desired, live, options, r.Defaults[live.GroupVersionKind()]).Differences) == 0 {
		return nil
	}
	held := append(heldOn(live, onLiveObject, r.Now), heldOn(r.ManagedResource, onManagedResource, r.Now)...)
	return newChange(Leave, &desired.Reference,
		"it differs from its manifest, and is left alone: "+held[0].What+byWhom(held[0]))
}

func byWhom(ignored Ignored) string {
	if ignored.By == "" {
		return ""
	}
	return ", set by " + ignored.By
}

// isKept reports whether another ManagedResource also has the object, and owns it.
func (r *Run) isKept(desired *plan.Desired, live *unstructured.Unstructured) bool {
	return !desired.IsNew() && ownership.IsKept(r.claimsOn(desired.Ref.ID, desired.GetNamespace() == ""),
		ownership.OriginOf(live, r.isOfThisSource))
}

// isOfThisSource reports whether an origin names the ManagedResource of the run or one of the others. Any other
// origin counts as the origin of another source.
func (r *Run) isOfThisSource(origin meta.Origin) bool {
	return origin.Key == keyOf(r.ManagedResource) ||
		slices.ContainsFunc(r.Others, func(mr *resourcesv1alpha1.ManagedResource) bool { return keyOf(mr) == origin.Key })
}

// claimsOn returns the claims of the other ManagedResources of the class on an object.
func (r *Run) claimsOn(key objects.ID, clusterScoped bool) []ownership.Claim {
	var claims []ownership.Claim
	for _, mr := range r.Others {
		if keyOf(mr) == keyOf(r.ManagedResource) || ClassOf(mr) != ClassOf(r.ManagedResource) {
			continue
		}
		if entry := EntryOf(mr, key, clusterScoped); entry != nil {
			claim := claimOf(mr, entry)
			claim.Keeps = mr.DeletionTimestamp == nil
			claims = append(claims, claim)
		}
	}
	return claims
}

// left returns the action of a run on an object that no manifest describes any more.
func (r *Run) left(ref *resourcesv1alpha1.ObjectReference) *Change {
	key := objects.IDOfEntry(ref)
	live := r.Live[key]
	if live == nil {
		return nil // It does not exist, or could not be read.
	}
	origin := ownership.OriginOf(live, r.isOfThisSource)
	decision := ownership.Decide(ownership.Left{
		By: keyOf(r.ManagedResource), Claims: r.claimsOn(key, ref.Namespace == ""), Origin: origin,
		Created:    origin.Source == ownership.NoOrigin && ownership.IsRecord(ref, live),
		KeepObject: meta.Truthy(live.GetAnnotations(), resourcesv1alpha1.AnnotationKeepObject),
		Collected:  ownership.IsCollectable(live.GetAPIVersion(), live.GetKind(), live.GetLabels()),
	})
	switch decision.Action {
	case ownership.Delete:
		change := newChange(Delete, ref, "no manifest describes it any more")
		change.Live = withoutManagedFields(live)
		mask(change.Live, nil)
		return change
	case ownership.HandOver:
		return newChange(HandOver, ref, "no manifest describes it any more, and "+decision.Why)
	}
	return newChange(Leave, ref, "no manifest describes it any more, but "+decision.Why)
}

// released returns the change of an object of mode Ignore: the object loses origin and description, and has no owner.
func (r *Run) released(ref *resourcesv1alpha1.ObjectReference) *Change {
	live := r.Live[objects.IDOfEntry(ref)]
	if live == nil {
		return nil
	}
	if origin, found := OriginOf(live); !found || origin.Key != keyOf(r.ManagedResource) {
		return nil
	}
	return newChange(Release, ref, "its manifest has mode Ignore: it loses its origin, and has no owner")
}
