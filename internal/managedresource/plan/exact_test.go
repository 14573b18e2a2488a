package plan

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/decode"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// Of two entries for one object that can exist one speaks for the object; the other one must not have it deleted. Entries are sorted.
func TestPlan_OneEntrySpeaksForAnObject(t *testing.T) {
	entry := func(apiVersion, name string) resourcesv1alpha1.ObjectReference {
		return resourcesv1alpha1.ObjectReference{ObjectReference: corev1.ObjectReference{APIVersion: apiVersion, Kind: "ConfigMap", Namespace: "default", Name: name}}
	}
	p := plan(t, object("v1", "ConfigMap", "a", ""), []resourcesv1alpha1.ObjectReference{entry("v1", "a"), entry("v1", "a"), entry("v1", "c"), entry("v1", "b")})
	var deleted []string
	for _, d := range p.Delete {
		deleted = append(deleted, d.Name)
	}
	SortReferences(p.Delete)
	expect.True(t, len(deleted) == 2 && keys(p.Delete) == "/ConfigMap/default/b /ConfigMap/default/c",
		"%v are deleted", deleted)
	expect.Equal(t, fmt.Sprint(p.Keys()), "[/ConfigMap/default/a]", "the objects that are to be")
}

// MRB-3: until an object was applied its entry has the old labels and annotations beside the new ones, and the old value of those that change.
func TestPending_HasOldAndNewLabels(t *testing.T) {
	configMap := func(metadata string) string {
		return "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, " + metadata + "}\n"
	}
	old := plan(t, configMap("labels: {both: old, old: x}, annotations: {both: old, old: x}"), nil).Inventory
	p := plan(t, configMap("labels: {both: new, new: z}, annotations: {both: new, new: z}"), old)
	pending := p.Pending(old)
	want := map[string]string{"both": "old", "old": "x", "new": "z"}
	expect.DeepEqual(t, pending[0].Annotations, want, "MRB-3: annotations")
	want[resourcesv1alpha1.LabelManagedBy] = "gardener"
	expect.DeepEqual(t, pending[0].Labels, want, "MRB-3: labels")
	expect.False(t, meta.Tentative(&pending[0]), "MRB-3: an entry that was a record that the object is ours stays one")
}

// A cluster-scoped object is the same whatever namespace an entry names, and a namespaced one is not.
func TestSameKey_IgnoresNamespaceOfClusterScoped(t *testing.T) {
	a, b := objects.ID{Kind: "X", Namespace: "n", Name: "x"}, objects.ID{Kind: "X", Namespace: "m", Name: "x"}
	if !a.Same(a, false) || a.Same(b, false) || !a.Same(b, true) || !a.Same(a, true) || a.Same(objects.ID{Kind: "X", Namespace: "n", Name: "y"}, true) {
		t.Error("objects that are the same are not, or the other way round")
	}
	expect.True(t, a.Namespace == "n" && b.Namespace == "m", "a comparison changes an ID")
}

// TestPlan_TakesScopesOfDefinitions: kinds that manifests define live where their definitions say; nothing else defines a kind (MRD-8).
func TestPlan_TakesScopesOfDefinitions(t *testing.T) {
	definition := func(apiVersion, kind, scope string) decode.Object {
		return decode.Object{Unstructured: fromYAML(t, fmt.Sprintf("apiVersion: %s\nkind: %s\nspec: {group: g, scope: %s, names: {kind: %s}}\n", apiVersion, kind, scope, scope))}
	}
	got := definedScopes([]decode.Object{
		definition("apiextensions.k8s.io/v1", "CustomResourceDefinition", "Cluster"), definition("apiextensions.k8s.io/v1", "CustomResourceDefinition", "Namespaced"),
		definition("apiextensions.k8s.io/v1", "CustomResourceDefinition", "Elsewhere"), definition("example.org/v1", "CustomResourceDefinition", "Cluster2"),
		definition("example.org/v1", "ConfigMap", "Namespaced2"), definition("apiextensions.k8s.io/v1", "ConfigMap", "Namespaced3"),
	})
	want := map[schema.GroupKind]Scope{{Group: "g", Kind: "Cluster"}: ScopeCluster, {Group: "g", Kind: "Namespaced"}: ScopeNamespaced}
	expect.DeepEqual(t, got, want, "MRD-8")
	for _, scope := range []string{"Cluster", "Namespaced"} {
		others := []decode.Object{definition("example.org/v1", "CustomResourceDefinition", scope), definition("apiextensions.k8s.io/v1", "ConfigMap", scope)}
		expect.Empty(t, definedScopes(slices.Clone(others)), "MRD-8: kinds of others are taken for definitions")
	}
}

func fromYAML(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	result := &unstructured.Unstructured{}
	raw, err := yaml.YAMLToJSON([]byte(text))
	must.Succeed(t, err)
	must.Succeed(t, result.UnmarshalJSON(raw))
	return result
}
