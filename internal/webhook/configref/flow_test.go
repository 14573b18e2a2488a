package configref

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/espalier-project/espalier/internal/endpoint/admission"
	"github.com/espalier-project/espalier/internal/endpoint/admission/admissiontest"
	gardencorev1beta1 "github.com/espalier-project/espalier/internal/externalapi/core/v1beta1"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/gen/builders"
)

// flow is one whose ConfigMaps are good if they say so; it notes for whom they were judged.
func flow(reader *admissiontest.Reader, judged *[]string) *Flow {
	return &Flow{
		Purpose: "test policy", Key: "key", Shoots: reader.Referrers(), ConfigMaps: reader,
		Reference: func(server *gardencorev1beta1.KubeAPIServer) string {
			if server.StructuredAuthentication == nil {
				return ""
			}
			return server.StructuredAuthentication.ConfigMapName
		},
		Relevant: func(now, old *gardencorev1beta1.Shoot) bool { return len(now.Annotations) != len(old.Annotations) },
		Check: func(_ context.Context, content string, users []*gardencorev1beta1.Shoot) error {
			for i := range users {
				*judged = append(*judged, users[i].Namespace+"/"+users[i].Name)
			}
			slices.Sort(*judged)
			if content != "good" {
				return admission.Refuse(422, "bad")
			}
			return nil
		},
	}
}

func raw(text string) runtime.RawExtension {
	if text == "" {
		return runtime.RawExtension{}
	}
	object, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		panic(err)
	}
	return runtime.RawExtension{Raw: object}
}

// about is a request about an object of a kind before and after.
func about(operation admissionv1.Operation, kind, now, old string) admissionv1.AdmissionRequest {
	r := admissionv1.AdmissionRequest{Operation: operation, Namespace: "garden-dev", Name: "cm", Kind: metav1.GroupVersionKind{Version: "v1", Kind: kind}, Object: raw(now), OldObject: raw(old)}
	if kind == "Shoot" {
		r.Kind = metav1.GroupVersionKind{Group: "core.gardener.cloud", Version: "v1beta1", Kind: kind}
	}
	return r
}

// web refers to a ConfigMap.
func web(configMap string) *builders.Object {
	return builders.Shoot("garden-dev", "web").With("spec.kubernetes.version", "1.33.1").Authentication(configMap)
}

// text is an object as it is sent.
func text(o *builders.Object) string { return string(o.JSON()) }

// users are Shoots, two of which refer to the ConfigMap that has some content.
var users = []*builders.Object{
	builders.Shoot("garden-dev", "a").Authentication("cm"), builders.Shoot("garden-dev", "b").Authentication("cm"), builders.Shoot("garden-dev", "c"), builders.Shoot("garden-other", "d").Authentication("cm"),
}

func filled(content string) *builders.Object { return empty().With("data.key", content) }

func empty() *builders.Object { return builders.ConfigMap("garden-dev", "cm") }

func TestFlow(t *testing.T) {
	const create, update, remove = admissionv1.Create, admissionv1.Update, admissionv1.Delete
	const valid, unusable = "200 referenced test policy is valid", "error getting test policy from ConfigMap garden-dev/cm: "
	good, all := []*builders.Object{filled("good")}, func(objects ...*builders.Object) []*builders.Object { return objects }
	for name, c := range map[string]struct {
		request admissionv1.AdmissionRequest
		garden  []*builders.Object
		err     map[string]error
		want    string
		judged  []string
	}{
		"CV-1/another kind":                  {about(create, "Secret", "{}", ""), nil, nil, "200 resource is neither of type core.gardener.cloud/v1beta1.Shoot, operator.gardener.cloud/v1alpha1.Garden, nor corev1.ConfigMap", nil},
		"CV-2/WB-30, no Shoot":               {about(create, "Shoot", "[]", ""), nil, nil, "400 json: cannot unmarshal array into Go value of type v1.TypeMeta", nil},
		"CV-3/it goes":                       {about(create, "Shoot", text(web("cm").With("metadata.deletionTimestamp", "2020-01-01T00:00:00Z")), ""), nil, nil, "200 shoot is already marked for deletion", nil},
		"CV-T1/CV-4, no API server":          {about(create, "Shoot", "{}", ""), nil, nil, "200 Shoot resource does not specify any test policy ConfigMap", nil},
		"CV-T1/CV-4, no reference":           {about(create, "Shoot", "{spec: {kubernetes: {kubeAPIServer: {}}}}", ""), nil, nil, "200 Shoot resource does not specify any test policy ConfigMap", nil},
		"CV-T2/CV-9, a new Shoot":            {about(create, "Shoot", text(web("cm")), ""), good, nil, valid, []string{"garden-dev/web"}},
		"CV-T3/CV-9, a reference comes":      {about(update, "Shoot", text(web("cm")), "{}"), good, nil, valid, []string{"garden-dev/web"}},
		"CV-T3/CV-9, another reference":      {about(update, "Shoot", text(web("cm")), text(web("cm2"))), good, nil, valid, []string{"garden-dev/web"}},
		"CV-T3/CV-4, a reference goes":       {about(update, "Shoot", "{spec: {a: b}}", text(web("cm"))), nil, nil, "200 Shoot resource does not specify any test policy ConfigMap", nil},
		"CV-T4/CV-5, nothing wanted changes": {about(update, "Shoot", text(web("cm")), text(web("cm"))), nil, nil, "200 shoot spec was not changed", nil},
		"CV-5/other numbers of the same meaning": {about(update, "Shoot", text(web("cm").With("spec.kubernetes.kubelet.kubeReserved.cpu", "1").With("spec.kubernetes.kubelet.containerLogMaxSize", "1Gi")),
			text(web("cm").With("spec.kubernetes.kubelet.kubeReserved.cpu", "1000m").With("spec.kubernetes.kubelet.containerLogMaxSize", "1024Mi"))), nil, nil, "200 shoot spec was not changed", nil},
		"CV-5/a list without elements": {about(update, "Shoot", text(web("cm").With("spec.tolerations", []any{})), text(web("cm").With("spec.extensions", nil))), nil, nil, "200 shoot spec was not changed", nil},
		"CV-5/another amount": {about(update, "Shoot", text(web("cm").With("spec.kubernetes.kubelet.kubeReserved.cpu", "1")), text(web("cm").With("spec.kubernetes.kubelet.kubeReserved.cpu", "1001m"))), nil, nil,
			"200 Neither test policy ConfigMap nor Kubernetes version or other relevant fields were changed", nil},
		"CV-5/versions are no numbers":     {about(update, "Shoot", text(web("cm").With("spec.kubernetes.version", "1.30")), text(web("cm").With("spec.kubernetes.version", "1.3"))), good, nil, valid, []string{"garden-dev/web"}},
		"CV-6/something else changes":      {about(update, "Shoot", text(web("cm").With("spec.region", "b")), text(web("cm").With("spec.region", "a"))), nil, nil, "200 Neither test policy ConfigMap nor Kubernetes version or other relevant fields were changed", nil},
		"CV-6/the version changes":         {about(update, "Shoot", text(web("cm")), text(web("cm").With("spec.kubernetes.version", "1.32.1"))), good, nil, valid, []string{"garden-dev/web"}},
		"CV-6/what is relevant changes":    {about(update, "Shoot", text(web("cm").With("spec.region", "b").Annotated("a", "b")), text(web("cm"))), good, nil, valid, []string{"garden-dev/web"}},
		"CV-5/WB-30, no Shoot before":      {about(update, "Shoot", text(web("cm")), ""), good, nil, "400 there is no content to decode", nil},
		"CV-T5/CV-7, no ConfigMap":         {about(create, "Shoot", text(web("cm")), ""), nil, nil, `422 referenced test policy ConfigMap garden-dev/cm does not exist: configmaps "cm" not found`, nil},
		"CV-T5/CV-7, it cannot be read":    {about(create, "Shoot", text(web("cm")), ""), good, map[string]error{"ConfigMap": errors.New("fake")}, "500 could not retrieve test policy ConfigMap garden-dev/cm: fake", nil},
		"CV-T5/CV-8, WB-31, no key":        {about(create, "Shoot", text(web("cm")), ""), all(empty()), nil, "422 " + unusable + "missing test policy key in key ConfigMap data", nil},
		"CV-T5/CV-8, an empty one":         {about(create, "Shoot", text(web("cm")), ""), all(filled("")), nil, "422 " + unusable + "test policy in key key is empty", nil},
		"CV-T5/CV-9, a bad one":            {about(create, "Shoot", text(web("cm")), ""), all(filled("x")), nil, "422 bad", []string{"garden-dev/web"}},
		"CV-T6/CV-10, a ConfigMap comes":   {about(create, "ConfigMap", text(empty()), ""), users, nil, "200 operation is not update, nothing to validate", nil},
		"CV-11/WB-30, no ConfigMap":        {about(update, "ConfigMap", "[]", "{}"), users, nil, "400 json: cannot unmarshal array into Go value of type v1.TypeMeta", nil},
		"CV-T6/CV-12, nobody refers to it": {about(update, "ConfigMap", text(empty()), text(filled("x"))), nil, nil, "200 ConfigMap is not referenced by a Shoot", nil},
		"CV-13/no key":                     {about(update, "ConfigMap", text(empty()), text(filled("x"))), users, nil, "422 " + unusable + "missing test policy key in key ConfigMap data", nil},
		"CV-13/an empty one":               {about(update, "ConfigMap", text(filled("")), "{}"), users, nil, "422 " + unusable + "test policy in key key is empty", nil},
		"CV-13/WB-30, no ConfigMap before": {about(update, "ConfigMap", text(filled("good")), "[]"), users, nil, "400 error decoding old ConfigMap: json: cannot unmarshal array into Go value of type v1.TypeMeta", nil},
		"CV-T6/CV-13, nothing changes":     {about(update, "ConfigMap", text(filled("x").With("data.other", "b")), text(filled("x").With("data.other", "a"))), users, nil, "200 test policy did not change", nil},
		"CV-15/T4-4, no key as before":     {about(update, "ConfigMap", text(empty()), text(empty().With("metadata.finalizers", []any{"x"}))), users, map[string]error{"Shoot": errors.New("read")}, "200 test policy did not change", nil},
		"CV-14/for all Shoots":             {about(update, "ConfigMap", text(filled("good")), text(filled("x"))), users, nil, valid, []string{"garden-dev/a", "garden-dev/b"}},
		"CV-T6/CV-14, a bad one":           {about(update, "ConfigMap", text(filled("bad")), text(filled("good"))), users, nil, "422 bad", []string{"garden-dev/a", "garden-dev/b"}},
		"CV-2/a deletion is not judged":    {about(remove, "Shoot", "", text(web("cm"))), users, nil, "200 operation is neither create nor update, nothing to validate", nil},
	} {
		t.Run(name, func(t *testing.T) {
			reader := admissiontest.NewReader(t, builders.Documents(c.garden...))
			if c.err != nil {
				reader.Err = c.err
			}
			var judged []string
			response := admissiontest.Respond(flow(reader, &judged).Decide(), c.request)
			if got := fmt.Sprintf("%d %s", response.Result.Code, response.Result.Message); got != c.want || response.Allowed != (response.Result.Code == 200) {
				t.Errorf("allowed %v: %s, want %s", response.Allowed, got, c.want)
			}
			expect.DeepEqual(t, judged, c.judged, "judged for")
		})
	}
}

// TestProperty: a Shoot that is created is judged like one that gets the reference, and both like the ConfigMap that gets the content.
func TestProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		content := rapid.SampledFrom([]string{"good", "bad", ""}).Draw(rt, "content")
		reader := admissiontest.NewReader(t, builders.Documents(append(users, filled(content))...))
		ask := func(r admissionv1.AdmissionRequest) string {
			var judged []string
			response := admissiontest.Respond(flow(reader, &judged).Decide(), r)
			return fmt.Sprint(response.Allowed, response.Result.Code, response.Result.Message)
		}
		created := ask(about(admissionv1.Create, "Shoot", text(web("cm")), ""))
		updated := ask(about(admissionv1.Update, "Shoot", text(web("cm")), "{}"))
		changed := ask(about(admissionv1.Update, "ConfigMap", text(filled(content)), text(filled("something"))))
		expect.True(rt, created == updated && created == changed,
			"created %s, updated %s, changed %s", created, updated, changed)
	})
}

// TestSince: a version that an API server does not know yet is refused for its Shoot (WB-32).
func TestSince(t *testing.T) {
	of := func(version string) *gardencorev1beta1.Shoot {
		shoot := &gardencorev1beta1.Shoot{}
		shoot.Namespace, shoot.Name, shoot.Spec.Kubernetes.Version = "n", "s", version
		return shoot
	}
	v1, beta := &schema.GroupVersionKind{Group: "g", Version: "v1"}, &schema.GroupVersionKind{Group: "g", Version: "v1beta1"}
	for name, c := range map[string]struct {
		kind  *schema.GroupVersionKind
		users []*gardencorev1beta1.Shoot
		want  string
	}{
		"new":           {v1, []*gardencorev1beta1.Shoot{of("1.34.0"), of("1.35.2")}, "<nil>"},
		"one is old":    {v1, []*gardencorev1beta1.Shoot{of("1.34.0"), of("1.33.9")}, "failed to decode the provided thing: g/v1 needs Kubernetes 1.34, but shoot n/s has 1.33.9"},
		"another":       {beta, []*gardencorev1beta1.Shoot{of("1.20.0")}, "<nil>"},
		"no kind":       {nil, nil, "<nil>"},
		"not a version": {v1, []*gardencorev1beta1.Shoot{of("x")}, "<nil>"},
	} {
		expect.Equal(t, fmt.Sprint(Since(version.MajorMinor(1, 34), c.kind, "thing", c.users)), c.want, "WB-32: %s", name)
	}
}

func FuzzFlow(f *testing.F) {
	var judged []string
	admissiontest.FuzzReviews(f, flow(admissiontest.NewReader(f, builders.Documents(append(users, filled("good"))...)), &judged).Decide(), about("", "Shoot", "", ""), text(web("cm")), `{"spec":null}`, `{"spec":{"kubernetes":{"kubeAPIServer":null}}}`)
}
