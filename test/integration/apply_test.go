package integration

import (
	"fmt"
	"testing"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
)

// BH-MR-1, BH-MR-2, BH-MR-10, BH-MR-15, BH-MR-16, BH-MR-21, BH-MR-30, BH-MR-31, MRS-9, MRS-13, MRA-7, MRA-8, MRC-6, MRV-150, MRV-10: a JSON ConfigMap ends in the target with everything that marks it.
func TestJSONConfigMap(t *testing.T) {
	f := newFixture(t)
	f.managed("mr", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"cm","namespace":"$NS"},"data":{"a":"b"}}`)
	mr := f.settled("mr")
	cm := f.get("v1", "ConfigMap", "cm")
	if got, want := cm.GetAnnotations()[resourcesv1alpha1.AnnotationOrigin], "seed-1:"+f.ns+"/mr"; got != want {
		t.Errorf("MRV-130 origin: got %q, want %q", got, want)
	}
	if cm.GetAnnotations()[resourcesv1alpha1.AnnotationDescription] != resourcesv1alpha1.DescriptionValue {
		t.Errorf("MRL-12 description: got %q", cm.GetAnnotations()[resourcesv1alpha1.AnnotationDescription])
	}
	if cm.GetLabels()[resourcesv1alpha1.LabelManagedBy] != "gardener" {
		t.Errorf("BH-MR-35 managed-by: got %v", cm.GetLabels())
	}
	if len(mr.Status.Resources) != 1 || mr.Status.Resources[0].Name != "cm" {
		t.Errorf("MRA-6c inventory: got %v", mr.Status.Resources)
	}
	order := ""
	for _, c := range mr.Status.Conditions {
		order += string(c.Type) + " "
	}
	if order != "ResourcesHealthy ResourcesProgressing ResourcesApplied " {
		t.Errorf("MRS-3 order of conditions: got %s", order)
	}
}

// BH-MR-3, MRT-6, MRB-34, ASK-1, MRV-25, design 1: what somebody else changes or deletes is put right at once, though the sync period is an hour.
func TestDriftIsPutRightAtOnce(t *testing.T) {
	f := newFixture(t)
	f.managed("mr", configMap("cm", "data: {a: b}\n"))
	f.settled("mr")
	cm := f.get("v1", "ConfigMap", "cm")
	f.patch(cm, map[string]any{"data": map[string]any{"a": "changed", "more": "x"}})
	f.eventually(func() error {
		data := f.get("v1", "ConfigMap", "cm").Object["data"]
		if fmt.Sprint(data) != "map[a:b]" {
			return fmt.Errorf("data is %v", data)
		}
		return nil
	})
	f.must(f.shoot.Delete(f.ctx, f.get("v1", "ConfigMap", "cm")))
	if recreated := f.exists("v1", "ConfigMap", "cm"); recreated.GetUID() == cm.GetUID() {
		t.Error("MRV-27: want a new object")
	}
}
