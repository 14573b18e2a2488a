package merge

import (
	"strings"
	"testing"

	"github.com/espalier-project/espalier/test/expect"
)

// MRL-13: the owners of an object are those of its manifest, and none if it names none. Its managed fields are the API server's.
func TestMerge_TakesOwnersOfTheManifest(t *testing.T) {
	const live = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, ownerReferences: [theirs], managedFields: [{manager: m}]}\n"
	for desired, want := range map[string]string{"{name: c, ownerReferences: [ours]}": "[ours]", "{name: c}": "<nil>", "{name: c, ownerReferences: null}": "<nil>"} {
		merged := Merge(desiredFrom(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: "+desired+"\n"), fromYAML(t, live), Options{})
		expect.Equal(t, at(merged, "metadata.ownerReferences"), want, "MRL-13: %s", desired)
		expect.Equal(t, at(merged, "metadata.managedFields"), "<nil>", "MRL-13: %s: managed fields are sent", desired)
	}
}

// MRM-15: an empty list of taints is left to the manifest, and one taint of a Node's state is enough to be kept.
func TestMerge_KeepsTaintsOfNodes(t *testing.T) {
	for live, want := range map[string]string{
		"[{key: node.kubernetes.io/not-ready, effect: NoSchedule}]": "[map[effect:NoSchedule key:node.kubernetes.io/not-ready]]",
		"[{key: theirs, effect: NoSchedule}]":                       "<nil>",
		"[]":                                                        "<nil>",
	} {
		merged := Merge(desiredFrom(t, "apiVersion: v1\nkind: Node\nmetadata: {name: n}\n"), fromYAML(t, "apiVersion: v1\nkind: Node\nmetadata: {name: n}\nspec: {taints: "+live+"}\n"), Options{})
		expect.Equal(t, at(merged, "spec.taints"), want, "MRM-15: %s", live)
	}
}

// MR-27: a controller of autoscaling/v1 writes its conditions into annotations of HorizontalPodAutoscalers, and of no other kind.
func TestMerge_KeepsAnnotationsWithStatus(t *testing.T) {
	for name, tc := range map[string]struct {
		apiVersion, kind string
		want             bool
	}{
		"MR-27/an autoscaler":          {"autoscaling/v1", "HorizontalPodAutoscaler", true},
		"MR-27/another of its group":   {"autoscaling/v1", "Scale", false},
		"MR-27/another group":          {"x/v1", "HorizontalPodAutoscaler", false},
		"MR-27/another one of neither": {"v1", "ConfigMap", false},
	} {
		expect.Equal(t, len(StatusAnnotations(fromYAML(t, object(tc.apiVersion, tc.kind, "a", "")).GroupVersionKind().GroupKind())) > 0, tc.want, "%s", name)
	}
}

// MRM-15: annotations of controllers stay, also where the annotations of the manifest are to be all there are.
func TestMerge_KeepsAnnotationsOfControllers(t *testing.T) {
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
			merged := Merge(desiredFrom(t, object(tc.apiVersion, tc.kind, "a", tc.more)), live, Options{ForceOverwriteAnnotations: true}).GetAnnotations()
			_, theirs := merged["theirs"]
			expect.True(t, merged[tc.annotation] == "x" && !theirs, "got annotations %v", merged)
		})
	}
}

// A Pod whose tolerations and deadline were not set may get both, and a deadline that stays is no change.
func TestCheckUpdate_AcceptsAdditionsToPods(t *testing.T) {
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
		expect.Equal(t, (err != nil), tc.refused, "%s: got %v", name, err)
	}
}
