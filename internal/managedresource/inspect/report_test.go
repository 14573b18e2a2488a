package inspect

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

var now = time.Date(2026, 11, 24, 18, 0, 0, 0, time.UTC)

// parsed is an object that is written as YAML.
func parsed(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	content, err := yaml.YAMLToJSON([]byte(text))
	must.Succeed(t, err)
	object := &unstructured.Unstructured{}
	must.Succeed(t, object.UnmarshalJSON(content))
	return object
}

// written notes in the managed fields of an object that a manager wrote fields of it.
func written(object metav1.Object, manager string, minutesAgo int, fields string) {
	at := metav1.NewTime(now.Add(-time.Duration(minutesAgo) * time.Minute))
	object.SetManagedFields(append(object.GetManagedFields(), metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, Time: &at, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
	}))
}

const originField = `{"f:metadata":{"f:annotations":{".":{},"f:resources.gardener.cloud/origin":{}}}`

const (
	webManifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web, namespace: default}\ndata: {colour: red, size: big}\n"
	webLive     = `
apiVersion: v1
kind: ConfigMap
metadata:
  name: web
  namespace: default
  uid: u
  labels: {resources.gardener.cloud/managed-by: gardener}
  annotations:
    resources.gardener.cloud/origin: id:garden/web
    resources.gardener.cloud/description: |-
      DO NOT EDIT - This resource is managed by gardener-resource-manager.
      Any modifications are discarded and the resource is returned to the original state.
data: {colour: red, size: big}
`
)

// webFacts are those of a ConfigMap that is as its manifest says.
func webFacts(t *testing.T) *Facts {
	t.Helper()
	live := parsed(t, webLive)
	written(live, "resource-manager", 60, originField+`,"f:data":{"f:colour":{},"f:size":{}}}`)
	mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "web"}}
	mr.Spec.SecretRefs = []corev1.LocalObjectReference{{Name: "web"}}
	entry := resourcesv1alpha1.ObjectReference{Labels: map[string]string{resourcesv1alpha1.LabelManagedBy: "gardener"}}
	entry.APIVersion, entry.Kind, entry.Namespace, entry.Name = "v1", "ConfigMap", "default", "web"
	mr.Status.Resources = []resourcesv1alpha1.ObjectReference{entry}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "web"}, Data: map[string][]byte{"all.yaml": []byte(webManifest)}}
	written(secret, "gardenlet", 120, `{"f:data":{"f:all.yaml":{}}}`)
	return &Facts{
		Now: now, Kind: live.GroupVersionKind(), Namespace: "default", Name: "web", Live: live, ManagedResource: mr, Proof: ByOrigin,
		Secrets: map[string]*corev1.Secret{"web": secret},
	}
}

func event(reason, message string, minutesAgo int) corev1.Event {
	return corev1.Event{Reason: reason, Message: message, LastTimestamp: metav1.NewTime(now.Add(-time.Duration(minutesAgo) * time.Minute)),
		InvolvedObject: corev1.ObjectReference{Kind: "ManagedResource", Namespace: "garden", Name: "web"}}
}

// CLI-10 (why says whose an object is, and how it stands): each fact is found in the report, and nothing of a Secret.
func TestExplain(t *testing.T) {
	annotate := func(object metav1.Object, key, value string) {
		annotations := object.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[key] = value
		object.SetAnnotations(annotations)
	}
	for name, tc := range map[string]struct {
		change func(*Facts)
		state  State
		found  bool
		says   []string // parts of the report as JSON
		silent []string
	}{
		"CLI-10/in sync": {nil, InSync, false, []string{`"secret":"garden/web","key":"all.yaml","document":0,"by":{"manager":"gardenlet"`,
			`change document 0 of key all.yaml in Secret garden/web, which gardenlet writes`,
			`{"of":"a field of its manifest","path":"data.colour","stays":false}`, `"path":"metadata.labels.example.com/mine","stays":true`,
			`"path":"metadata.annotations.example.com/mine","stays":true`}, []string{"differences", "faults"}},
		"CLI-10/edited, and by whom": {func(f *Facts) {
			f.Live.Object["data"] = map[string]any{"colour": "blue", "more": "x"}
			written(f.Live, "kubectl-edit", 1, `{"f:data":{"f:colour":{},"f:more":{}}}`)
		}, Differs, true, []string{`it differs from its manifest in 3 fields`,
			`{"path":"data.colour","live":"\"blue\"","wanted":"\"red\"","by":{"manager":"kubectl-edit","operation":"Update","time":"2026-11-24T17:59:00Z"}}`,
			`{"path":"data.more","live":"\"x\"","by":{"manager":"kubectl-edit"`, `{"path":"data.size","wanted":"\"big\""}`}, nil},
		"CLI-10/labels of others are overwritten": {func(f *Facts) {
			yes := true
			f.ManagedResource.Spec.ForceOverwriteLabels = &yes
		}, InSync, false, []string{`"path":"metadata.labels.example.com/mine","stays":false`}, nil},
		"CLI-10/not there": {func(f *Facts) { f.Live = nil }, Missing, true, []string{"it does not exist, and the next run creates it"}, []string{"edits"}},
		"MRB-51/not there, and deleted by a run": {func(f *Facts) {
			f.Live = nil
			f.Events = []corev1.Event{event(meta.ReasonObjectsWritten, "Checksum of the Secrets: 1. Deleted because no manifest has the object (2): v1/ConfigMap/default/other, v1/ConfigMap/default/web", 4),
				event(meta.ReasonObjectsWritten, "Deleted because x (25): v1/ConfigMap/default/web-2 and 24 more", 5)}
		}, Missing, true, []string{`"deleted":[{"time":"2026-11-24T17:56:00Z","reason":"ObjectsWritten","text":"a run of ManagedResource garden/web deleted it, because no manifest has the object"}]`}, []string{"notKnown"}},
		"MRB-51/deleted, and no ManagedResource has it": {func(f *Facts) {
			f.Live, f.ManagedResource = nil, nil
			f.Events = []corev1.Event{event(meta.ReasonObjectsWritten, "Deleted because the ManagedResource is deleted (1): v1/ConfigMap/default/web", 4)}
		}, Missing, true, []string{"a run of ManagedResource garden/web deleted it, because the ManagedResource is deleted"}, []string{"notKnown"}},
		"MRB-51/deletions that the Event does not name": {func(f *Facts) {
			f.Live, f.ManagedResource = nil, nil
			f.Events = []corev1.Event{event(meta.ReasonObjectsWritten, "Deleted because x (25): v1/ConfigMap/default/web-2 and 24 more", 4)}
		}, Missing, true, []string{"whether it was deleted at 2026-11-24T17:56:00Z: a run of ManagedResource garden/web deleted objects of which the Event does not name all"}, []string{`"deleted"`}},
		"CLI-10/no manifest any more": {func(f *Facts) { f.Secrets["web"].Data = nil }, Leaving, false,
			[]string{"no manifest describes it any more", "an edit stays as long as the object does"}, []string{"manifest\":{"}},
		"CLI-10/a Secret that is away": {func(f *Facts) { f.Secrets = nil }, Unknown, true, []string{"its desired state is unknown: Secret garden/web was not read"}, nil},
		"CLI-10/a manifest that cannot be read": {func(f *Facts) { f.Secrets["web"].Data["all.yaml"] = []byte("a: [") }, Unknown, true,
			[]string{"its manifests cannot be applied", "Could not decode resource at index 0 in 'all.yaml' in secret 'garden/web'"}, nil},
		"CLI-10/an ignored ManagedResource, by whom": {func(f *Facts) {
			annotate(f.ManagedResource, resourcesv1alpha1.AnnotationIgnore, "true")
			written(f.ManagedResource, "kubectl-annotate", 7, `{"f:metadata":{"f:annotations":{"f:resources.gardener.cloud/ignore":{}}}}`)
		}, LeftAlone, false, []string{`"where":"on the ManagedResource","annotation":"resources.gardener.cloud/ignore","value":"true","since":"2026-11-24T17:53:00Z","by":"kubectl-annotate","everything":true`,
			"an edit stays: its ManagedResource is ignored"}, nil},
		"CLI-10/a hold on the ManagedResource, by whom and why": {func(f *Facts) {
			f.Live.Object["data"] = map[string]any{"colour": "blue"}
			annotate(f.ManagedResource, resourcesv1alpha1.AnnotationLeaveAloneUntil, "2026-11-24T19:00:00Z")
			annotate(f.ManagedResource, resourcesv1alpha1.AnnotationLeaveAloneReason, "an emergency")
			written(f.ManagedResource, "kubectl-annotate", 7, `{"f:metadata":{"f:annotations":{"f:resources.gardener.cloud/leave-alone-until":{}}}}`)
		}, LeftAlone, false, []string{`"what":"everything until 2026-11-24T19:00:00Z, for the reason \"an emergency\""`, `"by":"kubectl-annotate"`, "an edit stays: it is left alone for a while"}, []string{"differences"}},
		"CLI-10/a hold that ended": {func(f *Facts) {
			f.Live.Object["data"] = map[string]any{"colour": "blue", "size": "big"}
			annotate(f.ManagedResource, resourcesv1alpha1.AnnotationLeaveAloneUntil, "2026-11-24T17:59:59Z")
		}, Differs, true, []string{`"path":"data.colour"`}, []string{"ignored"}},
		"CLI-10/a hold on an object": {func(f *Facts) {
			f.Live.Object["data"] = map[string]any{"colour": "blue", "size": "small"}
			annotate(f.ManagedResource, resourcesv1alpha1.AnnotationAllowHolds, "true")
			annotate(f.Live, resourcesv1alpha1.AnnotationLeaveAloneUntil, "2026-11-24T19:00:00Z")
		}, LeftAlone, false, []string{`"what":"everything until 2026-11-24T19:00:00Z"`, "an edit stays: it is left alone for a while"}, []string{"differences"}},
		"CLI-10/a hold that may not count": {func(f *Facts) {
			f.Live.Object["data"] = map[string]any{"colour": "blue", "size": "big"}
			annotate(f.Live, resourcesv1alpha1.AnnotationLeaveAloneUntil, "2026-11-24T19:00:00Z")
		}, Differs, true, []string{"whether the hold on the object counts", `"path":"data.colour","stays":false,"staysIfHeld":true}`, `"path":"metadata.labels.example.com/mine","stays":true}`}, nil},
		"CLI-10/created once": {func(f *Facts) {
			f.Secrets["web"].Data["all.yaml"] = []byte(strings.Replace(webManifest, "namespace: default", "namespace: default, annotations: {resources.gardener.cloud/ignore: 'true'}", 1))
		}, LeftAlone, false, []string{"it is created once, and not repaired"}, []string{"annotate ManagedResource"}},
		"CLI-10/released": {func(f *Facts) {
			f.Secrets["web"].Data["all.yaml"] = []byte(strings.Replace(webManifest, "namespace: default", "namespace: default, annotations: {resources.gardener.cloud/mode: Ignore}", 1))
		}, LeftAlone, false, []string{"its manifest releases it", `"annotation":"resources.gardener.cloud/mode"`}, nil},
		"CLI-10/repairs and a fight in the target": {func(f *Facts) {
			f.Events = []corev1.Event{
				event("ObjectChanged", `v1/ConfigMap/default/other was deleted; it was repaired. v1/ConfigMap/default/web was changed by "helm" at data.colour; it was repaired`, 9),
				event("ObjectChanged", `v1/ConfigMap/default/web was changed by "helm" at data.colour; it is changed repeatedly, and repaired at most twice a minute`, 2),
			}
		}, InSync, true, []string{`"fights":[{"time":"2026-11-24T17:58:00Z","reason":"ObjectChanged","text":"was changed by \"helm\"`, `"by":"helm"`,
			`"repairs":[{"time":"2026-11-24T17:58:00Z"`}, []string{"other"}},
		"CLI-10/what holds a deletion": {func(f *Facts) {
			at := metav1.NewTime(now.Add(-time.Hour))
			f.Live.SetDeletionTimestamp(&at)
			f.Live.SetFinalizers([]string{"example.com/hold"})
			annotate(f.Live, resourcesv1alpha1.AnnotationKeepObject, "true")
			written(f.Live, "holder", 300, `{"f:metadata":{"f:finalizers":{".":{},"v:\"example.com/hold\"":{}}}}`)
		}, InSync, true, []string{`"since":"2026-11-24T17:00:00Z"`, "finalizer example.com/hold (holder)", resourcesv1alpha1.AnnotationKeepObject, "it is being deleted, and is then recreated"}, nil},
		"CLI-10/nobody's": {func(f *Facts) { f.ManagedResource = nil }, Unmanaged, false, []string{"its origin names ManagedResource garden/web, which does not have it", "an edit stays"}, nil},
		"CLI-10/a copy": {func(f *Facts) {
			yes := true
			f.ManagedResource = nil
			f.Live.SetOwnerReferences([]metav1.OwnerReference{{Kind: "Deployment", Name: "web", Controller: &yes}})
		}, Unmanaged, false, []string{"its controller is Deployment web", "change Deployment web, which made it"}, nil},
		"CLI-10/described twice": {func(f *Facts) { f.Secrets["web"].Data["more.yaml"] = []byte(webManifest) }, Unknown, true, []string{"the object is described twice"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			facts := webFacts(t)
			if tc.change != nil {
				tc.change(facts)
			}
			report, err := Explain(t.Context(), facts)
			must.Succeed(t, err)
			content, err := json.Marshal(report)
			must.Succeed(t, err)
			text := strings.ReplaceAll(string(content), `\u003e`, ">")
			expect.True(t, report.State == tc.state && report.Found() == tc.found, "CLI-10: state %s, found %t", report.State, report.Found())
			for _, part := range tc.says {
				expect.Contains(t, text, part, "CLI-10: no")
			}
			for _, part := range tc.silent {
				expect.False(t, strings.Contains(text, part), "CLI-10: %s in\n%s", part, text)
			}
		})
	}
}

// CLI-11 (no value of a Secret is shown): neither in fields, nor in texts, nor in the annotation of kubectl that repeats them.
func TestSecretsAreMasked(t *testing.T) {
	facts := webFacts(t)
	secret := func(value string) string {
		return fmt.Sprintf("apiVersion: v1\nkind: Secret\ntype: Opaque\nmetadata: {name: web, namespace: default, annotations: {%s: '%s'}}\nstringData: {password: '%s'}\n", corev1.LastAppliedConfigAnnotation, value, value)
	}
	live := parsed(t, strings.Replace(webLive, "data: {colour: red, size: big}", "type: Opaque\ndata: {password: aHVzaA==, more: aHVzaA==}", 1))
	live.SetKind("Secret")
	live.SetAnnotations(map[string]string{corev1.LastAppliedConfigAnnotation: "hush"})
	facts.Live, facts.Kind = live, live.GroupVersionKind()
	facts.ManagedResource.Status.Resources[0].Kind = "Secret"
	facts.Secrets["web"].Data["all.yaml"] = []byte(secret("shrill"))
	report, err := Explain(t.Context(), facts)
	must.True(t, err == nil && report.State == Differs, "%v, %+v", err, report)
	content, _ := json.Marshal(report)
	for _, value := range []string{"hush", "shrill", "aHVzaA", "c2hyaWxs"} {
		expect.False(t, strings.Contains(string(content), value), "CLI-11: %s in %s", value, content)
	}
	var paths []string
	for _, d := range report.Differences {
		paths = append(paths, d.Path+" "+d.Live+" "+d.Wanted)
	}
	want := []string{"data.more *** ", "data.password *** ***", "metadata.annotations." + corev1.LastAppliedConfigAnnotation + " *** ***"}
	for _, path := range want {
		expect.Contains(t, strings.Join(paths, "\n"), path, "CLI-11: no %q in %v", path, paths)
	}
}

// CLI-10: of several ManagedResources the origin names the owner; without it those that repair the object come first, then the first by name.
func TestFindOwner(t *testing.T) {
	having := func(name string, change func(*resourcesv1alpha1.ManagedResource)) *resourcesv1alpha1.ManagedResource {
		mr := webFacts(t).ManagedResource.DeepCopy()
		mr.Name = name
		if change != nil {
			change(mr)
		}
		return mr
	}
	once := func(mr *resourcesv1alpha1.ManagedResource) {
		mr.Status.Resources[0].Annotations = map[string]string{resourcesv1alpha1.AnnotationIgnore: "true"}
	}
	without := func(mr *resourcesv1alpha1.ManagedResource) { mr.Status.Resources = nil }
	controlled := func(live *unstructured.Unstructured) {
		yes := true
		live.SetOwnerReferences([]metav1.OwnerReference{{Kind: "Deployment", Name: "web", Controller: &yes}})
	}
	nameless := func(live *unstructured.Unstructured) { live.SetAnnotations(nil) }
	for name, tc := range map[string]struct {
		live func(*unstructured.Unstructured)
		read []*resourcesv1alpha1.ManagedResource
		want string
	}{
		"CLI-10/the origin before the inventory": {nil, []*resourcesv1alpha1.ManagedResource{having("a", nil), having("web", nil)}, "web origin annotation"},
		"CLI-10/an origin that is not there":     {nil, []*resourcesv1alpha1.ManagedResource{having("b", nil), having("a", nil)}, "a inventory"},
		"CLI-10/no origin":                       {nameless, []*resourcesv1alpha1.ManagedResource{having("a", once), having("b", nil)}, "b inventory"},
		"CLI-10/not on record yet":               {nil, []*resourcesv1alpha1.ManagedResource{having("web", without)}, "web origin annotation; its inventory does not have the object yet"},
		"CLI-10/a copied annotation":             {controlled, []*resourcesv1alpha1.ManagedResource{having("web", without)}, "nobody"},
		"CLI-10/nobody":                          {nameless, []*resourcesv1alpha1.ManagedResource{having("web", without)}, "nobody"},
		"CLI-10/not there, but in an inventory":  {func(live *unstructured.Unstructured) { live.Object = nil }, []*resourcesv1alpha1.ManagedResource{having("a", nil)}, "a inventory"},
	} {
		t.Run(name, func(t *testing.T) {
			facts := webFacts(t)
			if tc.live != nil {
				tc.live(facts.Live)
			}
			if facts.Live.Object == nil {
				facts.Live = nil
			}
			got := "nobody"
			if owner, proof := FindOwner(facts.Key(), false, facts.Live, tc.read); owner != nil {
				got = owner.Name + " " + string(proof)
			}
			expect.DeepEqual(t, got, tc.want, "CLI-10")
		})
	}
}
