package inspect

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/plan"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// runOf is the next run of the ManagedResource of some facts.
func runOf(t *testing.T, facts *Facts) *Run {
	t.Helper()
	mr := facts.ManagedResource
	decoded, err := Decode(t.Context(), mr, facts.Secrets)
	must.Succeed(t, err)
	planned := plan.NewPlan(decoded, mr.Status.Resources, SettingsOf(mr).PlanOptions(mr, func(runtimeschema.GroupVersionKind) (plan.Scope, error) { return plan.ScopeNamespaced, nil }))
	run := &Run{Now: now, ManagedResource: mr, Planned: planned, Live: map[objects.ID]*unstructured.Unstructured{}, Unread: map[objects.ID]error{}}
	if facts.Live != nil {
		run.Live[facts.Key()] = facts.Live
	}
	return run
}

// held gives the live object a hold.
func held(f *Facts) {
	annotations := f.Live.GetAnnotations()
	annotations[resourcesv1alpha1.AnnotationLeaveAloneUntil] = "2026-11-24T19:00:00Z"
	f.Live.SetAnnotations(annotations)
}

// another is another ManagedResource that has the object of webFacts.
func another(t *testing.T, name string) *resourcesv1alpha1.ManagedResource {
	t.Helper()
	mr := webFacts(t).ManagedResource
	mr.Name = name
	return mr
}

// CLI-12 (diff says what the next run would do): by manifests, inventory, live objects and the other ManagedResources that have them.
func TestChanges(t *testing.T) {
	noManifest := func(f *Facts) { f.Secrets["web"].Data = nil }
	for name, tc := range map[string]struct {
		change func(*Facts)
		run    func(*testing.T, *Run)
		want   string
		faults int
	}{
		"CLI-12/in sync":     {nil, nil, "", 0},
		"CLI-12/not there":   {func(f *Facts) { f.Live = nil }, nil, "create ConfigMap web", 0},
		"CLI-12/edited":      {func(f *Facts) { f.Live.Object["data"] = map[string]any{"colour": "blue", "size": "big"} }, nil, "update ConfigMap web: data.colour", 0},
		"CLI-12/left":        {noManifest, nil, "delete ConfigMap web (no manifest describes it any more)", 0},
		"CLI-12/left, gone":  {func(f *Facts) { noManifest(f); f.Live = nil }, nil, "", 0},
		"CLI-12/left, taken": {noManifest, func(t *testing.T, r *Run) { r.Others = append(r.Others, another(t, "other")) }, "handOver ConfigMap web (no manifest describes it any more, and ManagedResource garden/other has it, too)", 0},
		"CLI-12/left, kept": {func(f *Facts) {
			noManifest(f)
			f.Live.SetAnnotations(map[string]string{resourcesv1alpha1.AnnotationKeepObject: "true", resourcesv1alpha1.AnnotationOrigin: "id:garden/web"})
		}, nil, "leave ConfigMap web (no manifest describes it any more, but it is annotated with resources.gardener.cloud/keep-object)", 0},
		"CLI-12/left, another's by its origin": {func(f *Facts) {
			noManifest(f)
			f.Live.SetAnnotations(map[string]string{resourcesv1alpha1.AnnotationOrigin: "id:other/web"})
		}, nil, "leave ConfigMap web (no manifest describes it any more, but its origin is id:other/web)", 0},
		"CLI-12/released": {func(f *Facts) {
			f.Secrets["web"].Data["all.yaml"] = []byte(strings.Replace(webManifest, "namespace: default", "namespace: default, annotations: {resources.gardener.cloud/mode: Ignore}", 1))
		}, nil, "release ConfigMap web (its manifest has mode Ignore: it loses its origin, and has no owner)", 0},
		"CLI-12/kept by another one": {func(f *Facts) {
			f.Live.SetAnnotations(map[string]string{resourcesv1alpha1.AnnotationOrigin: "id:garden/other", resourcesv1alpha1.AnnotationDescription: resourcesv1alpha1.DescriptionValue})
		}, func(t *testing.T, r *Run) { r.Others = append(r.Others, another(t, "other")) }, "", 0},
		"CLI-12/taken over": {func(f *Facts) {
			f.Live.SetAnnotations(map[string]string{resourcesv1alpha1.AnnotationOrigin: "id:garden/other", resourcesv1alpha1.AnnotationDescription: resourcesv1alpha1.DescriptionValue})
		}, nil, "update ConfigMap web: metadata.annotations.resources.gardener.cloud/origin", 0},
		"CLI-12/ignored": {func(f *Facts) {
			f.Live = nil
			f.ManagedResource.Annotations = map[string]string{resourcesv1alpha1.AnnotationIgnore: "true"}
		}, nil, "", 0},
		"CLI-12/a hold in force": {func(f *Facts) {
			f.Live.Object["data"] = map[string]any{"colour": "blue", "size": "big"}
			held(f)
			f.ManagedResource.Annotations = map[string]string{resourcesv1alpha1.AnnotationAllowHolds: "true"}
		}, nil, "leave ConfigMap web (it differs from its manifest, and is left alone: everything until 2026-11-24T19:00:00Z)", 0},
		"CLI-12/a hold in force by the configuration": {func(f *Facts) {
			f.Live.Object["data"] = map[string]any{"colour": "blue", "size": "big"}
			held(f)
			f.ManagedResource.Status.Conditions = []resourcesv1alpha1.Condition{{Type: "ResourcesApplied", Status: "True", Message: meta.MessageApplied + meta.LeftAlone("ConfigMap default/other, ConfigMap default/web and 3 more")}}
		}, nil, "leave ConfigMap web (it differs from its manifest, and is left alone: everything until 2026-11-24T19:00:00Z)", 0},
		"CLI-12/a hold that may not count": {func(f *Facts) {
			f.Live.Object["data"] = map[string]any{"colour": "blue", "size": "big"}
			held(f)
		}, nil, "update ConfigMap web: data.colour (unless the hold on it counts, which the configuration of resource-manager decides: everything until 2026-11-24T19:00:00Z)", 0},
		"CLI-12/a hold that does not count": {func(f *Facts) {
			f.Live.Object["data"] = map[string]any{"colour": "blue", "size": "big"}
			held(f)
			f.ManagedResource.Annotations = map[string]string{resourcesv1alpha1.AnnotationAllowHolds: "false"}
		}, nil, "update ConfigMap web: data.colour", 0},
		"CLI-12/a hold on what is in sync": {func(f *Facts) {
			held(f)
			f.ManagedResource.Annotations = map[string]string{resourcesv1alpha1.AnnotationAllowHolds: "true"}
		}, nil, "", 0},
		"CLI-12/not read": {nil, func(_ *testing.T, r *Run) {
			for key := range r.Live {
				delete(r.Live, key)
				r.Unread[key] = errors.New("away")
			}
		}, "", 1},
		"CLI-12/described twice": {func(f *Facts) { f.Secrets["web"].Data["more.yaml"] = []byte(webManifest) }, nil, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			facts := webFacts(t)
			if tc.change != nil {
				tc.change(facts)
			}
			run := runOf(t, facts)
			if tc.run != nil {
				tc.run(t, run)
			}
			changes, faults := run.Changes()
			var got []string
			for _, c := range changes {
				text := string(c.Action) + " " + c.Kind + " " + c.Name
				for _, d := range c.Differences {
					text += ": " + d.Path
				}
				if c.Why != "" {
					text += " (" + c.Why + ")"
				}
				got = append(got, text)
			}
			diff := cmp.Diff(tc.want, strings.Join(got, "\n"))
			expect.True(t, diff == "" && len(faults) == tc.faults, "CLI-12: %s\nfaults %v", diff, faults)
		})
	}
}

// CLI-11: what diff prints of a Secret that is created, changed or deleted has none of its values.
func TestChangesOfSecretsAreMasked(t *testing.T) {
	manifest := "apiVersion: v1\nkind: Secret\ntype: Opaque\nmetadata: {name: web, namespace: default}\nstringData: {password: shrill}\n"
	live := parsed(t, strings.Replace(webLive, "data: {colour: red, size: big}", "type: Opaque\ndata: {password: aHVzaA==, same: aHVzaA==}", 1))
	live.SetKind("Secret")
	for name, change := range map[string]func(*Facts){
		"CLI-11/created": func(f *Facts) { f.Live = nil },
		"CLI-11/changed": func(*Facts) {},
		"CLI-11/deleted": func(f *Facts) { f.Secrets["web"].Data = nil },
	} {
		t.Run(name, func(t *testing.T) {
			facts := webFacts(t)
			facts.Live, facts.Kind = live.DeepCopy(), live.GroupVersionKind()
			facts.ManagedResource.Status.Resources[0].Kind = "Secret"
			facts.Secrets["web"].Data["all.yaml"] = []byte(manifest)
			change(facts)
			changes, _ := runOf(t, facts).Changes()
			must.Equal(t, len(changes), 1, "CLI-11: %+v", changes)
			forms := []any{changes[0]}
			for _, form := range []*unstructured.Unstructured{changes[0].Live, changes[0].Wanted} {
				if form != nil {
					forms = append(forms, form.Object)
				}
			}
			content, _ := json.Marshal(forms)
			for _, value := range []string{"hush", "shrill", "aHVzaA", "c2hyaWxs"} {
				expect.False(t, strings.Contains(string(content), value), "CLI-11: %s in %s", value, content)
			}
			expect.Contains(t, string(content), masked, "CLI-11: nothing is masked")
		})
	}
}

// CLI-13 (tree shows problems first): by class, then by how urgent it is, then by name; objects in the same way.
func TestBranches(t *testing.T) {
	condition := func(conditionType, status, reason, message string) resourcesv1alpha1.Condition {
		return resourcesv1alpha1.Condition{Type: resourcesv1alpha1.ConditionType(conditionType), Status: resourcesv1alpha1.ConditionStatus(status), Reason: reason, Message: message}
	}
	well := []resourcesv1alpha1.Condition{condition("ResourcesApplied", "True", "", ""), condition("ResourcesHealthy", "True", "", ""), condition("ResourcesProgressing", "False", "", "")}
	having := func(name, class string, conditions []resourcesv1alpha1.Condition, objects ...string) *resourcesv1alpha1.ManagedResource {
		mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: name}}
		mr.Spec.Class, mr.Status.Conditions = &class, conditions
		for _, object := range objects {
			ref := resourcesv1alpha1.ObjectReference{}
			ref.APIVersion, ref.Kind, ref.Namespace, ref.Name = "v1", "ConfigMap", "default", object
			mr.Status.Resources = append(mr.Status.Resources, ref)
		}
		return mr
	}
	ignored := having("ignored", "", well, "gone")
	ignored.Annotations = map[string]string{resourcesv1alpha1.AnnotationIgnore: "true"}
	forest := &TreeFacts{
		Now: now,
		ManagedResources: []*resourcesv1alpha1.ManagedResource{
			having("web", "seed", well, "a"), having("fine", "", well, "a", "b"), ignored, having("lacks", "", well, "b", "lost", "a"),
			having("new", "", nil), having("fails", "", []resourcesv1alpha1.Condition{condition("ResourcesApplied", "False", "ApplyFailed", "no right")}),
			having("unread", "", well, "unread"),
		},
		Live: map[objects.ID]*unstructured.Unstructured{
			{Kind: "ConfigMap", Namespace: "default", Name: "a"}: parsed(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: default}}"),
			{Kind: "ConfigMap", Namespace: "default", Name: "b"}: parsed(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: b, namespace: default, deletionTimestamp: '2026-11-24T17:00:00Z', finalizers: [x/y]}}"),
		},
		Unread: map[objects.ID]error{{Kind: "ConfigMap", Namespace: "default", Name: "unread"}: errors.New("away")},
	}
	drift := event("ObjectChanged", `v1/ConfigMap/default/a was changed by "kubectl-edit" at data; it was repaired`, 4)
	drift.InvolvedObject.Name = "fine"
	forest.Events = append(forest.Events, drift)
	var got []string
	for _, b := range forest.Branches() {
		got = append(got, b.Class+" "+b.Name+" "+string(b.Level)+" "+b.State)
		for _, l := range b.Leaves {
			text := "  " + l.Name + " " + string(l.Level) + " " + l.State
			if l.Drift != nil {
				text += " drift by " + l.Drift.By
			}
			got = append(got, text)
		}
	}
	want := []string{
		"resources fails problem not applied (ApplyFailed): no right",
		"resources lacks problem applied, healthy", "  lost problem missing", "  b underway being deleted, held by x/y", "  a fine there",
		"resources fine underway applied, healthy", "  b underway being deleted, held by x/y", "  a fine there drift by kubectl-edit",
		"resources new underway not seen by any resource-manager yet",
		"resources unread underway applied, healthy", "  unread underway unknown: away",
		"resources ignored fine ignored", "  gone problem missing",
		"seed web fine applied, healthy", "  a fine there",
	}
	expect.DeepEqual(t, got, want, "CLI-13")
}

// TestTreeKnowsHolds: an object under a hold is shown as left alone, if the hold counts, and whether that is known.
func TestTreeKnowsHolds(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Facts)
		want   string
	}{
		"CLI-13/in force":      {func(f *Facts) { f.ManagedResource.Annotations[resourcesv1alpha1.AnnotationAllowHolds] = "true" }, "fine there; left alone: everything until 2026-11-24T19:00:00Z"},
		"CLI-13/not in force":  {func(f *Facts) { f.ManagedResource.Annotations[resourcesv1alpha1.AnnotationAllowHolds] = "false" }, "fine there"},
		"CLI-13/may not count": {func(*Facts) {}, "fine there; left alone, if the configuration allows it: everything until 2026-11-24T19:00:00Z"},
		"CLI-13/not there, and its ManagedResource is left alone": {func(f *Facts) {
			f.Live = nil
			f.ManagedResource.Annotations[resourcesv1alpha1.AnnotationLeaveAloneUntil] = "2026-11-24T19:00:00Z"
		}, "underway missing; it is not created while its ManagedResource is left alone"},
	} {
		f := webFacts(t)
		held(f)
		f.ManagedResource.Annotations = map[string]string{}
		tc.change(f)
		tree := &TreeFacts{Now: now, ManagedResources: []*resourcesv1alpha1.ManagedResource{f.ManagedResource}, Live: map[objects.ID]*unstructured.Unstructured{}}
		if f.Live != nil {
			tree.Live[f.Key()] = f.Live
		}
		leaf := tree.Branches()[0].Leaves[0]
		expect.Equal(t, string(leaf.Level)+" "+leaf.State, tc.want, "%s: got %s %s", name, leaf.Level, leaf.State)
	}
}
