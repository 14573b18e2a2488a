package plan

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/decode"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

func decoded(t testing.TB, manifests string) decode.Result {
	t.Helper()
	return decodeSources(t, []decode.Source{{Secret: types.NamespacedName{Namespace: "ns", Name: "s"}, Data: map[string][]byte{"a": []byte(manifests)}}})
}

func decodeSources(t rapid.TB, sources []decode.Source) decode.Result {
	t.Helper()
	result, err := decode.Decode(context.Background(), sources)
	must.Succeed(t, err)
	return result
}

func scopeOf(gvk schema.GroupVersionKind) (Scope, error) {
	switch gvk.Kind {
	case "ClusterRole", "Namespace", "CustomResourceDefinition":
		return ScopeCluster, nil
	case "Unknown":
		return ScopeUnknown, nil
	}
	return ScopeNamespaced, nil
}

func plan(t testing.TB, manifests string, inventory []resourcesv1alpha1.ObjectReference, change ...func(*Options)) *Plan {
	t.Helper()
	options := Options{Spec: &resourcesv1alpha1.ManagedResourceSpec{}, Origin: "ns/mr", ManagedByLabelValue: "gardener", Scope: scopeOf}
	for _, c := range change {
		c(&options)
	}
	return NewPlan(decoded(t, manifests), inventory, options)
}

func object(apiVersion, kind, name, more string) string {
	return fmt.Sprintf("---\napiVersion: %s\nkind: %s\nmetadata: {name: %s}\n%s\n", apiVersion, kind, name, more)
}

func keys(refs []resourcesv1alpha1.ObjectReference) string {
	var result []string
	for i := range refs {
		result = append(result, objects.IDOfEntry(&refs[i]).String())
	}
	return strings.Join(result, " ")
}

func TestPlan_MatchesManifestsAndInventory(t *testing.T) {
	cm := func(name string) string { return object("v1", "ConfigMap", name, "") }
	released := func(manifest string) string {
		return strings.Replace(manifest, "name: a", "name: a, annotations: {resources.gardener.cloud/mode: Ignore}", 1)
	}
	inventory := func(manifests string) []resourcesv1alpha1.ObjectReference { return plan(t, manifests, nil).Inventory }
	for name, tc := range map[string]struct {
		manifests string
		inventory []resourcesv1alpha1.ObjectReference
		want      string
		deletes   string
		keeps     string
		releases  string
		errors    string
	}{
		"MRS-7/sorted by key":                      {manifests: cm("b") + object("apps/v1", "Deployment", "a", "") + cm("a"), want: "/ConfigMap/default/a /ConfigMap/default/b apps/Deployment/default/a"},
		"MRD-8/scopes":                             {manifests: object("rbac.authorization.k8s.io/v1", "ClusterRole", "c", "x: y") + object("x/v1", "Unknown", "u", ""), want: "rbac.authorization.k8s.io/ClusterRole/default/c x/Unknown/default/u"},
		"MR-10/what no manifest has is deleted":    {manifests: cm("a"), inventory: inventory(cm("a") + cm("b")), want: "/ConfigMap/default/a", deletes: "/ConfigMap/default/b"},
		"MRB-2/a broken document deletes none":     {manifests: cm("a") + "---\n[\n", inventory: inventory(cm("a") + cm("b")), want: "/ConfigMap/default/a /ConfigMap/default/b", keeps: "/ConfigMap/default/b"},
		"MRB-15, MRO-2 released and described":     {manifests: released(cm("a")) + cm("a"), inventory: inventory(cm("a")), want: "/ConfigMap/default/a", keeps: "/ConfigMap/default/a", errors: "the object is described twice"},
		"MRB-15, MRO-2 described and released":     {manifests: cm("a") + released(cm("a")), inventory: inventory(cm("a")), want: "/ConfigMap/default/a", keeps: "/ConfigMap/default/a", errors: "the object is described twice"},
		"MRB-15/described twice":                   {manifests: cm("a") + cm("a") + cm("b"), inventory: inventory(cm("a")), want: "/ConfigMap/default/a /ConfigMap/default/b", keeps: "/ConfigMap/default/a", errors: `the object is described twice, at index 0 in 'a' in secret 'ns/s' and at index 1`},
		"MR-32/no kind":                            {manifests: "apiVersion: v1\nmetadata: {name: a}\n", inventory: inventory(cm("b")), want: "/ConfigMap/default/b", keeps: "/ConfigMap/default/b", errors: "'Kind' is missing"},
		"MRD-7/generateName":                       {manifests: "apiVersion: v1\nkind: ConfigMap\nmetadata: {generateName: a-}\n", errors: "metadata.name is missing"},
		"MRD-14/MRD-16/equivalent kinds":           {manifests: object("apps/v1", "Deployment", "a", ""), inventory: inventory(object("extensions/v1beta1", "Deployment", "a", "")), want: "apps/Deployment/default/a"},
		"MRD-13/MRD-16/the run before did not end": {manifests: object("apps/v1", "Deployment", "a", ""), inventory: inventory(object("apps/v1", "Deployment", "a", "") + object("extensions/v1beta1", "Deployment", "a", "")), want: "apps/Deployment/default/a"},
		"MRO-1/MRO-2/released":                     {manifests: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, annotations: {resources.gardener.cloud/mode: Ignore}}\n", inventory: inventory(cm("a")), releases: "/ConfigMap/default/a"},
		"MRD-12/Namespace has no namespace":        {manifests: object("v1", "Namespace", "a", ""), want: "/Namespace//a"},
		"MRD-13/another version is the same one":   {manifests: object("batch/v1", "CronJob", "a", ""), inventory: inventory(object("batch/v1beta1", "CronJob", "a", "")), want: "batch/CronJob/default/a"},
	} {
		t.Run(name, func(t *testing.T) {
			p := plan(t, tc.manifests, tc.inventory)
			for what, pair := range map[string][2]string{
				"inventory": {keys(p.Inventory), tc.want}, "delete": {keys(p.Delete), tc.deletes}, "keep": {keys(p.Unmatched), tc.keeps}, "release": {keys(p.Release), tc.releases},
			} {
				expect.Equal(t, pair[0], pair[1], "%s", what)
			}
			if err := JoinErrors(p.Errors); (err == nil) != (tc.errors == "") || err != nil && !strings.Contains(err.Error(), tc.errors) {
				t.Errorf("errors: got %v, want %q", err, tc.errors)
			}
		})
	}
}

// MRB-4: a kind that can't be resolved holds up no other, and nothing is deleted meanwhile, and nothing forgotten.
func TestPlan_UnresolvedKindDeletesNothing(t *testing.T) {
	asked := 0
	inventory := plan(t, object("v1", "ConfigMap", "gone", "")+object("sick/v1", "Widget", "w", ""), nil).Inventory
	p := plan(t, object("v1", "ConfigMap", "a", "")+object("sick/v1", "Widget", "w", "")+object("sick/v1", "Widget", "v", ""), inventory, func(o *Options) {
		o.Scope = func(gvk schema.GroupVersionKind) (Scope, error) {
			if gvk.Group == "sick" {
				asked++
				return ScopeUnknown, errors.New("no answer")
			}
			return scopeOf(gvk)
		}
	})
	expect.True(t, len(p.Apply) == 1 && len(p.Errors) == 2 && len(p.Delete) == 0 && asked == 1,
		"apply %d, errors %v, delete %s, asked %d times", len(p.Apply), p.Errors, keys(p.Delete), asked)
	expect.Equal(t, keys(p.Inventory), "/ConfigMap/default/a /ConfigMap/default/gone sick/Widget/default/w", "inventory")
}

// MRD-9: an object is on record where its CustomResourceDefinition puts it, in the same manifests or as the target serves it.
func TestPlan_RecordsObjectsInTheirScope(t *testing.T) {
	definition := func(scope string) string {
		return object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "unknowns.v1", "spec: {group: x, scope: "+scope+", names: {kind: Unknown}}")
	}
	for scope, want := range map[string]string{"Cluster": "", "Namespaced": "default", "Nonsense": "default"} {
		p := plan(t, definition(scope)+object("x/v1", "Unknown", "u", ""), nil)
		got := p.Apply[1].Reference.Namespace
		expect.True(t, got == want && p.Apply[1].GetNamespace() == want, "%s: namespace %q", scope, got)
	}
	guessed := plan(t, object("x/v1", "Unknown", "u", ""), nil).Inventory
	p := plan(t, definition("Cluster")+object("x/v1", "Unknown", "u", ""), guessed)
	for _, entry := range p.Pending(guessed) {
		if entry.Name == "u" && entry.Namespace != "" {
			t.Errorf("it is going to be cluster-scoped, and is on record in namespace %q", entry.Namespace)
		}
	}
}

// MRX-18: an impossible object is refused in a manifest, and not requested when it is in an inventory.
func TestPlan_RefusesImpossibleObjects(t *testing.T) {
	for _, name := range []string{"a/b", "..", "50%"} {
		p := plan(t, object("v1", "ConfigMap", "'"+name+"'", ""), nil)
		expect.True(t, len(p.Errors) == 1 && len(p.Inventory) == 0 && strings.Contains(p.Errors[0].Error(), "metadata.name"),
			"%q: errors %v, inventory %v", name, p.Errors, p.Inventory)
		expect.False(t, CanExist(&corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "n", Name: name}),
			"%q can't exist", name)
	}
	for _, ref := range []corev1.ObjectReference{{}, {APIVersion: "a/b/c", Kind: "K", Name: "n"}, {APIVersion: "v1", Kind: "K", Name: "n", Namespace: "a/b"}} {
		expect.False(t, CanExist(&ref), "%v can't exist", ref)
	}
	expect.True(t, CanExist(&corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Name: "n"}),
		"a cluster-scoped object can exist")
}

// MRX, ownership: an entry is planned until its object was written, and an object that is created once stays on record as it was.
func TestPlan_EntriesArePlannedUntilWritten(t *testing.T) {
	once := "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: o, annotations: {resources.gardener.cloud/ignore: 'true'}}\n"
	p := plan(t, object("v1", "ConfigMap", "a", "")+once, nil)
	pending := p.Pending(nil)
	if !meta.Tentative(&pending[0]) || !meta.Tentative(&pending[1]) || meta.Tentative(&p.Inventory[0]) || meta.Tentative(&p.Inventory[1]) {
		t.Errorf("pending %v, inventory %v", pending, p.Inventory)
	}
	entry := plan(t, once, nil).Inventory[0]
	entry.UID = "u"
	expect.Equal(t, (plan(t, once, []resourcesv1alpha1.ObjectReference{entry}).Inventory[0]).UID, "u",
		"the record of a creation is lost")
	got := plan(t, once, []resourcesv1alpha1.ObjectReference{meta.AsTentative(entry)}).Inventory[0]
	expect.True(t, meta.Tentative(&got), "an object that was there before became ours: %v", got)
}

func TestOrder_IsThatOfKinds(t *testing.T) {
	manifests := ""
	for _, kind := range []string{"Zebra", "StatefulSet", "Apple", "Deployment", "Service", "ClusterRole", "CustomResourceDefinition", "ConfigMap", "ServiceAccount", "Namespace", "ValidatingWebhookConfiguration"} {
		manifests += object("g/v1", kind, "b", "") + object("g/v1", kind, "a", "")
	}
	var got []string
	for _, desired := range plan(t, manifests, nil).Apply {
		got = append(got, desired.GetKind()+"/"+desired.GetName())
	}
	want := []string{"Namespace/a", "Namespace/b", "ServiceAccount/a", "ServiceAccount/b", "ConfigMap/a", "ConfigMap/b", "CustomResourceDefinition/a", "CustomResourceDefinition/b",
		"ClusterRole/a", "ClusterRole/b", "Service/a", "Service/b", "Deployment/a", "Deployment/b", "StatefulSet/a", "StatefulSet/b", "ValidatingWebhookConfiguration/a", "ValidatingWebhookConfiguration/b",
		"Apple/a", "Apple/b", "Zebra/a", "Zebra/b"}
	expect.DeepEqual(t, got, want, "MR-22")
}

func TestOrder_OfKindsIsStable(t *testing.T) {
	want := strings.Fields("PriorityClass Namespace NetworkPolicy ResourceQuota LimitRange PodSecurityPolicy PodDisruptionBudget ServiceAccount Secret SecretList ConfigMap " +
		"StorageClass PersistentVolume PersistentVolumeClaim CustomResourceDefinition ClusterRole ClusterRoleList ClusterRoleBinding ClusterRoleBindingList Role RoleList " +
		"RoleBinding RoleBindingList Service DaemonSet Pod ReplicationController ReplicaSet Deployment HorizontalPodAutoscaler StatefulSet Job CronJob IngressClass Ingress " +
		"APIService MutatingWebhookConfiguration ValidatingWebhookConfiguration")
	manifests := ""
	for _, kind := range slices.Backward(want) {
		manifests += object("g/v1", kind, "a", "")
	}
	var got []string
	for _, desired := range plan(t, manifests, nil).Apply {
		got = append(got, desired.GetKind())
	}
	expect.DeepEqual(t, got, want, "MR-23")
}

// MRA-4g: group/kinds that the ManagedResource calls equivalent name one object, over several groups too.
func TestPlan_EquivalentKindsNameOneObject(t *testing.T) {
	gk := func(group, kind string) metav1.GroupKind { return metav1.GroupKind{Group: group, Kind: kind} }
	e := NewEquivalences([][]metav1.GroupKind{{gk("a", "A"), gk("b", "B")}, {gk("b", "B"), gk("c", "C")}, {gk("apps", "Deployment"), gk("x", "D")}})
	for name, tc := range map[string]struct {
		key  objects.ID
		want string
	}{
		"MRD-14/built in":     {objects.ID{Group: "extensions", Kind: "Ingress", Namespace: "n", Name: "i"}, "[extensions/Ingress/n/i networking.k8s.io/Ingress/n/i]"},
		"MRD-15/chained":      {objects.ID{Group: "a", Kind: "A", Namespace: "n", Name: "i"}, "[a/A/n/i b/B/n/i c/C/n/i]"},
		"MRD-15/joins a set":  {objects.ID{Group: "x", Kind: "D", Namespace: "n", Name: "i"}, "[x/D/n/i apps/Deployment/n/i extensions/Deployment/n/i]"},
		"MRD-16/other kinds":  {objects.ID{Group: "", Kind: "ConfigMap", Namespace: "n", Name: "i"}, "[/ConfigMap/n/i]"},
		"MRD-16/other groups": {objects.ID{Group: "other", Kind: "Ingress", Namespace: "n", Name: "i"}, "[other/Ingress/n/i]"},
	} {
		t.Run(name, func(t *testing.T) {
			expect.Equal(t, fmt.Sprint(e.Keys(tc.key)), tc.want, "MRA-4g")
		})
	}
}

func TestPending_KeepsUnfinishedEntries(t *testing.T) {
	old := plan(t, object("v1", "ConfigMap", "a", ""), nil).Inventory
	p := plan(t, strings.Replace(object("v1", "ConfigMap", "a", ""), "{name: a}", "{name: a, labels: {x: y}}", 1)+object("v1", "ConfigMap", "b", ""), old)
	pending := p.Pending(old)
	must.Equal(t, keys(pending), "/ConfigMap/default/a /ConfigMap/default/b", "MRB-3")
	_, found := pending[0].Labels["x"]
	expect.False(t, found, "MRB-3: an entry keeps its old labels until its object was applied")
}

// MRB-3, MRO-2: the entry of an object that is let go of is no proof any more that the object is ours, and the entry of another object stays one.
func TestPending_ReleasedEntriesProveNothing(t *testing.T) {
	configMap := func(name, annotations string) string {
		return "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", annotations: {" + annotations + "}}\n"
	}
	const once, released = "resources.gardener.cloud/ignore: 'true'", "resources.gardener.cloud/mode: Ignore"
	old := plan(t, configMap("c", once)+configMap("b", "")+configMap("a", once), nil).Inventory
	for i := range old {
		old[i].UID = "u"
	}
	p := plan(t, configMap("a", once+", "+released)+configMap("b", released)+configMap("c", once), old)
	pending := p.Pending(old)
	must.Equal(t, keys(pending), "/ConfigMap/default/a /ConfigMap/default/b /ConfigMap/default/c", "MRB-3")
	for i, want := range []bool{true, false, false} {
		expect.Equal(t, meta.Tentative(&pending[i]), want,
			"MRO-2: the entry of %s is a record that it is ours: %v, want %v", pending[i].Name, want, !want)
	}
}

// MRB-3: the inventory that is persisted before the first write is in a stable order, whatever the order of the manifests is.
func TestPending_IsSorted(t *testing.T) {
	p := plan(t, object("v1", "ConfigMap", "c", "")+object("v1", "ConfigMap", "a", ""), nil)
	before := plan(t, object("v1", "ConfigMap", "b", ""), nil).Inventory
	expect.Equal(t, keys(p.Pending(before)), "/ConfigMap/default/a /ConfigMap/default/b /ConfigMap/default/c", "MRB-3")
}

// MR-22: objects of one kind are applied side by side, and kinds one after the other.
func TestTiers_SeparateKinds(t *testing.T) {
	for name, tc := range map[string]struct{ sorted, want string }{
		"MR-22/nothing": {}, "MR-22/one": {sorted: "a", want: "a"}, "MR-22/one kind": {sorted: "a a a", want: "aaa"}, "MR-22/two kinds": {sorted: "a a b", want: "aa b"},
		"MR-22/each its own": {sorted: "a b c", want: "a b c"}, "MR-22/a kind comes again": {sorted: "a b b a", want: "a bb a"},
	} {
		var got []string
		for _, tier := range Tiers(strings.Fields(tc.sorted), func(kind string) string { return kind }) {
			got = append(got, strings.Join(tier, ""))
		}
		expect.Equal(t, strings.Join(got, " "), tc.want, "%s: got %q", name, got)
	}
}

func TestPlan_InjectsLabelsIntoEntries(t *testing.T) {
	p := plan(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: {a: b, c: d}, annotations: {e: f}}\n", nil, func(o *Options) {
		o.Spec.InjectLabels = map[string]string{"c": "injected", resourcesv1alpha1.LabelManagedBy: "x"}
	})
	want := map[string]string{"a": "b", "c": "injected", resourcesv1alpha1.LabelManagedBy: "gardener"}
	expect.DeepEqual(t, p.Inventory[0].Labels, want, "MRA-9/MRL-1 labels")
	expect.DeepEqual(t, p.Inventory[0].Annotations, map[string]string{"e": "f"}, "MRA-9 annotations")
	expect.Equal(t, p.Apply[0].Name(), "v1/ConfigMap/default/a", "MR-28")
}

func TestPlan_WarnsOfHangingDeletion(t *testing.T) {
	p := plan(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, annotations: {resources.gardener.cloud/finalize-deletion-after: abc}}\n", nil)
	expect.Equal(t, len(p.Warnings), 1, "MRB-36: got %v", p.Warnings)
}

func TestJoinErrors_IsSortedAndBounded(t *testing.T) {
	numbered := func(n int) (errs []error) {
		for i := range n {
			errs = append(errs, fmt.Errorf("error %03d", i))
		}
		return errs
	}
	must.Succeed(t, JoinErrors(nil))
	one, twice := errors.New("one"), errors.New("twice")
	for name, c := range map[string]struct {
		errors []error
		want   string
	}{
		"MRB-4/a single error stays as it is":      {errors: []error{one}, want: "one"},
		"MRX-12/several errors are sorted":         {errors: []error{errors.New("b"), one, errors.New("a")}, want: "3 errors occurred: [a, b, one]"},
		"MRB-4/equal errors are named once":        {errors: []error{one, one}, want: "2 errors occurred: [one]"},
		"MRB-4/an error that occurs again":         {errors: []error{twice, one, twice}, want: "3 errors occurred: [one, twice]"},
		"MRB-4/as many as can be named":            {errors: numbered(NamedErrors), want: fmt.Sprintf("%d errors occurred: %s", NamedErrors, listed(numbered(NamedErrors), ""))},
		"MRB-4/one more than can be named":         {errors: numbered(NamedErrors + 1), want: fmt.Sprintf("%d errors occurred: %s", NamedErrors+1, listed(numbered(NamedErrors), " and 1 more"))},
		"MRB-4/many more errors than can be named": {errors: numbered(100), want: "100 errors occurred: " + listed(numbered(20), " and 80 more")},
	} {
		t.Run(name, func(t *testing.T) {
			got := JoinErrors(c.errors)
			expect.Equal(t, got.Error(), c.want)
			for _, err := range c.errors {
				expect.ErrorIs(t, got, err, "%v is not among the causes of", err)
			}
		})
	}
}

// listed returns errors as JoinErrors lists them.
func listed(errs []error, more string) string {
	var names []string
	for _, err := range errs {
		names = append(names, err.Error())
	}
	return "[" + strings.Join(names, ", ") + more + "]"
}

// TestPlan_IsStable is the property that planning against the result of a plan changes nothing.
func TestPlan_IsStable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kinds := []string{"ConfigMap", "Secret", "ClusterRole", "Namespace", "Unknown"}
		generate := func(label string) string {
			manifests := ""
			for i := range rapid.IntRange(0, 6).Draw(t, label) {
				manifests += object("v1", rapid.SampledFrom(kinds).Draw(t, "kind"), fmt.Sprint("n", i%4), "")
			}
			return manifests
		}
		options := Options{Spec: &resourcesv1alpha1.ManagedResourceSpec{}, ManagedByLabelValue: "gardener", Scope: scopeOf}
		decodeIt := func(manifests string) decode.Result {
			return decodeSources(t, []decode.Source{{Data: map[string][]byte{"a": []byte(manifests)}}})
		}
		before := NewPlan(decodeIt(generate("before")), nil, options)
		manifests := generate("after")
		first := NewPlan(decodeIt(manifests), before.Inventory, options)
		second := NewPlan(decodeIt(manifests), first.Inventory, options)
		must.True(t, len(second.Delete) == 0 && keys(first.Inventory) == keys(second.Inventory),
			"not stable: deletes %s, inventory %s, then %s", keys(second.Delete), keys(first.Inventory), keys(second.Inventory))
		// Nothing that was there is forgotten: it is deleted, or still in the inventory.
		for _, ref := range before.Inventory {
			key := objects.IDOfEntry(&ref).String()
			if !strings.Contains(keys(first.Delete)+" "+keys(first.Inventory)+" ", key+" ") && !strings.HasSuffix(keys(first.Inventory), key) {
				t.Fatalf("%s is neither kept nor deleted", key)
			}
		}
	})
}
