package plan

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/test/expect"
)

const onceManifest = "---\napiVersion: %A\nkind: %K\nmetadata: {name: a, annotations: {resources.gardener.cloud/ignore: 'true'}}\n"

// once is the manifest of an object that is created only once.
func once(apiVersion, kind string) string {
	return strings.NewReplacer("%A", apiVersion, "%K", kind).Replace(onceManifest)
}

// entry is an entry of the inventory; annotations are left out if the object is not created only once.
func entry(apiVersion, kind, namespace, uid string, createdOnce bool) resourcesv1alpha1.ObjectReference {
	ref := resourcesv1alpha1.ObjectReference{ObjectReference: corev1.ObjectReference{APIVersion: apiVersion, Kind: kind, Namespace: namespace, Name: "a", UID: types.UID(uid)}}
	if createdOnce {
		ref.Annotations = map[string]string{resourcesv1alpha1.AnnotationIgnore: "true"}
	}
	return ref
}

// TestPlan_MovedRecordsProveNothing: a record without an instance is about the place that it names, so that it proves nothing where the kind lives now.
func TestPlan_MovedRecordsProveNothing(t *testing.T) {
	for name, c := range map[string]struct {
		reason    string
		inventory resourcesv1alpha1.ObjectReference
		planned   bool
		uid       types.UID
	}{
		"MR-30/the kind lost its namespaces, no instance":  {"the object in the namespace was ours", entry("x/v1", "Cluster", "default", "", true), true, ""},
		"MR-30/the kind lost its namespaces, an instance":  {"the instance tells which object is meant", entry("x/v1", "Cluster", "default", "u", true), false, "u"},
		"MR-30/the kind is where it was, no instance":      {"the record is about this place", entry("x/v1", "Cluster", "", "", true), false, ""},
		"MR-30/it was repaired before, and has not moved":  {"nothing says that it was created for this ManagedResource", entry("x/v1", "Cluster", "", "", false), false, ""},
		"MR-30/it was repaired before, and the kind moved": {"nothing says that it was created for this ManagedResource", entry("x/v1", "Cluster", "default", "", false), false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			old := []resourcesv1alpha1.ObjectReference{c.inventory}
			p := plan(t, once("x/v1", "Cluster"), old, func(o *Options) {
				o.Scope = func(schema.GroupVersionKind) (Scope, error) { return ScopeCluster, nil }
			})
			if got := p.Inventory[0]; meta.Tentative(&got) != c.planned || got.UID != c.uid || got.Namespace != "" {
				t.Errorf("%s: after the run the entry is %+v", c.reason, got)
			}
			if got := p.Pending(old); len(got) != 1 || meta.Tentative(&got[0]) != c.planned || got[0].Namespace != "" {
				t.Errorf("%s: before the run the inventory is %+v", c.reason, got)
			}
		})
	}
}

// TestPlan_CreatedRecordWinsOverPlanned: of the entries of an object the one counts that says that the object was created, before one that is planned.
func TestPlan_CreatedRecordWinsOverPlanned(t *testing.T) {
	apps := func(uid string) resourcesv1alpha1.ObjectReference {
		return entry("apps/v1", "Deployment", "default", uid, true)
	}
	extensions := func(uid string, createdOnce bool) resourcesv1alpha1.ObjectReference {
		return entry("extensions/v1beta1", "Deployment", "default", uid, createdOnce)
	}
	for name, c := range map[string]struct {
		inventory []resourcesv1alpha1.ObjectReference
		want      types.UID
	}{
		"MRD-16/planned here, created as the other kind":  {[]resourcesv1alpha1.ObjectReference{meta.AsTentative(apps("")), extensions("u", true)}, "u"},
		"MRD-16/created as both":                          {[]resourcesv1alpha1.ObjectReference{apps("a"), extensions("u", true)}, "a"},
		"MRD-16/planned here, repaired as the other kind": {[]resourcesv1alpha1.ObjectReference{meta.AsTentative(apps("")), extensions("u", false)}, ""},
		"MRD-16/planned as both":                          {[]resourcesv1alpha1.ObjectReference{meta.AsTentative(apps("a")), meta.AsTentative(extensions("u", true))}, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			p := plan(t, once("apps/v1", "Deployment"), c.inventory)
			if got := p.Inventory[0].UID; got != c.want || len(p.Delete) > 0 {
				t.Errorf("the record names instance %q, want %q; deleted: %s", got, c.want, keys(p.Delete))
			}
		})
	}
}

// TestPlaces: where an object lives (MRD-8, MRD-9), and which entries of other namespaces are about it.
func TestPlaces(t *testing.T) {
	in := func(kind, namespace string) string {
		return "---\napiVersion: v1\nkind: " + kind + "\nmetadata: {name: a, namespace: '" + namespace + "'}\n"
	}
	unknown := func(schema.GroupVersionKind) (Scope, error) { return ScopeUnknown, nil }
	namespaced := func(schema.GroupVersionKind) (Scope, error) { return ScopeNamespaced, nil }
	for name, c := range map[string]struct {
		manifest string
		scope    func(schema.GroupVersionKind) (Scope, error)
		want     string
	}{
		"MRD-8/a cluster-scoped kind has no namespace":         {in("ClusterRole", "n"), scopeOf, ""},
		"MRD-8/a namespace that the manifest names":            {in("ConfigMap", "n"), scopeOf, "n"},
		"MRD-8/another kind by this name that has namespaces":  {in("Namespace", ""), namespaced, "default"},
		"MRD-9/a kind that is not served":                      {in("ConfigMap", ""), unknown, "default"},
		"MRD-9/a kind that is not served, with a namespace":    {in("ConfigMap", "n"), unknown, "n"},
		"MRD-9/Namespaces have none, whether served or not":    {in("Namespace", ""), unknown, ""},
		"MR-30/the record of another namespace is not its own": {once("v1", "ConfigMap"), scopeOf, "default"},
	} {
		t.Run(name, func(t *testing.T) {
			p := plan(t, c.manifest, []resourcesv1alpha1.ObjectReference{entry("v1", "ConfigMap", "elsewhere", "u", true)}, func(o *Options) { o.Scope = c.scope })
			if got := p.Apply[0]; got.GetNamespace() != c.want || got.Reference.Namespace != c.want || got.Reference.UID != "" {
				t.Errorf("got namespace %q, entry %+v", got.GetNamespace(), got.Reference)
			}
		})
	}
}

// TestRelease_ReachesItsNamespaceOnly: an object is let go of in its namespace only, or wherever an entry has it if its kind has no namespaces.
func TestRelease_ReachesItsNamespaceOnly(t *testing.T) {
	released := func(apiVersion, kind string) string {
		return "---\napiVersion: " + apiVersion + "\nkind: " + kind + "\nmetadata: {name: a, annotations: {resources.gardener.cloud/mode: Ignore}}\n"
	}
	for name, c := range map[string]struct {
		manifest          string
		entry             resourcesv1alpha1.ObjectReference
		released, deleted string
	}{
		"MRO-2/another namespace":          {released("v1", "ConfigMap"), entry("v1", "ConfigMap", "n", "", false), "", "/ConfigMap/n/a"},
		"MRO-2/a kind without namespaces":  {released("rbac.authorization.k8s.io/v1", "ClusterRole"), entry("rbac.authorization.k8s.io/v1", "ClusterRole", "n", "", false), "rbac.authorization.k8s.io/ClusterRole/n/a", ""},
		"MRO-2/an equivalent kind":         {released("apps/v1", "Deployment"), entry("extensions/v1beta1", "Deployment", "default", "", false), "extensions/Deployment/default/a", ""},
		"MRO-2/another kind is not let go": {released("v1", "Secret"), entry("v1", "ConfigMap", "default", "", false), "", "/ConfigMap/default/a"},
	} {
		p := plan(t, c.manifest, []resourcesv1alpha1.ObjectReference{c.entry})
		expect.True(t, keys(p.Release) == c.released && keys(p.Delete) == c.deleted,
			"%s: released %q, deleted %q", name, keys(p.Release), keys(p.Delete))
	}
}

// TestPlan_DeletesImpossibleEntries: an entry that names no object is deleted like others, and speaks for none that there is.
func TestPlan_DeletesImpossibleEntries(t *testing.T) {
	sound, broken := entry("v1", "ConfigMap", "default", "", false), entry("", "ConfigMap", "default", "", false)
	sound.Labels = map[string]string{"former": "x"}
	p := plan(t, object("v1", "ConfigMap", "a", ""), []resourcesv1alpha1.ObjectReference{sound, broken})
	expect.True(t, len(p.Delete) == 0 && p.Apply[0].Old != nil && p.Apply[0].Old.Labels["former"] == "x",
		"MRX-18: deleted %s, and the object's entry is %+v", keys(p.Delete), p.Apply[0].Old)
	if p = plan(t, "", []resourcesv1alpha1.ObjectReference{broken}); len(p.Delete) != 1 {
		t.Errorf("MRX-18: the entry stays: %+v", p)
	}
}

// TestPlan_JoinsTheFirstOfTwoSets: a list whose kinds are in two sets joins the set of the first of them.
func TestPlan_JoinsTheFirstOfTwoSets(t *testing.T) {
	gk := func(name string) metav1.GroupKind { return metav1.GroupKind{Group: name, Kind: name} }
	e := NewEquivalences([][]metav1.GroupKind{{gk("a"), gk("b")}, {gk("c"), gk("d")}, {gk("b"), gk("c"), gk("e")}})
	var got []string
	for _, key := range e.Keys(objects.ID{Group: "e", Kind: "e", Namespace: "n", Name: "i"}) {
		got = append(got, key.Group)
	}
	expect.Equal(t, strings.Join(got, ""), "eabc", "MRD-15: e is equivalent to %v", got)
}
