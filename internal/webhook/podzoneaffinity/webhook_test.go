package podzoneaffinity

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-project/espalier/internal/endpoint/admission/admissiontest"
	"github.com/espalier-project/espalier/internal/feature"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// namespace is the one that there is, "n"; without metadata nothing can be read.
type namespace struct{ labels, annotations map[string]string }

func (n namespace) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	if n.labels == nil && n.annotations == nil || key.Name != "n" || key.Namespace != "" {
		return errors.New("away")
	}
	object.(*metav1.PartialObjectMetadata).Labels, object.(*metav1.PartialObjectMetadata).Annotations = n.labels, n.annotations
	return nil
}

func labelled(zone string) namespace { return namespace{labels: map[string]string{EnforceZone: zone}} }

var properties = admissiontest.Pods{
	Decide:     Decide(labelled("zone-a")),
	Touches:    []string{"/spec/affinity"},
	Spares:     []string{"containers", "initContainers", "ephemeralContainers"},
	OnlyCreate: true,
	Draw: func(rt *rapid.T, pod map[string]any) {
		terms := func(name string) []any {
			all := make([]any, rapid.IntRange(0, 3).Draw(rt, name))
			for i := range all {
				all[i] = map[string]any{"topologyKey": rapid.SampledFrom([]string{"topology.kubernetes.io/zone", "kubernetes.io/hostname"}).Draw(rt, name), "labelSelector": map[string]any{}}
			}
			return all
		}
		affinity := map[string]any{}
		admissiontest.Maybe(rt, affinity, "podAffinity", nil, map[string]any{}, map[string]any{"requiredDuringSchedulingIgnoredDuringExecution": terms("together")})
		admissiontest.Maybe(rt, affinity, "podAntiAffinity", nil, map[string]any{"requiredDuringSchedulingIgnoredDuringExecution": terms("apart")})
		admissiontest.Maybe(rt, affinity, "nodeAffinity", map[string]any{}, map[string]any{"requiredDuringSchedulingIgnoredDuringExecution": map[string]any{"nodeSelectorTerms": []any{
			map[string]any{"matchExpressions": []any{map[string]any{"key": "topology.kubernetes.io/zone", "operator": "Exists"}, map[string]any{"key": "x", "operator": "Exists"}}}, map[string]any{},
		}}})
		admissiontest.Maybe(rt, pod["spec"].(map[string]any), "affinity", nil, affinity, affinity)
	},
}

func TestProperties(t *testing.T) { properties.Check(t) }
func FuzzWebhook(f *testing.F)    { properties.Fuzz(f) }
func TestAffinity(t *testing.T) {
	const (
		term     = `{"labelSelector":{},"topologyKey":"topology.kubernetes.io/zone"}`
		together = `"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[` + term + `]}`
		inZone   = `{"key":"topology.kubernetes.io/zone","operator":"In","values":["zone-a"]}`
		pinned   = `"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[` + inZone + `]}]}}`
		host     = `{"labelSelector":{"matchLabels":{"app":"a"}},"topologyKey":"kubernetes.io/hostname"}`
	)
	for name, c := range map[string]struct {
		namespace    namespace
		before, want string
	}{
		"BH-PZA-1, no zone":                    {labelled(""), `null`, `{` + together + `}`},
		"BH-PZA-2, a zone":                     {labelled("zone-a"), `{}`, `{` + pinned + `,` + together + `}`},
		"PZA-7/another affinity of that key":   {labelled("zone-a"), `{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"topology.kubernetes.io/zone","operator":"Exists"}]}]}}}`, `{` + pinned + `,` + together + `}`},
		"PZA-4/what keeps Pods in other zones": {labelled(""), `{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[` + term + `,` + host + `]}}`, `{` + together + `,"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[` + host + `]}}`},
		"C16, an annotation":                   {namespace{annotations: map[string]string{EnforceZone: "zone-a"}}, `{}`, `{` + pinned + `,` + together + `}`},
		"C16/PZA-1, the label comes first":     {namespace{map[string]string{EnforceZone: ""}, map[string]string{EnforceZone: "zone-b"}}, `{}`, `{` + together + `}`},
		"T4-6, neither of both":                {namespace{labels: map[string]string{"gardener.cloud/role": "shoot"}}, `{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[` + term + `]}}`, `{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[` + term + `]}}`},
		"T4-6/PZA-1, an annotation, no zone":   {namespace{annotations: map[string]string{EnforceZone: ""}}, `{}`, `{` + together + `}`},
		"PZA-5, other terms stay":              {labelled(""), `{"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[` + host + `]}}`, `{"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[` + host + `,` + term + `]}}`},
		"WB-22, in the zone and elsewhere": {labelled("zone-a"), `{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"kubernetes.io/hostname","operator":"NotIn","values":["foo","bar"]}]}]}}}`,
			`{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"kubernetes.io/hostname","operator":"NotIn","values":["foo","bar"]},` + inZone + `]}]}},` + together + `}`},
		"BH-PZA-3, what contradicts goes": {labelled("zone-a"), `{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"topology.kubernetes.io/zone","operator":"In","values":["zone-b"]}]}]}},
			"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"labelSelector":{},"namespaces":["default"],"topologyKey":"topology.kubernetes.io/zone"}]},
			"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[` + term + `,` + host + `],"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":1,"podAffinityTerm":` + term + `}]}}`,
			`{` + pinned + `,` + together + `,"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[` + host + `],"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":1,"podAffinityTerm":` + term + `}]}}`},
	} {
		t.Run(name, func(t *testing.T) {
			result, admitted, err := admissiontest.Apply(Decide(c.namespace), []byte(`{"spec":{"affinity":`+c.before+`}}`))
			if err != nil || !admitted {
				t.Fatal(admitted, err)
			}
			var got, want struct{ Spec corev1.PodSpec }
			must.Succeed(t, errors.Join(json.Unmarshal(result, &got), json.Unmarshal([]byte(`{"spec":{"affinity":`+c.want+`}}`), &want)))
			expect.DeepEqual(t, got, want, "-want, +got")
			again := admissiontest.Ask(Decide(c.namespace), admissionv1.Create, result)
			expect.True(t, again.Patch == nil, "PZA-9: again %s", again.Patch)
		})
	}
	expect.Equal(t, string(admissiontest.Ask(Decide(labelled("")), admissionv1.Create, []byte(`{"spec":{}}`)).Patch), `[{"op":"add","path":"/spec/affinity","value":{`+`"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[`+term+`]}}}]`, "PZA-5, the empty selector is there")
}

func TestOthers(t *testing.T) {
	request := func(change func(*admissionv1.AdmissionRequest)) admissionv1.AdmissionRequest {
		r := admissionv1.AdmissionRequest{Namespace: "n", Operation: admissionv1.Create, Kind: metav1.GroupVersionKind(podKind), Object: runtime.RawExtension{Raw: []byte(`{"spec":{}}`)}}
		change(&r)
		return r
	}
	for name, c := range map[string]struct {
		source  namespace
		request admissionv1.AdmissionRequest
		code    int32
		message string
	}{
		"PZA-2, an update":              {labelled(""), request(func(r *admissionv1.AdmissionRequest) { r.Operation = admissionv1.Update }), 200, "only 'create' operation is handled"},
		"PZA-2, another kind":           {labelled(""), request(func(r *admissionv1.AdmissionRequest) { r.Kind.Kind = "ConfigMap" }), 200, "resource is not corev1.Pod"},
		"FM-7, a subresource":           {labelled(""), request(func(r *admissionv1.AdmissionRequest) { r.SubResource = "status" }), 200, "subresources on pods are not supported"},
		"PZA-3, no Pod":                 {labelled(""), request(func(r *admissionv1.AdmissionRequest) { r.Object.Raw = []byte(`{]`) }), 422, "couldn't get version/kind; json parse error: invalid character ']' looking for beginning of object key string"},
		"PZA-6, no namespace":           {namespace{}, request(func(*admissionv1.AdmissionRequest) {}), 500, `failed to get namespace "n": away`},
		"PZA-6/the request's namespace": {labelled(""), request(func(r *admissionv1.AdmissionRequest) { r.Object.Raw = []byte(`{"metadata":{"namespace":""}}`) }), 200, ""},
	} {
		t.Run(name, func(t *testing.T) {
			response := admissiontest.Respond(Decide(c.source), c.request)
			if response.Result.Code != c.code || response.Allowed != (c.code == 200) || response.Result.Message != c.message || c.message != "" && response.Patch != nil {
				t.Errorf("got %+v, %s", response.Result, response.Patch)
			}
		})
	}
}

// TestDocument compares the document with what the webhook does and with its registration (WHC-12, PZA-1, DEP-4, DEP-5).
func TestDocument(t *testing.T) {
	blocks := admissiontest.Shown(t, admissiontest.Document, Name, 2)
	object := corev1.Namespace{}
	admissiontest.Read(t, blocks[0], &object)
	admissiontest.Example(t, Decide(namespace{labels: object.Labels}), blocks[1])
	admissiontest.Registered(t, Name, Registration(feature.Installation{}))
	got := Registration(feature.Installation{Shoot: true, Prefix: "x-"})
	if got.NamespaceSelector.MatchExpressions[0].Key != "kubernetes.io/metadata.name" || got.ObjectSelector.MatchExpressions[0].Values[0] != "x-gardener-resource-manager" {
		t.Errorf("T4-6/DEP-7: a shoot's registration selects %v and %v", got.NamespaceSelector, got.ObjectSelector)
	}
}
