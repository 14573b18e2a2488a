package apply

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// MRL-2, MRB-13: labels are put on the object, its Pod template and each of its volume claim templates. What is no mapping stays as it is.
func TestLabelsAreInjectedEverywhere(t *testing.T) {
	label := func(o *Options) { o.Spec.InjectLabels = map[string]string{"i": "x"} }
	for name, tc := range map[string]struct{ spec, path, want string }{
		"MRL-2/the template":                {"{template: {metadata: {labels: {a: b}}}}", "spec.template.metadata.labels", "map[a:b i:x resources.gardener.cloud/managed-by:gardener]"},
		"MRL-2/a template without metadata": {"{template: {}}", "spec.template.metadata.labels", "map[i:x resources.gardener.cloud/managed-by:gardener]"},
		"MRL-2/claims": {"{volumeClaimTemplates: [{metadata: {name: v}}, {metadata: {name: w}}]}", "spec.volumeClaimTemplates",
			"[map[metadata:map[labels:map[i:x resources.gardener.cloud/managed-by:gardener] name:v]] map[metadata:map[labels:map[i:x resources.gardener.cloud/managed-by:gardener] name:w]]]"},
		"MRB-13/a template that is a text":      {"{template: x}", "spec.template", "x"},
		"MRB-13/claims that are a text":         {"{volumeClaimTemplates: x}", "spec.volumeClaimTemplates", "x"},
		"MRB-13/a claim that is a text":         {"{volumeClaimTemplates: [x]}", "spec.volumeClaimTemplates", "[x]"},
		"MRB-13/a specification that is a text": {"x", "spec", "x"},
	} {
		t.Run(name, func(t *testing.T) {
			p := plan(t, object("apps/v1", "StatefulSet", "s", "spec: "+tc.spec), nil, label)
			if got := at(p.Apply[0].Unstructured, tc.path); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// MRL-13: the owners of an object are those of its manifest, and none if it names none. Its managed fields are the API server's.
func TestOwnersOfTheManifest(t *testing.T) {
	const live = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, ownerReferences: [theirs], managedFields: [{manager: m}]}\n"
	for desired, want := range map[string]string{"{name: c, ownerReferences: [ours]}": "[ours]", "{name: c}": "<nil>", "{name: c, ownerReferences: null}": "<nil>"} {
		merged := Merge(desiredFrom(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: "+desired+"\n"), fromYAML(t, live), MergeOptions{})
		if got := at(merged, "metadata.ownerReferences"); got != want {
			t.Errorf("MRL-13: %s: got %s, want %s", desired, got, want)
		}
		if got := at(merged, "metadata.managedFields"); got != "<nil>" {
			t.Errorf("MRL-13: %s: managed fields are sent: %s", desired, got)
		}
	}
}

// MRB-8: stringData is folded into the data of Secrets, and of no other kind.
func TestStringDataOfOtherKinds(t *testing.T) {
	for name, tc := range map[string]struct{ apiVersion, kind, want string }{
		"MRB-8/a Secret": {"v1", "Secret", "<nil>"}, "MRB-8/another kind": {"v1", "ConfigMap", "map[a:b]"}, "MRB-8/another group": {"x/v1", "Secret", "map[a:b]"},
	} {
		p := plan(t, object(tc.apiVersion, tc.kind, "s", "stringData: {a: b}"), nil)
		if got := at(p.Apply[0].Unstructured, "stringData"); got != tc.want {
			t.Errorf("%s: got stringData %s, want %s", name, got, tc.want)
		}
	}
}

// A cluster-scoped object is the same whatever namespace an entry names, and a namespaced one is not.
func TestSameKey(t *testing.T) {
	a, b := Key{Kind: "X", Namespace: "n", Name: "x"}, Key{Kind: "X", Namespace: "m", Name: "x"}
	if !a.Same(a, false) || a.Same(b, false) || !a.Same(b, true) || !a.Same(a, true) || a.Same(Key{Kind: "X", Namespace: "n", Name: "y"}, true) {
		t.Error("objects that are the same are not, or the other way round")
	}
	if diff := cmp.Diff(Key{Kind: "X", Name: "x"}, a.WithoutNamespace()); diff != "" || a.Namespace != "n" {
		t.Error(diff)
	}
}

// MRM-15: an empty list of taints is left to the manifest, and one taint of a Node's state is enough to be kept.
func TestTaintsOfNodes(t *testing.T) {
	for live, want := range map[string]string{
		"[{key: node.kubernetes.io/not-ready, effect: NoSchedule}]": "[map[effect:NoSchedule key:node.kubernetes.io/not-ready]]",
		"[{key: theirs, effect: NoSchedule}]":                       "<nil>",
		"[]":                                                        "<nil>",
	} {
		merged := Merge(desiredFrom(t, "apiVersion: v1\nkind: Node\nmetadata: {name: n}\n"), fromYAML(t, "apiVersion: v1\nkind: Node\nmetadata: {name: n}\nspec: {taints: "+live+"}\n"), MergeOptions{})
		if got := at(merged, "spec.taints"); got != want {
			t.Errorf("MRM-15: %s: got %s, want %s", live, got, want)
		}
	}
}

// MR-27: a controller of autoscaling/v1 writes its conditions into annotations of HorizontalPodAutoscalers, and of no other kind.
func TestAnnotationsThatAreStatus(t *testing.T) {
	for name, tc := range map[string]struct {
		apiVersion, kind string
		want             bool
	}{
		"MR-27/an autoscaler":          {"autoscaling/v1", "HorizontalPodAutoscaler", true},
		"MR-27/another of its group":   {"autoscaling/v1", "Scale", false},
		"MR-27/another group":          {"x/v1", "HorizontalPodAutoscaler", false},
		"MR-27/another one of neither": {"v1", "ConfigMap", false},
	} {
		if got := len(StatusAnnotations(fromYAML(t, object(tc.apiVersion, tc.kind, "a", "")).GroupVersionKind().GroupKind())) > 0; got != tc.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

// MRM-15: what controllers write into annotations stays, also where the annotations of the manifest are to be all there are.
func TestControllersAnnotationsStayWhenForced(t *testing.T) {
	for name, tc := range map[string]struct{ apiVersion, kind, more, annotation string }{
		"MRM-15/a volume":                  {"v1", "PersistentVolume", "", "pv.kubernetes.io/provisioned-by"},
		"MRM-15/a claim, bound":            {"v1", "PersistentVolumeClaim", "", "pv.kubernetes.io/bind-completed"},
		"MRM-15/a volume, annotated":       {"v1", "PersistentVolume", "", "volume.kubernetes.io/x"},
		"MRM-15/a claim, provisioned":      {"v1", "PersistentVolumeClaim", "", "volume.beta.kubernetes.io/storage-provisioner"},
		"MRM-15/the account of a token":    {"v1", "Secret", "type: kubernetes.io/service-account-token", "kubernetes.io/service-account.uid"},
		"MR-27/the metrics of autoscaling": {"autoscaling/v1", "HorizontalPodAutoscaler", "", "autoscaling.alpha.kubernetes.io/conditions"},
	} {
		t.Run(name, func(t *testing.T) {
			live := fromYAML(t, object(tc.apiVersion, tc.kind, "a", tc.more))
			live.SetAnnotations(map[string]string{tc.annotation: "x", "theirs": "x"})
			merged := Merge(desiredFrom(t, object(tc.apiVersion, tc.kind, "a", tc.more)), live, MergeOptions{ForceOverwriteAnnotations: true}).GetAnnotations()
			if _, theirs := merged["theirs"]; merged[tc.annotation] != "x" || theirs {
				t.Errorf("got annotations %v", merged)
			}
		})
	}
}

// A Pod whose tolerations and deadline were not set may get both, and a deadline that stays is no change.
func TestAdditionsToPods(t *testing.T) {
	const live = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: %s\n"
	for name, tc := range map[string]struct {
		live, desired string
		refused       bool
	}{
		"the first toleration": {"{containers: []}", "{containers: [], tolerations: [{key: a, operator: Exists}]}", false},
		"the first deadline":   {"{containers: []}", "{containers: [], activeDeadlineSeconds: 5}", false},
		"the same deadline":    {"{activeDeadlineSeconds: 5}", "{activeDeadlineSeconds: 5}", false},
		"a longer deadline":    {"{activeDeadlineSeconds: 5}", "{activeDeadlineSeconds: 6}", true},
		"another node":         {"{nodeName: a}", "{nodeName: b}", true},
	} {
		err := CheckUpdate(fromYAML(t, strings.Replace(live, "%s", tc.live, 1)), fromYAML(t, strings.Replace(live, "%s", tc.desired, 1)))
		if (err != nil) != tc.refused {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
