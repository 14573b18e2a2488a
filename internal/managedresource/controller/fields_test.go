package controller

import (
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
)

const ignoresV = "annotations: {resources.gardener.cloud/ignore-fields: /data/v}, labels: {l: ours}"

func setLabel(value string) func(*unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) {
		labels := o.GetLabels()
		labels["l"] = value
		o.SetLabels(labels)
	}
}

// MRF-1: a field is written at creation, and left alone afterwards, whatever looks at the object; other drift is repaired.
func TestIgnoredFields(t *testing.T) {
	for name, tc := range map[string]struct {
		config func(*config.ManagedResourceControllerConfig)
		before func(*fixture)
		after  func(*fixture)
	}{
		"MRF-1/drift": {},
		"MRF-1/a run that is asked for": {after: func(f *fixture) {
			f.edit("m", func(mr *resourcesv1alpha1.ManagedResource) {
				mr.Annotations = map[string]string{resourcesv1alpha1.AnnotationOperation: resourcesv1alpha1.OperationReconcile}
			})
		}},
		"MRF-1/alwaysUpdate": {
			config: func(c *config.ManagedResourceControllerConfig) { always := true; c.AlwaysUpdate = &always },
			after: func(f *fixture) {
				f.edit("m", func(mr *resourcesv1alpha1.ManagedResource) {
					mr.Annotations = map[string]string{resourcesv1alpha1.AnnotationOperation: resourcesv1alpha1.OperationReconcile}
				})
			},
		},
		"MRF-1/the manifest changes": {after: func(f *fixture) { f.manifests("m", "3", configMap("a", "3", ignoresV)) }},
		"MRF-1/the annotation comes later": {before: func(f *fixture) {
			f.manifests("m", "1", configMap("a", "1", "labels: {l: ours}"))
			f.complete("m")
		}},
		"MRF-1/an object that is taken over": {before: func(f *fixture) { f.target.put("a", "1", map[string]any{"labels": map[string]any{}}) }},
	} {
		t.Run(name, func(t *testing.T) {
			change := tc.config
			if change == nil {
				change = func(*config.ManagedResourceControllerConfig) {}
			}
			f := newFixture(t, change)
			f.managed("m")
			if tc.before != nil {
				tc.before(f)
			}
			f.manifests("m", "2", configMap("a", "1", ignoresV))
			f.complete("m")
			if value, _ := f.target.value("a"); value != "1" {
				t.Fatalf("created with %s", value)
			}
			if tc.after != nil {
				tc.after(f)
			}
			f.edited("a", func(o *unstructured.Unstructured) { setValue("theirs")(o); setLabel("theirs")(o) })
			f.complete("m")
			if value, _ := f.target.value("a"); value != "theirs" || f.live("a").GetLabels()["l"] != "ours" {
				t.Errorf("the field is %s, the label %s", value, f.live("a").GetLabels()["l"])
			}
			writes := f.target.count(http.MethodPut)
			f.edited("a", setValue("again"))
			f.complete("m")
			if value, _ := f.target.value("a"); value != "again" || f.target.count(http.MethodPut) != writes {
				t.Errorf("the field is %s, after %d more writes", value, f.target.count(http.MethodPut)-writes)
			}
			if got := total(t, f.Metrics.ignoredFields); got != 1 {
				t.Errorf("the metric says %v", got)
			}
			f.target.remove("a")
			f.Tracker.MarkOutOfSync(configMapKey("a"))
			f.complete("m")
			if value, _ := f.target.value("a"); value == "again" {
				t.Error("an object that is created anew has not what the manifest says")
			}
		})
	}
}

// MRF-3: with a pointer that cannot be read the object stays as it is, and the others are applied.
func TestPointerThatCannotBeRead(t *testing.T) {
	f := newFixture(t)
	f.managed("m", "a=1", "b=1")
	f.complete("m")
	f.manifests("m", "2", configMap("a", "2", "annotations: {resources.gardener.cloud/ignore-fields: data/v}"), configMap("b", "2", ""))
	_, _ = f.run("m")
	a, _ := f.target.value("a")
	b, _ := f.target.value("b")
	want := `error during apply of object "v1/ConfigMap/n/a": annotation resources.gardener.cloud/ignore-fields: pointer "data/v" must begin with a slash`
	if got := f.condition("m"); a != "1" || b != "2" || !strings.Contains(got, want) || !strings.HasPrefix(got, "False/ApplyFailed") {
		t.Errorf("a=%s b=%s, and it says %s", a, b, got)
	}
	f.manifests("m", "3", configMap("a", "2", ignoresV), configMap("b", "2", ""))
	f.complete("m")
	if a, _ := f.target.value("a"); a != "1" || !strings.HasPrefix(f.condition("m"), "True") {
		t.Errorf("a=%s, and it says %s", a, f.condition("m"))
	}
}
