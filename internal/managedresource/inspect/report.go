package inspect

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/healthcheck"
	"github.com/espalier-project/espalier/internal/managedresource/merge"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/plan"
)

// Facts is the input of a report about one object.
type Facts struct {
	Now time.Time
	// Kind is the kind with which the object was read; ClusterScoped is true if it has no namespaces.
	Kind            runtimeschema.GroupVersionKind
	ClusterScoped   bool
	Namespace, Name string
	// Live is the object, nil if it does not exist.
	Live *unstructured.Unstructured
	// ManagedResource is the owner that FindOwner returned; nil if there is none.
	ManagedResource *resourcesv1alpha1.ManagedResource
	Proof           Proof
	// Secrets are the Secrets of the owner that could be read; Events are the Events of resource-manager in its
	// namespace.
	Secrets map[string]*corev1.Secret
	Events  []corev1.Event
	// Scaled is true if an autoscaler controls the replicas.
	Scaled bool
	// Defaults are the defaults of a custom resource.
	Defaults merge.CustomDefaults
	// Unknown lists the facts that could not be read, with the reasons.
	Unknown []string
}

// Key returns the ID of the object.
func (f *Facts) Key() objects.ID {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(f.Kind)
	object.SetNamespace(f.Namespace)
	object.SetName(f.Name)
	return objects.IDOf(object)
}

func (f *Facts) scope() plan.Scope {
	if f.ClusterScoped {
		return plan.ScopeCluster
	}
	return plan.ScopeNamespaced
}

// State compares the live object with its manifest.
type State string

// The values of State.
const (
	InSync    State = "InSync"
	Differs   State = "Differs"
	Missing   State = "Missing"
	Unmanaged State = "Unmanaged"
	// LeftAlone means that the object is not compared, because the object or its ManagedResource is exempt from
	// repair.
	LeftAlone State = "LeftAlone"
	// Leaving means that no manifest describes the object any more, or that its ManagedResource is being deleted.
	Leaving State = "Leaving"
	Unknown State = "Unknown"
)

// Owner describes the ManagedResource of an object.
type Owner struct {
	Namespace  string   `json:"namespace"`
	Name       string   `json:"name"`
	Class      string   `json:"class"`
	Proof      Proof    `json:"proof"`
	Conditions []string `json:"conditions,omitempty"`
	// By is the last writer of the spec of the ManagedResource.
	By *Writer `json:"by,omitempty"`
	// Deleting is true if the ManagedResource is being deleted.
	Deleting bool `json:"deleting,omitempty"`
}

// Manifest is the place of an object's manifest.
type Manifest struct {
	Secret   string `json:"secret"`
	Key      string `json:"key"`
	Document int    `json:"document"`
	// By is the last writer of this key of the Secret.
	By *Writer `json:"by,omitempty"`
}

// Report explains the state of an object.
type Report struct {
	APIVersion string       `json:"apiVersion"`
	Kind       string       `json:"kind"`
	Namespace  string       `json:"namespace,omitempty"`
	Name       string       `json:"name"`
	Created    *metav1.Time `json:"created,omitempty"`
	State      State        `json:"state"`
	// Says is the state as a sentence.
	Says        string       `json:"says"`
	Owner       *Owner       `json:"owner,omitempty"`
	Manifest    *Manifest    `json:"manifest,omitempty"`
	Differences []Difference `json:"differences,omitempty"`
	Health      string       `json:"health,omitempty"`
	// Conditions are set if the object itself is a ManagedResource.
	Conditions []resourcesv1alpha1.Condition `json:"conditions,omitempty"`
	// Failing is true if these conditions report that it is not applied or not healthy.
	Failing bool         `json:"failing,omitempty"`
	Writers []Writer     `json:"writers,omitempty"`
	Repairs []Occurrence `json:"repairs,omitempty"`
	// Fights are the repairs in a fight of two writers for the object.
	Fights []Occurrence `json:"fights,omitempty"`
	// Deleted are the deletions of the object by resource-manager.
	Deleted  []Occurrence `json:"deleted,omitempty"`
	Deletion Deletion     `json:"deletion"`
	Ignored  []Ignored    `json:"ignored,omitempty"`
	Edits    []Edit       `json:"edits,omitempty"`
	// EditsSay is the expected result of any edit, if it is the same for all edits.
	EditsSay string `json:"editsSay,omitempty"`
	// Lasting are the ways to change the object permanently.
	Lasting []string `json:"lasting,omitempty"`
	// Faults are the errors of manifests.
	Faults []string `json:"faults,omitempty"`
	// NotKnown lists the facts that could not be read, or were not read.
	NotKnown []string `json:"notKnown,omitempty"`
}

// Found reports whether the object has a problem: it is not in sync, writers fight for it, a manifest has an error,
// or its deletion is blocked.
func (r *Report) Found() bool {
	return r.Failing || r.State == Differs || r.State == Missing || r.State == Unknown || len(r.Fights) > 0 ||
		len(r.Faults) > 0 ||
		r.Deletion.Since != nil && len(r.Deletion.Holds) > 0
}

// Explain returns the report for facts.
func Explain(ctx context.Context, facts *Facts) (*Report, error) {
	r := &Report{
		APIVersion: facts.Kind.GroupVersion().String(), Kind: facts.Kind.Kind, Namespace: facts.Namespace, Name: facts.Name,
		Deletion: deletionOf(facts.Live, facts.ManagedResource), NotKnown: slices.Clone(facts.Unknown),
	}
	if facts.Live != nil {
		if created := facts.Live.GetCreationTimestamp(); !created.IsZero() {
			r.Created = &created
		}
		r.Writers = WritersOf(facts.Live)
		r.Ignored = ignoredOn(facts.Live, onLiveObject, facts.Now)
		r.Health = healthOf(facts.Live)
		if err := r.itself(facts.Live); err != nil {
			return nil, err
		}
	}
	if facts.Live == nil {
		r.explainAbsence(facts)
	}
	if facts.ManagedResource == nil {
		r.unmanaged(facts)
		return r, nil
	}
	return r, r.managed(ctx, facts)
}

// itself adds the state of an object that is a ManagedResource itself.
func (r *Report) itself(live *unstructured.Unstructured) error {
	if live.GroupVersionKind().GroupKind() != resourcesv1alpha1.SchemeGroupVersion.WithKind("ManagedResource").GroupKind() {
		return nil
	}
	mr := &resourcesv1alpha1.ManagedResource{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, mr); err != nil {
		return fmt.Errorf("ManagedResource %s/%s: %w", live.GetNamespace(), live.GetName(), err)
	}
	level, state := stateOf(mr)
	r.Conditions, r.Health, r.Failing = mr.Status.Conditions, state, level == Problem
	return nil
}

// explainAbsence reports the deletions of an object that does not exist.
func (r *Report) explainAbsence(facts *Facts) {
	found, unnamed := deletionsOf(facts.Events, facts.Key())
	r.Deleted = found
	for _, occurrence := range unnamed {
		if len(found) == 0 {
			r.NotKnown = append(r.NotKnown,
				fmt.Sprintf("whether it was deleted at %s: %s", occurrence.Time.UTC().Format(time.RFC3339), occurrence.Text))
		}
	}
}

// healthOf returns the result of the health checks, "" for a kind without health checks.
func healthOf(live *unstructured.Unstructured) string {
	if !(healthcheck.Options{}).NeedsWholeObject(live.GroupVersionKind()) {
		return ""
	}
	_, state := assessed(live)
	return state
}

// unmanaged fills the report about an object without a ManagedResource.
func (r *Report) unmanaged(facts *Facts) {
	r.State, r.Says = Unmanaged, "no ManagedResource has it"
	if facts.Live == nil {
		r.State, r.Says = Missing, "it does not exist, and no ManagedResource has it"
		return
	}
	r.EditsSay = "an edit stays, as far as resource-manager is concerned"
	if origin, found := OriginOf(facts.Live); found {
		r.Says = fmt.Sprintf("its origin names ManagedResource %s, which does not have it", origin.Key)
	}
	if controller := metav1.GetControllerOf(facts.Live); controller != nil {
		r.Says += fmt.Sprintf("; its controller is %s %s", controller.Kind, controller.Name)
		r.EditsSay = fmt.Sprintf("its controller, %s %s, decides about an edit", controller.Kind, controller.Name)
		r.Lasting = []string{fmt.Sprintf("change %s %s, which made it", controller.Kind, controller.Name)}
	}
}

// managed fills the report about an object of a ManagedResource.
func (r *Report) managed(ctx context.Context, facts *Facts) error {
	mr := facts.ManagedResource
	r.Owner = ownerOf(mr, facts.Proof)
	r.Repairs, r.Fights = occurrencesOf(facts.Events, keyOf(mr), facts.Key())
	r.Ignored = append(r.Ignored, ignoredOn(mr, onManagedResource, facts.Now)...)
	if holdUndecided(facts.ManagedResource, facts.Live, facts.Now) {
		r.NotKnown = append(r.NotKnown,
			"whether the hold on the object counts: its ManagedResource has no annotation "+resourcesv1alpha1.AnnotationAllowHolds+"=true, so that the configuration of resource-manager decides (allowHolds)")
	}
	settings := SettingsOf(mr, facts.Live)
	if missing := missingSecret(mr, facts.Secrets); missing != "" {
		r.State, r.Says = Unknown, "its desired state is unknown: "+missing
		return nil
	}
	decoded, err := Decode(ctx, mr, facts.Secrets)
	if err != nil {
		return err
	}
	found := describe(decoded, mr, facts.Key(), facts.scope(), settings)
	r.Faults = append(r.Faults, found.faults...)
	if found.place != nil {
		r.Manifest = &Manifest{Secret: found.place.Secret.String(), Key: found.place.Key, Document: found.place.Index}
		if secret := facts.Secrets[found.place.Secret.Name]; secret != nil {
			r.Manifest.By = writerOf(secret, "data", found.place.Key)
		}
	}
	if found.object != nil {
		r.Ignored = append(r.Ignored, ignoredOn(found.object, inManifest, facts.Now)...)
	}
	r.compare(facts, found, settings)
	r.Lasting = append(r.Lasting, lastingWays(r, found)...)
	return nil
}

func ownerOf(mr *resourcesv1alpha1.ManagedResource, proof Proof) *Owner {
	owner := &Owner{Namespace: mr.Namespace, Name: mr.Name, Class: ClassOf(mr), Proof: proof,
		Deleting: mr.DeletionTimestamp != nil}
	for _, condition := range mr.Status.Conditions {
		owner.Conditions = append(owner.Conditions,
			fmt.Sprintf("%s=%s (%s)", condition.Type, condition.Status, condition.Reason))
	}
	for _, writer := range WritersOf(mr) {
		if writer.Subresource == "" && writer.wrote("spec") {
			owner.By = &writer
			break
		}
	}
	return owner
}

// compare compares the live object with its manifest.
func (r *Report) compare(facts *Facts, found described, settings Settings) {
	mr, live := facts.ManagedResource, facts.Live
	switch {
	case meta.Ignored(mr):
		r.State, r.Says = LeftAlone, "its ManagedResource is ignored"
	case mr.DeletionTimestamp != nil:
		r.State, r.Says = Leaving, "its ManagedResource is being deleted"
	case found.released:
		r.State, r.Says = LeftAlone, "its manifest releases it"
	case found.desired == nil && len(found.faults) > 0:
		r.State, r.Says = Unknown, "its desired state is unknown, because its manifests cannot be applied"
	case found.desired == nil:
		r.State, r.Says = Leaving, "no manifest describes it any more: it is deleted, or left to another ManagedResource"
	case live == nil && isHeld(facts):
		r.State, r.Says = LeftAlone, "it does not exist, and is not created while its ManagedResource is on hold"
	case live == nil:
		r.State, r.Says = Missing, "it does not exist, and the next run creates it"
	case isHeld(facts):
		r.State, r.Says = LeftAlone, "it is left alone for a while"
	case found.desired.CreateOnly:
		r.State, r.Says = LeftAlone, "it is created once, and not repaired"
	default:
		r.compareContent(facts, found, settings)
		return
	}
	if live != nil {
		r.EditsSay = "an edit stays: " + r.Says
	}
	if r.State == Leaving {
		r.EditsSay = "an edit stays as long as the object does: " + r.Says
	}
}

// isHeld reports whether a hold suspends the repair of the object.
func isHeld(facts *Facts) bool {
	return effectOf(facts.ManagedResource, facts.Live, facts.Now).IsInForce()
}

func (r *Report) compareContent(facts *Facts, found described, settings Settings) {
	options := settings.MergeOptions(facts.ManagedResource, facts.Live, facts.Scaled, facts.Now)
	compared := Compare(found.desired, facts.Live, options, facts.Defaults)
	r.Differences = compared.Differences
	r.State, r.Says = InSync, "it is as its manifest says"
	if n := len(r.Differences); n > 0 {
		r.State, r.Says = Differs, fmt.Sprintf("it differs from its manifest in %s", counted(n, "field"))
	}
	r.Edits = editsOf(found.desired, facts.Live, options, facts.Defaults)
	if holdUndecided(facts.ManagedResource, facts.Live, facts.Now) {
		for i := range r.Edits {
			r.Edits[i].StaysIfHeld = !r.Edits[i].Stays
		}
	}
	if facts.Live.GetDeletionTimestamp() != nil {
		r.Says += "; it is being deleted, and is then recreated"
	}
}

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// lastingWays returns the ways to change an object permanently.
func lastingWays(r *Report, found described) []string {
	var ways []string
	if m := r.Manifest; m != nil {
		way := fmt.Sprintf("change document %d of key %s in Secret %s", m.Document, m.Key, m.Secret)
		if m.By != nil {
			way += fmt.Sprintf(", which %s writes: change it in its source, or it is overwritten", m.By.Manager)
		}
		ways = append(ways, way)
	}
	if found.desired != nil && !found.desired.CreateOnly && r.State != LeftAlone {
		ways = append(ways, fmt.Sprintf("annotate ManagedResource %s/%s with %s=true: nothing of it is repaired until that is removed",
			r.Owner.Namespace, r.Owner.Name, resourcesv1alpha1.AnnotationIgnore))
	}
	return ways
}
