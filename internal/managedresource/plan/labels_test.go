package plan

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/test/expect"
)

func at(object *unstructured.Unstructured, path string) string {
	fields := []string{""}
	for _, r := range path {
		if r == '.' {
			fields = append(fields, "")
			continue
		}
		fields[len(fields)-1] += string(r)
	}
	value, _, _ := unstructured.NestedFieldNoCopy(object.Object, fields...)
	return fmt.Sprint(value)
}

func TestStringData(t *testing.T) {
	p := plan(t, "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {a: YQ==, b: YQ==, c: YQ==}\nstringData: {b: b, c: null}\n", nil)
	expect.DeepEqual(t, p.Apply[0].Object["data"], map[string]any{"a": "YQ==", "b": "Yg==", "c": ""}, "MRB-8 stringData")
}

func TestInjectLabels_SkipsOtherTypes(t *testing.T) {
	for name, text := range map[string]string{
		"text": "spec: {template: text}", "null": "spec: {template: null, volumeClaimTemplates: null}", "list": "spec: {template: [], volumeClaimTemplates: [1, x]}", "no mapping": "spec: 7",
	} {
		t.Run("MRB-13/MRL-4 "+name, func(t *testing.T) {
			p := plan(t, "apiVersion: x/v1\nkind: X\nmetadata: {name: x}\n"+text+"\n", nil)
			expect.Equal(t, p.Apply[0].GetLabels()[resourcesv1alpha1.LabelManagedBy], "gardener", "managed-by")
		})
	}
	p := plan(t, "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: x}\nspec: {jobTemplate: {spec: {template: {metadata: {}}}}}\n", nil)
	expect.Equal(t, at(p.Apply[0].Unstructured, "spec.jobTemplate"), "map[spec:map[template:map[metadata:map[]]]]", "MRL-3")
}

// MRL-2, MRB-13: labels are put on the object, its Pod template and each of its volume claim templates. Values that are no mapping stay as they are.
func TestInjectLabels_ReachesTemplates(t *testing.T) {
	label := func(o *Options) { o.Spec.InjectLabels = map[string]string{"i": "x"} }
	for name, tc := range map[string]struct{ spec, path, want string }{
		"MRL-2/the template":                {"{template: {metadata: {labels: {a: b}}}}", "spec.template.metadata.labels", "map[a:b i:x resources.gardener.cloud/managed-by:gardener]"},
		"MRL-2/a template without metadata": {"{template: {}}", "spec.template.metadata.labels", "map[i:x resources.gardener.cloud/managed-by:gardener]"},
		"MRL-2/claims": {"{volumeClaimTemplates: [{metadata: {name: v}}, {metadata: {name: w}}]}", "spec.volumeClaimTemplates",
			"[map[metadata:map[labels:map[i:x resources.gardener.cloud/managed-by:gardener] name:v]] map[metadata:map[labels:map[i:x resources.gardener.cloud/managed-by:gardener] name:w]]]"},
		"MRL-2/a template whose labels are null": {"{template: {metadata: {labels: null}}}", "spec.template.metadata.labels", "map[i:x resources.gardener.cloud/managed-by:gardener]"},
		"MRB-13/a template that is a text":       {"{template: x}", "spec.template", "x"},
		"MRB-13/claims that are a text":          {"{volumeClaimTemplates: x}", "spec.volumeClaimTemplates", "x"},
		"MRB-13/a claim that is a text":          {"{volumeClaimTemplates: [x]}", "spec.volumeClaimTemplates", "[x]"},
		"MRB-13/a specification that is a text":  {"x", "spec", "x"},
	} {
		t.Run(name, func(t *testing.T) {
			p := plan(t, object("apps/v1", "StatefulSet", "s", "spec: "+tc.spec), nil, label)
			expect.Equal(t, at(p.Apply[0].Unstructured, tc.path), tc.want)
		})
	}
}

// MRB-8: stringData is folded into the data of Secrets, and of no other kind.
func TestStringData_StaysInOtherKinds(t *testing.T) {
	for name, tc := range map[string]struct{ apiVersion, kind, want string }{
		"MRB-8/a Secret": {"v1", "Secret", "<nil>"}, "MRB-8/another kind": {"v1", "ConfigMap", "map[a:b]"}, "MRB-8/another group": {"x/v1", "Secret", "map[a:b]"},
	} {
		p := plan(t, object(tc.apiVersion, tc.kind, "s", "stringData: {a: b}"), nil)
		expect.Equal(t, at(p.Apply[0].Unstructured, "stringData"), tc.want, "%s: got stringData", name)
	}
}

// MRB-8: a value of null in the data of a ConfigMap is stored as "" by the API server, so that desired and live compare.
func TestPlan_NullInDataIsEmpty(t *testing.T) {
	if got := plan(t, object("v1", "ConfigMap", "c", "data: {a: null}"), nil).Apply[0].Object["data"]; !cmp.Equal(got, map[string]any{"a": ""}) {
		t.Errorf("MRB-8: got %#v", got)
	}
}

// MRF-10: annotations of a hold in a manifest are not written and not on record, and the plan warns of them.
func TestPlan_IgnoresHoldsInManifests(t *testing.T) {
	const manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, annotations: {a: b, " + resourcesv1alpha1.AnnotationLeaveAloneUntil + ": '2026-01-01T00:00:00Z'}}\n"
	p := plan(t, manifest, nil)
	want := map[string]string{"a": "b"}
	expect.DeepEqual(t, p.Apply[0].GetAnnotations(), want, "MRF-10: the object")
	expect.DeepEqual(t, p.Inventory[0].Annotations, want, "MRF-10: the record")
	expect.True(t, len(p.Warnings) == 1 && strings.Contains(p.Warnings[0], resourcesv1alpha1.AnnotationLeaveAloneUntil),
		"MRF-10: warnings: %v", p.Warnings)
}
