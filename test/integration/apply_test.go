package integration

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/test/expect"
)

// BH-MR-16, MRS-13, MRA-7, MRC-6: a JSON ConfigMap ends in the target with everything that marks it.
func TestJSONConfigMap(t *testing.T) {
	f := newFixture(t)
	f.managed("mr", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"cm","namespace":"$NS"},"data":{"a":"b"}}`)
	mr := f.rule("BH-MR-10: no namespace is configured, and this one is new").settled("mr")
	cm := f.rule("BH-MR-1/BH-MR-2: the manifest of a Secret is an object of the target").get("v1", "ConfigMap", "cm")
	expect.Equal(t, nested(cm, "data"), "map[a:b]", "MRD-1: data")
	expect.Equal(t, cm.GetAnnotations()[resourcesv1alpha1.AnnotationOrigin], "seed-1:"+f.ns+"/mr", "BH-MR-30/BH-MR-31: the origin")
	expect.Equal(t, cm.GetAnnotations()[resourcesv1alpha1.AnnotationDescription], resourcesv1alpha1.DescriptionValue, "MRL-12 description")
	expect.Equal(t, cm.GetLabels()[resourcesv1alpha1.LabelManagedBy], "gardener", "BH-MR-35 managed-by: got %v", cm.GetLabels())
	// BH-MR-30 and MRL-12 are about annotations that the entry has not: its annotations are those that the manifest wants.
	expect.DeepEqual(t, mr.Status.Resources, []resourcesv1alpha1.ObjectReference{{
		ObjectReference: corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: f.ns, Name: "cm"},
		Labels:          map[string]string{resourcesv1alpha1.LabelManagedBy: "gardener"},
	}}, "MRA-6c/MRA-8 inventory")
	order, texts := "", map[resourcesv1alpha1.ConditionType]string{}
	for _, c := range mr.Status.Conditions {
		order += string(c.Type) + " "
		texts[c.Type] = fmt.Sprintf("%s/%s/%q", c.Status, c.Reason, c.Message)
	}
	expect.Equal(t, order, "ResourcesHealthy ResourcesProgressing ResourcesApplied Ready Reconciling Stalled ", "MRA-6a/BH-MR-15: the order of conditions")
	expect.Equal(t, texts[resourcesv1alpha1.ResourcesHealthy], `True/ResourcesHealthy/"All resources are healthy."`, "BH-MR-21/MRH-10: ResourcesHealthy")
	expect.Equal(t, texts[resourcesv1alpha1.ResourcesProgressing], `False/ResourcesRolledOut/"All resources have been fully rolled out."`, "BH-MR-21/MRP-6: ResourcesProgressing")
	expect.Equal(t, texts[resourcesv1alpha1.ResourcesApplied], `True/ApplySucceeded/"All resources are applied."`, "BH-MR-21/MRS-9: ResourcesApplied")
}

// BH-MR-3, MRT-6, MRB-34, ASK-1, design 1: what somebody else changes or deletes is put right at once, though the sync period is an hour.
func TestDriftIsPutRightAtOnce(t *testing.T) {
	f := newFixture(t)
	f.managed("mr", configMap("cm", "data: {a: b}\n"))
	f.settled("mr")
	cm := f.get("v1", "ConfigMap", "cm")
	f.patch(cm, map[string]any{"data": map[string]any{"a": "changed", "more": "x"}})
	f.eventually(func() error {
		data := f.get("v1", "ConfigMap", "cm").Object["data"]
		return expect.Holds(fmt.Sprint(data) == "map[a:b]", "BH-MR-3/MRT-6: a change is not undone: data is %v", data)
	})
	f.must(f.shoot.Delete(f.ctx, f.get("v1", "ConfigMap", "cm")))
	expect.True(t, f.exists("v1", "ConfigMap", "cm").GetUID() != cm.GetUID(), "MRT-6: want a new object")
}

// MRM-15: the class that admission fills in when an Ingress is created, and never again, stays when the Ingress is written.
func TestIngressKeepsItsDefaultClass(t *testing.T) {
	f := newFixture(t)
	class := &networkingv1.IngressClass{
		ObjectMeta: metav1.ObjectMeta{Name: "class-" + f.ns, Annotations: map[string]string{networkingv1.AnnotationIsDefaultIngressClass: "true"}},
		Spec:       networkingv1.IngressClassSpec{Controller: "example.org/c"},
	}
	f.must(f.shoot.Create(f.ctx, class))
	t.Cleanup(func() { _ = f.shoot.Delete(f.ctx, class) })
	service := func(name string) networkingv1.IngressSpec {
		return networkingv1.IngressSpec{DefaultBackend: &networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: name, Port: networkingv1.ServiceBackendPort{Number: 80}}}}
	}
	f.eventually(func() error { // The admission plugin learns of the class some moments later.
		probe := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: f.ns, Name: "probe"}, Spec: service("a")}
		if err := f.shoot.Create(f.ctx, probe, client.DryRunAll); err != nil || probe.Spec.IngressClassName == nil {
			return fmt.Errorf("an Ingress would be created without a class: %v", err)
		}
		return nil
	})
	f.managed("mr", "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: i, namespace: $NS}\nspec: {defaultBackend: {service: {name: a, port: {number: 80}}}}\n")
	f.settled("mr")
	f.patch(f.get("networking.k8s.io/v1", "Ingress", "i"), map[string]any{"spec": map[string]any{"defaultBackend": map[string]any{"service": map[string]any{"name": "theirs"}}}})
	f.eventually(func() error {
		if backend := nested(f.get("networking.k8s.io/v1", "Ingress", "i"), "spec", "defaultBackend", "service", "name"); backend != "a" {
			return fmt.Errorf("the backend is %s", backend)
		}
		return nil
	})
	expect.Equal(t, nested(f.get("networking.k8s.io/v1", "Ingress", "i"), "spec", "ingressClassName"), class.Name, "the class of the Ingress")
}

// MRB-8, promise of ResourcesApplied: a field that a custom resource got before its definition has it is there soon after the definition has
// it, though both are in Secrets of their own. The API server takes the write of the former, and drops the field.
func TestFieldThatItsDefinitionGetsLater(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	group := f.ns + ".fields.example.org"
	definition := func(fields string) string {
		return "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: things." + group + "}\nspec: {group: " + group + ", scope: Namespaced, names: {plural: things, kind: Thing}, " +
			"versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {" + fields + "}}}}}}]}\n"
	}
	thing := func(spec string) string {
		return "apiVersion: " + group + "/v1\nkind: Thing\nmetadata: {name: t, namespace: $NS}\nspec: {" + spec + "}\n"
	}
	is := func(want string) {
		t.Helper()
		f.eventually(func() error {
			if spec := nested(f.get(group+"/v1", "Thing", "t"), "spec"); spec != want {
				return fmt.Errorf("the object is %s, want %s", spec, want)
			}
			return nil
		})
	}
	f.managed("definition", definition("a: {type: integer}"))
	f.settled("definition")
	f.managed("object", thing("a: 1"))
	f.settled("object")
	f.secret("object", map[string]string{"data.yaml": thing("a: 2, b: 2")})
	is("map[a:2]")
	f.settled("object")
	f.secret("definition", map[string]string{"data.yaml": definition("a: {type: integer}, b: {type: integer}")})
	is("map[a:2 b:2]")
}
