package providersecretlabels

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/espalier-project/espalier/internal/endpoint/admission/admissiontest"
	"github.com/espalier-project/espalier/internal/externalapi/boundedyaml/yamltest"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

const bindings = `kind: SecretBinding
metadata: {name: a, namespace: garden-dev}
secretRef: {name: s, namespace: garden-dev}
provider: {type: "aws,gcp"}
---
kind: SecretBinding
metadata: {name: b, namespace: garden-other}
secretRef: {name: s, namespace: garden-dev}
---
kind: CredentialsBinding
metadata: {name: c, namespace: garden-other}
credentialsRef: {apiVersion: v1, kind: Secret, name: s, namespace: garden-dev}
provider: {type: azure}
---
kind: CredentialsBinding
metadata: {name: d, namespace: garden-dev}
credentialsRef: {apiVersion: core.gardener.cloud/v1beta1, kind: InternalSecret, name: s, namespace: garden-dev}
provider: {type: openstack}
---
kind: CredentialsBinding
metadata: {name: e, namespace: garden-dev}
credentialsRef: {apiVersion: security.gardener.cloud/v1alpha1, kind: WorkloadIdentity, name: s, namespace: garden-dev}
provider: {type: alicloud}`

// write is a request about a Secret or an InternalSecret.
func write(resource, object string) admissionv1.AdmissionRequest {
	raw, err := yaml.YAMLToJSON([]byte(object))
	if err != nil {
		panic(err)
	}
	group, version := "", "v1"
	if resource == "internalsecrets" {
		group, version = "core.gardener.cloud", "v1beta1"
	}
	return admissionv1.AdmissionRequest{
		Operation: admissionv1.Update, Namespace: "garden-dev", Resource: metav1.GroupVersionResource{Group: group, Version: version, Resource: resource}, Object: runtime.RawExtension{Raw: raw},
	}
}

const provider = "provider.shoot.gardener.cloud/"

func TestLabels(t *testing.T) {
	const set = `"path":"/metadata/labels`
	for name, c := range map[string]struct {
		resource, object string
		remove           bool
		want             string
	}{
		"PSL-2/PSL-3, two kinds of bindings":  {"secrets", "{metadata: {name: s}, data: {a: YQ==}}", false, `[{"op":"add","path":"/metadata/labels","value":{"` + provider + `aws":"true","` + provider + `azure":"true","` + provider + `gcp":"true"}}]`},
		"PSL-2/an InternalSecret":             {"internalsecrets", "{metadata: {name: s}}", false, `[{"op":"add","path":"/metadata/labels","value":{"` + provider + `openstack":"true"}}]`},
		"PSL-3/one that is not used any more": {"internalsecrets", "{metadata: {name: s, labels: {a: b, " + provider + "provider3: x, " + provider + "openstack: 'true'}}}", false, `[{"op":"remove",` + set + `/provider.shoot.gardener.cloud~1provider3"}]`},
		"PSL-3/another value":                 {"internalsecrets", "{metadata: {name: s, labels: {" + provider + "openstack: 'false'}}}", false, `[{"op":"replace",` + set + `/provider.shoot.gardener.cloud~1openstack","value":"true"}]`},
		"PSL-3/all is well":                   {"internalsecrets", "{metadata: {name: s, labels: {" + provider + "openstack: 'true'}}}", false, ``},
		"PSL-3/WB-38, nobody names it":        {"secrets", "{metadata: {name: u, labels: {" + provider + "aws: 'true'}}}", false, ``},
		"WB-38/nobody names it any more":      {"secrets", "{metadata: {name: u, labels: {" + provider + "aws: 'true'}}}", true, `[{"op":"remove",` + set + `"}]`},
	} {
		t.Run(name, func(t *testing.T) {
			decide := Decide(Options{Bindings: admissiontest.NewReader(t, bindings).Referrers(), RemoveUnreferenced: c.remove})
			for _, operation := range []admissionv1.Operation{admissionv1.Create, admissionv1.Update} {
				r := write(c.resource, c.object)
				r.Operation = operation
				if response := admissiontest.Respond(decide, r); !response.Allowed || string(response.Patch) != c.want {
					t.Errorf("%s: %+v, patched with %s, want %s", operation, response.Result, response.Patch, c.want)
				}
			}
		})
	}
	decide := Decide(Options{Bindings: admissiontest.NewReader(t, bindings).Referrers()})
	if response := admissiontest.Respond(decide, write("pods", "{}")); response.Allowed || response.Result.Code != 400 || response.Result.Message != "unexpected resource /v1, Resource=pods" {
		t.Errorf("PSL-1: %+v", response.Result)
	}
	r := write("secrets", "{}")
	r.Operation = admissionv1.Delete
	response := admissiontest.Respond(decide, r)
	expect.True(t, response.Allowed && response.Patch == nil, "PSL-5: %+v", response.Result)
}

// TestEmptyTypes: a type without a name gives no label, as a label needs a name (PSL-2).
func TestEmptyTypes(t *testing.T) {
	const bindings = "kind: SecretBinding\nmetadata: {name: a, namespace: garden-dev}\nsecretRef: {name: s, namespace: garden-dev}\nprovider: {type: 'aws,'}"
	response := admissiontest.Respond(Decide(Options{Bindings: admissiontest.NewReader(t, bindings).Referrers()}), write("secrets", "{metadata: {name: s}}"))
	if want := `[{"op":"add","path":"/metadata/labels","value":{"` + provider + `aws":"true"}}]`; !response.Allowed || string(response.Patch) != want {
		t.Errorf("PSL-2: %+v, patched with %s, want %s", response.Result, response.Patch, want)
	}
}

// TestProperties: twice is once; nothing but labels with the prefix changes; types are those of the bindings.
func TestProperties(t *testing.T) {
	decide := Decide(Options{Bindings: admissiontest.NewReader(t, bindings).Referrers()})
	rapid.Check(t, func(rt *rapid.T) {
		labels := rapid.MapOf(rapid.SampledFrom([]string{"a", "x/y", provider + "aws", provider + "old", provider + "openstack"}), rapid.SampledFrom([]string{"true", "", "false"})).Draw(rt, "labels")
		object := map[string]any{
			"metadata": map[string]any{"name": rapid.SampledFrom([]string{"s", "u", ""}).Draw(rt, "name"), "labels": labels, "x-future": json.Number("123456789012345678901234567890")},
			"data":     map[string]any{"a": "not even base64"}, "type": 5,
		}
		raw, err := json.Marshal(object)
		must.Succeed(rt, err)
		r := write(rapid.SampledFrom([]string{"secrets", "internalsecrets"}).Draw(rt, "resource"), "{}")
		r.Object.Raw = raw
		once := apply(rt, raw, admissiontest.Respond(decide, r))
		r.Object.Raw = once
		response := admissiontest.Respond(decide, r)
		expect.True(rt, response.Allowed && response.Patch == nil, "twice: %+v %s", response.Result, response.Patch)
		expect.DeepEqual(rt, others(rt, once), others(rt, raw), "something else changed")
	})
}

func apply(rt *rapid.T, raw []byte, response *admissionv1.AdmissionResponse) []byte {
	expect.True(rt, response.Allowed, "%+v", response.Result)
	if response.Patch == nil {
		return raw
	}
	patch, err := jsonpatch.DecodePatch(response.Patch)
	must.Succeed(rt, err)
	result, err := patch.Apply(raw)
	must.Succeed(rt, err)
	return result
}

// others is an object without the labels with the prefix.
func others(rt *rapid.T, raw []byte) map[string]any {
	object := map[string]any{}
	decoder := json.NewDecoder(strings.NewReader(string(raw)))
	decoder.UseNumber()
	must.Succeed(rt, decoder.Decode(&object))
	metadata := object["metadata"].(map[string]any)
	labels, _ := metadata["labels"].(map[string]any)
	for key := range labels {
		if strings.HasPrefix(key, Prefix) {
			delete(labels, key)
		}
	}
	if len(labels) == 0 {
		delete(metadata, "labels")
	}
	return object
}

func FuzzWebhook(f *testing.F) {
	admissiontest.FuzzReviews(f, Decide(Options{Bindings: admissiontest.NewReader(f, bindings).Referrers()}), write("secrets", "{}"), `{"metadata":{"name":"s","labels":null}}`, `{"metadata":{"name":"s","labels":{"provider.shoot.gardener.cloud/":"x"}}}`)
}

func TestDocument(t *testing.T) {
	blocks := admissiontest.Shown(t, admissiontest.GardenDocument, Name, 2)
	secret, changed := admissiontest.Sides(blocks[1])
	decide := Decide(Options{Bindings: admissiontest.NewReader(t, blocks[0]).Referrers()})
	before, err := yaml.YAMLToJSON([]byte(secret))
	must.Succeed(t, err)
	r := write("secrets", "{}")
	r.Object.Raw = before
	response := admissiontest.Respond(decide, r)
	patch, err := jsonpatch.DecodePatch(response.Patch)
	must.Succeed(t, err)
	after, err := patch.Apply(before)
	must.Succeed(t, err)
	var got, want any
	must.Succeed(t, yaml.Unmarshal(after, &got))
	must.Succeed(t, yaml.Unmarshal([]byte(changed), &want))
	expect.DeepEqual(t, got, want, "-document, +webhook")
	admissiontest.Entry(t, Name, Registration())
}

// TestWorkIsLinear: four times as many labels take four times the work, whether they stay, go or come (PSL-3).
func TestWorkIsLinear(t *testing.T) {
	decide := Decide(Options{Bindings: admissiontest.NewReader(t, bindings).Referrers()})
	for name, key := range map[string]string{"of providers": provider + "p%d", "of others": "example.com/p%d", "escaped": "\\u0070rovider.shoot.gardener.cloud/p%d"} {
		t.Run("PSL-3/"+name, func(t *testing.T) {
			yamltest.Linear(t, 4000, func(n int) {
				r := write("secrets", "{}")
				var labels strings.Builder
				for i := range n {
					fmt.Fprintf(&labels, `"`+key+`":"true",`, i)
				}
				r.Object.Raw = []byte(`{"metadata":{"name":"s","labels":{` + labels.String() + `"a":"b"}}}`)
				if response := admissiontest.Respond(decide, r); !response.Allowed || name != "of others" && strings.Count(string(response.Patch), `"remove"`) != n {
					t.Errorf("%+v, %d labels are removed", response.Result, strings.Count(string(response.Patch), `"remove"`))
				}
			})
		})
	}
}

// BenchmarkManyLabels takes 16,000 labels away; 50 ms are the goal (PSL-3).
func BenchmarkManyLabels(b *testing.B) {
	var labels strings.Builder
	for i := range 16_000 {
		fmt.Fprintf(&labels, `"%sp%d":"true",`, provider, i)
	}
	r := write("secrets", "{}")
	r.Object.Raw = []byte(`{"metadata":{"name":"s","labels":{` + labels.String() + `"a":"b"}}}`)
	admissiontest.Bench(b, Decide(Options{Bindings: admissiontest.NewReader(b, bindings).Referrers()}), r)
}
