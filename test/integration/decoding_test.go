package integration

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/test/env/harness"
	"github.com/espalier-project/espalier/test/expect"
)

// TestAPI: what the CustomResourceDefinition accepts and fills in.
func TestAPI(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	t.Run("MRA-4b secretRefs is required", func(t *testing.T) {
		mr := harness.Object("resources.gardener.cloud/v1alpha1", "ManagedResource", f.ns, "none")
		mr.Object["spec"] = map[string]any{}
		expect.ErrorContains(t, f.seed.Create(f.ctx, mr), "secretRefs")
	})
	t.Run("MRA-4b no Secrets", func(t *testing.T) {
		f.must(f.seed.Create(f.ctx, harness.ManagedResource(f.ns, "empty")))
		mr := f.settled("empty")
		if *mr.Status.SecretsDataChecksum != "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" || len(mr.Status.Resources) != 0 {
			t.Errorf("MRA-6d: got %v", mr.Status)
		}
		expect.Equal(t, mr.Status.ObservedGeneration, 1,
			"MRA-6b: observedGeneration after the first generation")
	})
	t.Run("MRA-5 the default of a name", func(t *testing.T) {
		mr := harness.Object("resources.gardener.cloud/v1alpha1", "ManagedResource", f.ns, "unnamed")
		mr.Object["spec"] = map[string]any{"secretRefs": []any{map[string]any{}}}
		f.must(f.seed.Create(f.ctx, mr))
		expect.Equal(t, nested(mr, "spec", "secretRefs"), "[map[name:]]", "secretRefs")
	})
	t.Run("MRA-2 status is a subresource", func(t *testing.T) {
		f.patchMR("empty", map[string]any{"status": map[string]any{"observedGeneration": 77}})
		expect.Equal(t, f.mr("empty").Status.ObservedGeneration, 1, "observedGeneration")
	})
}

// BH-MR-37, MRS-4: compressed manifests, and a condition that names what cannot be decoded.
func TestDecoding(t *testing.T) {
	t.Parallel()
	f := newFixture(t)

	f.secret("mr", map[string]string{
		"a.yaml":    configMap("a") + "---\n# nothing\n---\r\n" + strings.ReplaceAll(configMap("crlf"), "\n", "\r\n"),
		"b.yaml.br": compress(t, strings.ReplaceAll(configMap("brotli"), "$NS", f.ns)),
	})
	f.must(f.seed.Create(f.ctx, harness.ManagedResource(f.ns, "mr", "mr")))
	mr := f.settled("mr")
	names := ""
	for _, ref := range mr.Status.Resources {
		names += ref.Name + " "
	}
	expect.Equal(t, names, "a brotli crlf ", "BH-MR-36: the inventory")

	// MRB-2: what can't be decoded deletes nothing.
	f.secret("mr", map[string]string{"a.yaml": configMap("a") + "---\n[\n---\n- a list\n", "b.yaml.br": "garbage", "c": "{", "d.br": "", "e": configMap("e")})
	mr = f.rule("MRD-6/MRS-10: all errors of decoding").applied("mr", "False/DecodingFailed", "Could not decode all new resources: [", "index 1 in 'a.yaml' in secret '$NS/mr'", "index 2 in 'a.yaml'", "'b.yaml.br'", "'c'", "'d.br'")
	f.exists("v1", "ConfigMap", "e")
	for _, name := range []string{"a", "brotli", "crlf"} {
		f.get("v1", "ConfigMap", name)
	}
	expect.True(t, len(mr.Status.Resources) == 4 && mr.Status.ObservedGeneration == 1,
		"MRB-2 inventory: got %v", mr.Status.Resources)

	f.secret("mr", map[string]string{"e": configMap("e")})
	f.settled("mr")
	f.gone("v1", "ConfigMap", "brotli")
}

// MRT-4, MRT-7, MRB-21: a missing Secret touches nothing, and is noticed when it comes.
func TestMissingSecret(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.must(f.seed.Create(f.ctx, harness.ManagedResource(f.ns, "mr", "later")))
	f.rule("MRS-11: a missing Secret").applied("mr", "False/CannotReadSecret", `secrets "later" not found`)
	f.secret("later", map[string]string{"a": configMap("a")})
	f.rule("MR-7: a Secret that comes later").settled("mr")

	f.must(f.seed.Delete(f.ctx, harness.Secret(f.ns, "later", nil)))
	f.applied("mr", "False/CannotReadSecret") // A deletion is noticed by itself.
	f.annotateMR("mr", resourcesv1alpha1.AnnotationOperation, "reconcile")
	f.applied("mr", "False/CannotReadSecret")
	f.rule("MR-7: objects stay though their Secret is missing").get("v1", "ConfigMap", "a")
	f.eventually(func() error {
		if _, found := f.mr("mr").Annotations[resourcesv1alpha1.AnnotationOperation]; found {
			return fmt.Errorf("PRC-34: the operation annotation is still there")
		}
		return nil
	})

	f.must(f.seed.Delete(f.ctx, f.mr("mr")))
	f.rule("MRX-4/HLP-7: the deletion needs no Secret").mrGone("mr")
	f.rule("MRX-4/HLP-7: the deletion needs no Secret").gone("v1", "ConfigMap", "a")
}

// BH-MR-17: an object that the API server refuses is named in the condition, and holds up no other.
func TestBadObjects(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	good := configMap("good-$NAME")
	for name, tc := range map[string]struct {
		manifests string
		reason    string
		parts     []string
	}{
		"kind":      {"---\napiVersion: v1\nmetadata: {name: x}\n", "False/ApplyFailed", []string{"Kind", "index 1"}},
		"unknown":   {"---\napiVersion: unknown.io/v1\nkind: Foo\nmetadata: {name: x}\n", "False/ApplyFailed", []string{"no matches for kind", `error during apply of object "unknown.io/v1/Foo/default/x"`}},
		"label":     {"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: $NS, labels: {a: 1}}\n", "False/DecodingFailed", []string{"metadata.labels: entry 1 of 1"}},
		"invalid":   {"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: $NS, labels: {a: 'not valid!'}}\n", "False/ApplyFailed", []string{`error during apply of object "v1/ConfigMap/$NS/x"`, "is invalid:"}},
		"twice":     {configMap("twice") + configMap("twice"), "False/ApplyFailed", []string{"described twice", "index 1", "index 2"}},
		"namespace": {"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: absent-ns}\n", "False/ApplyFailed", []string{`namespaces "absent-ns" not found`}},
	} {
		f.managed(name, strings.ReplaceAll(good, "$NAME", name)+tc.manifests)
		rule := "HLP-29: the object is named"
		switch name {
		case "unknown":
			rule = "BH-MR-16: a kind that the target does not serve"
		case "invalid":
			rule = "BH-MR-17/HLP-29: gardenlet looks for the text about an invalid object"
		}
		f.rule(rule).applied(name, tc.reason, tc.parts...)
		f.rule("MR-24: the other objects are applied").exists("v1", "ConfigMap", "good-"+name)
	}
}

// MRD-9: scopes decide about namespaces.
func TestNamespaceDefaulting(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.managed("mr", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: $NS}\n---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: $NS, namespace: wrong}\n")
	f.settled("mr")
	for _, object := range []*unstructured.Unstructured{
		harness.Object("v1", "ConfigMap", "default", f.ns), harness.Object("rbac.authorization.k8s.io/v1", "ClusterRole", "", f.ns),
	} {
		f.rule("MRD-9: the scope of a kind decides about the namespace").must(f.shoot.Get(f.ctx, client.ObjectKeyFromObject(object), object))
	}
	f.must(f.seed.Delete(f.ctx, f.mr("mr")))
	f.mrGone("mr")
}

const crd = `---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.$NS.example.org}
spec:
  group: $NS.example.org
  scope: Namespaced
  names: {kind: Widget, plural: widgets}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// TestCustomResources: a CRD and its resource in one go, exact integers, a template that is no pod template.
func TestCustomResources(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	widget := "---\napiVersion: $NS.example.org/v1\nkind: Widget\nmetadata: {name: w, namespace: $NS}\nspec: {big: 9007199254740993, template: text, size: 3}\n"
	f.managed("mr", widget+crd)
	f.rule("MR-31: a CRD and its resource in one ManagedResource").settled("mr")
	api := f.ns + ".example.org/v1"
	w := f.get(api, "Widget", "w")
	expect.Equal(t, fmt.Sprint(w.Object["spec"]), "map[big:9007199254740993 size:3 template:text]", "MRB-7/MRL-4: spec")
	// Drift of a kind that did not exist when the process started.
	f.patch(w, map[string]any{"spec": map[string]any{"size": 4}})
	f.eventually(func() error {
		if size, _, _ := unstructured.NestedInt64(f.get(api, "Widget", "w").Object, "spec", "size"); size != 3 {
			return fmt.Errorf("MRC-15/MRT-9: the drift of a new kind is not repaired: size is %d", size)
		}
		return nil
	})
	f.must(f.shoot.Delete(f.ctx, f.get(api, "Widget", "w")))
	f.exists(api, "Widget", "w")
	f.must(f.seed.Delete(f.ctx, f.mr("mr")))
	f.rule("MRX-18: the kind vanishes with its CRD").mrGone("mr")
}
