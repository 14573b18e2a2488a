package inspect

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/decode"
	"github.com/espalier-project/espalier/internal/managedresource/merge"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/plan"
)

// DefaultManagedByValue is the value of the managed-by label if neither a configuration nor an inventory has another
// one.
const DefaultManagedByValue = "gardener"

// missingSecret returns a message about a Secret of the ManagedResource that was not read, "" if all were read.
func missingSecret(mr *resourcesv1alpha1.ManagedResource, secrets map[string]*corev1.Secret) string {
	for _, ref := range mr.Spec.SecretRefs {
		if secrets[ref.Name] == nil {
			return fmt.Sprintf("Secret %s/%s was not read", mr.Namespace, ref.Name)
		}
	}
	return ""
}

// Decode reads the manifests of a ManagedResource from its Secrets, in the order of the spec. All Secrets must have
// been read.
func Decode(ctx context.Context, mr *resourcesv1alpha1.ManagedResource,
	secrets map[string]*corev1.Secret) (decode.Result, error) {
	var sources decode.Sources
	for _, ref := range mr.Spec.SecretRefs {
		if secret := secrets[ref.Name]; secret != nil &&
			!sources.Add(decode.Source{Secret: types.NamespacedName{Namespace: mr.Namespace, Name: ref.Name},
				Data: secret.Data}) {
			break
		}
	}
	return decode.Decode(ctx, sources.All)
}

// Settings are the settings of a run that depend on its configuration and the source, derived from the objects.
type Settings struct {
	Origin              string
	ManagedByLabelValue string
}

// SettingsOf derives the settings of the responsible resource-manager from its writes: the inventory, and the origin
// of a live object.
func SettingsOf(mr *resourcesv1alpha1.ManagedResource, live ...*unstructured.Unstructured) Settings {
	settings := Settings{Origin: keyOf(mr).String(), ManagedByLabelValue: DefaultManagedByValue}
	for i := range mr.Status.Resources {
		if value := mr.Status.Resources[i].Labels[resourcesv1alpha1.LabelManagedBy]; value != "" {
			settings.ManagedByLabelValue = value
			break
		}
	}
	for _, object := range live {
		if origin, found := OriginOf(object); found && origin.Key == keyOf(mr) {
			settings.Origin = origin.String()
			break
		}
	}
	return settings
}

// PlanOptions returns the plan options of a run for a ManagedResource.
func (s Settings) PlanOptions(mr *resourcesv1alpha1.ManagedResource,
	scope func(runtimeschema.GroupVersionKind) (plan.Scope, error)) plan.Options {
	return plan.Options{Spec: &mr.Spec, Origin: s.Origin, ManagedByLabelValue: s.ManagedByLabelValue, Scope: scope}
}

// MergeOptions returns the merge options of a run for an object of a ManagedResource.
func (s Settings) MergeOptions(mr *resourcesv1alpha1.ManagedResource, live *unstructured.Unstructured, scaled bool,
	now time.Time) merge.Options {
	return merge.Options{
		ForceOverwriteLabels:      mr.Spec.ForceOverwriteLabels != nil && *mr.Spec.ForceOverwriteLabels,
		ForceOverwriteAnnotations: mr.Spec.ForceOverwriteAnnotations != nil && *mr.Spec.ForceOverwriteAnnotations,
		Origin:                    s.Origin, HorizontallyScaled: scaled, Hold: effectOf(mr, live, now),
	}
}

// described is the result of planning one object.
type described struct {
	// desired is nil if no manifest describes the object, or if the manifest cannot be applied.
	desired *plan.Desired
	place   *decode.Place
	// object is the original manifest; released is true if it has mode Ignore.
	object   metav1.Object
	released bool
	// faults are the reasons why manifests cannot be read or applied.
	faults []string
}

// describe plans one object. It leaves out all other objects, so that the scopes of other kinds are not needed.
func describe(decoded decode.Result, mr *resourcesv1alpha1.ManagedResource, key objects.ID, scope plan.Scope,
	settings Settings) described {
	var found described
	for _, err := range decoded.Errors {
		found.faults = append(found.faults, err.Error())
	}
	keys := plan.NewEquivalences(mr.Spec.Equivalences).Keys(key)
	isIt := func(other objects.ID) bool {
		return slices.ContainsFunc(keys, func(key objects.ID) bool { return key.Same(other, scope == plan.ScopeCluster) })
	}
	only := decode.Result{}
	for _, object := range decoded.Objects {
		if isIt(objects.IDOf(object.Unstructured)) {
			only.Objects = append(only.Objects, object)
			found.released = object.Released()
			found.object, found.place = object, &object.Place
		}
	}
	var inventory []resourcesv1alpha1.ObjectReference
	if entry := EntryOf(mr, key, scope == plan.ScopeCluster); entry != nil {
		inventory = append(inventory, *entry)
	}
	planned := plan.NewPlan(only, inventory,
		settings.PlanOptions(mr, func(runtimeschema.GroupVersionKind) (plan.Scope, error) { return scope, nil }))
	for _, err := range planned.Errors {
		found.faults = append(found.faults, err.Error())
	}
	if len(planned.Apply) > 0 {
		found.desired = planned.Apply[0]
	}
	return found
}

// WantedVersion returns the version of the object's manifest, "" if there is none. The live object must be read in
// this version to be compared.
func WantedVersion(ctx context.Context, facts *Facts) string {
	if facts.ManagedResource == nil {
		return ""
	}
	decoded, err := Decode(ctx, facts.ManagedResource, facts.Secrets)
	if err != nil {
		return ""
	}
	found := describe(decoded, facts.ManagedResource, facts.Key(), facts.scope(),
		SettingsOf(facts.ManagedResource, facts.Live))
	if found.desired == nil || found.desired.Ref.GroupKind() != facts.Key().GroupKind() {
		return ""
	}
	return found.desired.GroupVersionKind().Version
}
