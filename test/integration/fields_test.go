package integration

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/retry"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
)

// edit changes an object of the target as somebody would who reads it, changes it and writes it back.
func (f *fixture) edit(apiVersion, kind, name string, change func(*unstructured.Unstructured)) {
	f.Helper()
	f.must(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		object := f.get(apiVersion, kind, name)
		change(object)
		return f.shoot.Update(f.ctx, object)
	}))
}

func container(d *unstructured.Unstructured) map[string]any {
	containers, _, _ := unstructured.NestedFieldNoCopy(d.Object, "spec", "template", "spec", "containers")
	return containers.([]any)[0].(map[string]any)
}

// MRF-1, MRF-3: what stays of an edit against a real API server, with its defaults; and what a pointer that must not be does.
func TestIgnoredFields(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ignoring := func(pointers string) string {
		return deployment("d", "  annotations: {resources.gardener.cloud/ignore-fields: '"+pointers+"'}\n")
	}
	f.managed("mr", ignoring("/spec/replicas, /spec/template/spec/containers/[name=main]/image /metadata/annotations/example.org~1x"))
	f.settled("mr")
	d := f.get("apps/v1", "Deployment", "d")
	if got := fmt.Sprintf("%s %v", nested(d, "spec", "replicas"), container(d)["image"]); got != "0 registry.example.org/main:1" {
		t.Fatalf("MRF-1: created with %s", got)
	}
	f.edit("apps/v1", "Deployment", "d", func(d *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(d.Object, int64(2), "spec", "replicas")
		_ = unstructured.SetNestedField(d.Object, "theirs", "metadata", "annotations", "example.org/x")
		_ = unstructured.SetNestedField(d.Object, true, "spec", "paused")
		container(d)["image"], container(d)["tty"] = "registry.example.org/main:fixed", true
	})
	f.eventually(func() error {
		d := f.get("apps/v1", "Deployment", "d")
		if nested(d, "spec", "paused") != "<nil>" || container(d)["tty"] != nil {
			return fmt.Errorf("MRF-1: other drift stays: %v", d.Object["spec"])
		}
		if got := fmt.Sprintf("%s %v %s", nested(d, "spec", "replicas"), container(d)["image"], d.GetAnnotations()["example.org/x"]); got != "2 registry.example.org/main:fixed theirs" {
			t.Fatalf("MRF-1: the fields are %s", got)
		}
		return nil
	})
	f.secret("mr", map[string]string{"data.yaml": ignoring("/metadata/ownerReferences") + configMap("other")})
	f.applied("mr", "False/ApplyFailed", `apps/v1/Deployment/`, resourcesv1alpha1.AnnotationIgnoreFields, `pointer "/metadata/ownerReferences" must name one label or one annotation`)
	f.exists("v1", "ConfigMap", "other")
	if got := nested(f.get("apps/v1", "Deployment", "d"), "spec", "replicas"); got != "2" {
		t.Errorf("MRF-3: an object with a pointer that cannot be followed was written: replicas %s", got)
	}
	f.secret("mr", map[string]string{"data.yaml": deployment("d", "")})
	f.eventually(func() error {
		if d := f.get("apps/v1", "Deployment", "d"); nested(d, "spec", "replicas") != "0" || !strings.HasSuffix(fmt.Sprint(container(d)["image"]), ":1") {
			return fmt.Errorf("MRF-1: without the annotation the fields stay: %v", d.Object["spec"])
		}
		return nil
	})
}
