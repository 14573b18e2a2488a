package integration

import (
	"fmt"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/brake"
	"github.com/espalier-project/espalier/test/env/harness"
	"github.com/espalier-project/espalier/test/expect"
)

// refuseUpdates creates a policy that refuses updates of one Namespace whose label team is two.
func (f *fixture) refuseUpdates(namespace string) {
	f.Helper()
	name := "refuse-" + namespace
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				ResourceNames: []string{namespace},
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Update},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"namespaces"}},
				},
			}}},
			Validations: []admissionregistrationv1.Validation{{Expression: "!('team' in object.metadata.labels) || object.metadata.labels['team'] != 'two'", Message: "no team two"}},
		},
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}
	f.must(f.shoot.Create(f.ctx, policy))
	f.Cleanup(func() { _ = f.shoot.Delete(f.ctx, policy) })
	f.must(f.shoot.Create(f.ctx, binding))
	f.Cleanup(func() { _ = f.shoot.Delete(f.ctx, binding) })
	f.eventually(func() error { // The API server learns of the policy some moments later.
		patch := map[string]any{"metadata": map[string]any{"labels": map[string]any{"team": "two"}}}
		err := f.shoot.Patch(f.ctx, harness.Object("v1", "Namespace", "", namespace), harness.MergePatch(patch), client.DryRunAll)
		return expect.Holds(err != nil, "the policy does not refuse updates yet")
	})
}

func (f *fixture) data(namespace, name, want string) {
	f.Helper()
	object := harness.Object("v1", "ConfigMap", namespace, name)
	f.eventually(func() error {
		if err := f.shoot.Get(f.ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		if got := nested(object, "data", "a"); got != want {
			return fmt.Errorf("ConfigMap %s has %s, want %s", name, got, want)
		}
		return nil
	})
}

// TestNamespace_RefusedUpdate shows that objects in a Namespace are applied, and repaired, while updates of that Namespace are refused.
func TestNamespace_RefusedUpdate(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	inner := f.ns + "-inner"
	content := func(team, value string, more ...string) map[string]string {
		manifests := "apiVersion: v1\nkind: Namespace\nmetadata: {name: " + inner + ", labels: {team: " + team + "}}\n"
		for _, name := range append([]string{"in"}, more...) {
			manifests += "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", namespace: " + inner + "}\ndata: {a: " + value + "}\n"
		}
		return map[string]string{"data.yaml": manifests}
	}
	f.secret("mr", content("one", "one"))
	f.must(f.seed.Create(f.ctx, harness.ManagedResource(f.ns, "mr", "mr")))
	f.settled("mr")
	f.refuseUpdates(inner)
	f.secret("mr", content("two", "two", "new"))
	f.rule("MR-24: a changed object is applied").data(inner, "in", "two")
	f.rule("MR-24: a new object is created").data(inner, "new", "two")
	f.rule("MRB-4: the condition has the refusal of the Namespace alone").applied("mr", "False/ApplyFailed", `error during apply of object "v1/Namespace//`+inner, "no team two")
	if _, message := harness.Condition(f.mr("mr"), resourcesv1alpha1.ResourcesApplied); len(message) > 600 || strings.Contains(message, "not applied") {
		t.Errorf("MRB-4: objects of the Namespace count as skipped: %s", message)
	}
	object := harness.Object("v1", "ConfigMap", inner, "in")
	f.patch(object, map[string]any{"data": map[string]any{"a": "edited"}})
	f.rule("MR-24: drift is repaired").data(inner, "in", "two")
}

// TestNamespace_Missing shows that objects in a Namespace that cannot be created are named with the reason, and are not tried.
func TestNamespace_Missing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.managed("mr", "apiVersion: v1\nkind: Namespace\nmetadata: {name: $NS-inner, labels: {team: '-'}}\n"+
		"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: b, namespace: $NS-inner}\n"+
		"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: $NS-inner}\n"+configMap("outer"))
	f.rule("MRB-4: skipped objects are named").applied("mr", "False/ApplyFailed",
		`2 objects were not applied, because Namespace "$NS-inner" does not exist: v1/ConfigMap/$NS-inner/a, v1/ConfigMap/$NS-inner/b`)
	f.rule("MR-24: other objects are applied").exists("v1", "ConfigMap", "outer")
}

// TestCustomResourceDefinition_RefusedUpdate shows that custom resources are applied while an update of their definition is refused, and that they
// are named if the definition does not exist.
func TestCustomResourceDefinition_RefusedUpdate(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	group := f.ns + ".dependencies.example.org"
	version := func(name, storage string) string {
		return "{name: " + name + ", served: true, storage: " + storage + ", schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}"
	}
	content := func(versions, used, value string) map[string]string {
		return map[string]string{"data.yaml": "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: things." + group + "}\nspec: {group: " + group +
			", scope: Namespaced, names: {plural: things, kind: Thing}, versions: [" + versions + "]}\n" +
			"---\napiVersion: " + group + "/" + used + "\nkind: Thing\nmetadata: {name: t, namespace: $NS}\nspec: {a: " + value + "}\n" +
			configMap("cm", "data: {a: "+value+"}\n")}
	}
	f.secret("mr", content(version("v1", "false")+", "+version("v2", "true"), "v2", "one"))
	f.must(f.seed.Create(f.ctx, harness.ManagedResource(f.ns, "mr", "mr")))
	f.settled("mr")
	f.secret("mr", content(version("v1", "true"), "v1", "two")) // status.storedVersions still has v2.
	f.rule("MR-24: a ConfigMap is applied").data(f.ns, "cm", "two")
	f.eventually(func() error {
		if got := nested(f.get(group+"/v1", "Thing", "t"), "spec", "a"); got != "two" {
			return fmt.Errorf("MR-24: the custom resource has %s, want two", got)
		}
		return nil
	})
	f.applied("mr", "False/ApplyFailed", "status.storedVersions")

	absent := "absent." + group
	f.managed("absent", "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: things."+absent+"}\nspec: {group: "+absent+
		", scope: Namespaced, names: {plural: wrong, kind: Thing}, versions: ["+version("v1", "true")+"]}\n"+
		"---\napiVersion: "+absent+"/v1\nkind: Thing\nmetadata: {name: t, namespace: $NS}\n")
	f.rule("MRB-4: a custom resource without its definition is named").applied("absent", "False/ApplyFailed",
		`1 object was not applied, because CustomResourceDefinition "things.`+absent+`" does not exist: `+absent+"/v1/Thing/$NS/t")
}

// TestReplacement_Precious shows that a CustomResourceDefinition, whose deletion deletes the objects of its users, is replaced only once that is confirmed.
func TestReplacement_Precious(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	group := f.ns + ".replacement.example.org"
	definition := func(version string) map[string]string {
		return map[string]string{"data.yaml": "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: things." + group +
			", annotations: {resources.gardener.cloud/delete-on-invalid-update: 'true'}}\nspec: {group: " + group + ", scope: Namespaced, names: {plural: things, kind: Thing}, versions: [{name: " + version +
			", served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}\n"}
	}
	f.secret("mr", definition("v1"))
	f.must(f.seed.Create(f.ctx, harness.ManagedResource(f.ns, "mr", "mr")))
	f.settled("mr")
	thing := harness.Object(group+"/v1", "Thing", f.ns, "of-a-user")
	f.eventually(func() error { return f.shoot.Create(f.ctx, thing) })
	f.secret("mr", definition("v2"))
	mr := f.rule("MRX-29: it waits").applied("mr", "False/ApplyFailed", "only once the ManagedResource has the annotation resources.gardener.cloud/confirm-deletion=", "status.storedVersions")
	f.must(f.shoot.Get(f.ctx, client.ObjectKeyFromObject(thing), thing))
	_, message := harness.Condition(mr, resourcesv1alpha1.ResourcesApplied)
	f.annotateMR("mr", resourcesv1alpha1.AnnotationConfirmDeletion, brake.ChecksumIn(message))
	f.rule("MRX-29: it goes on when it is confirmed").applied("mr", "True/ApplySucceeded")
	f.eventually(func() error {
		if value, found := f.mr("mr").Annotations[resourcesv1alpha1.AnnotationConfirmDeletion]; found {
			return fmt.Errorf("MRX-29: the annotation is still %s", value)
		}
		return nil
	})
}
