package deletionprotection

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-project/espalier/internal/endpoint/admission/admissiontest"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// source is a cluster with some objects, in pages.
type source struct {
	pages [][]string // annotations of the objects
	err   error
	asked client.ListOptions
	kind  schema.GroupVersionKind
	reads int
}

func (s *source) List(ctx context.Context, into client.ObjectList, options ...client.ListOption) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.asked = client.ListOptions{}
	s.asked.ApplyOptions(options)
	list := into.(*metav1.PartialObjectMetadataList)
	s.kind = list.GroupVersionKind()
	page := 0
	if s.asked.Continue != "" {
		page = len(s.asked.Continue)
	}
	s.reads++
	list.Items, list.Continue = nil, ""
	if s.err != nil || len(s.pages) == 0 {
		return s.err
	}
	for i, value := range s.pages[page] {
		o := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: fmt.Sprintf("o%d-%d", page, i)}}
		if value != "-" {
			o.Annotations = map[string]string{Confirmation: value}
		}
		list.Items = append(list.Items, o)
	}
	if page+1 < len(s.pages) {
		list.Continue = strings.Repeat("x", page+1)
	}
	return nil
}

// deletion is a request for the deletion of an object with the given metadata; "-" means that none is sent.
func deletion(resource, name, metadata string) admissionv1.AdmissionRequest {
	parts := strings.Split(resource, "/")
	r := admissionv1.AdmissionRequest{
		Operation: admissionv1.Delete, Name: name, Namespace: "n",
		Resource: metav1.GroupVersionResource{Group: parts[0], Version: parts[1], Resource: parts[2]},
		Kind:     metav1.GroupVersionKind{Group: parts[0], Version: parts[1], Kind: "Thing"},
	}
	if metadata != "-" {
		r.OldObject = runtime.RawExtension{Raw: []byte(`{"metadata":` + metadata + `}`)}
	}
	return r
}

// withObject is a request for the deletion of an object as it is written.
func withObject(object string) admissionv1.AdmissionRequest {
	r := deletion(dnsRecord, "x", "-")
	r.OldObject.Raw = []byte(object)
	return r
}

const (
	dnsRecord = "extensions.gardener.cloud/v1alpha1/dnsrecords"
	crd       = "apiextensions.k8s.io/v1/customresourcedefinitions"
)

func TestDecisions(t *testing.T) {
	const must = `403 Forbidden must have a "confirmation.gardener.cloud/deletion" annotation to delete: dnsrecords.extensions.gardener.cloud `
	notFound := apierrors.NewNotFound(schema.GroupResource{}, "")
	for name, c := range map[string]struct {
		request admissionv1.AdmissionRequest
		source  source
		want    string
	}{
		"DP-10, CREATE":                {admissionv1.AdmissionRequest{Operation: admissionv1.Create}, source{}, "200  operation is not DELETE"},
		"DP-10, UPDATE":                {admissionv1.AdmissionRequest{Operation: admissionv1.Update}, source{}, "200  operation is not DELETE"},
		"DP-10, CONNECT":               {admissionv1.AdmissionRequest{Operation: admissionv1.Connect}, source{}, "200  operation is not DELETE"},
		"DP-11, another resource":      {deletion("foo/bar/baz", "x", "-"), source{}, "200  resource is not deletion-protected"},
		"DP-1, bastions":               {deletion("extensions.gardener.cloud/v1alpha1/bastions", "x", "-"), source{}, "200  resource is not deletion-protected"},
		"DP-11, pods":                  {deletion("/v1/pods", "x", "-"), source{}, "200  resource is not deletion-protected"},
		"DP-2/the whole triple counts": {deletion("extensions.gardener.cloud/v1/dnsrecords", "x", "-"), source{}, "200  resource is not deletion-protected"},
		"DP-2/not what the client asked for": {func() admissionv1.AdmissionRequest {
			r := deletion(dnsRecord, "x", `{}`)
			r.RequestResource = &metav1.GroupVersionResource{}
			return r
		}(), source{}, must},
		"DP-14, not confirmed":      {deletion(dnsRecord, "x", `{"namespace":"n","name":"x"}`), source{}, must + "n/x"},
		"DP-14, confirmed":          {deletion(dnsRecord, "x", `{"annotations":{"confirmation.gardener.cloud/deletion":"true"}}`), source{}, "200  "},
		"DP-14, 1 is true":          {deletion(dnsRecord, "x", `{"annotations":{"confirmation.gardener.cloud/deletion":"1"}}`), source{}, "200  "},
		"DP-14, yes is nothing":     {deletion(dnsRecord, "x", `{"name":"x","annotations":{"confirmation.gardener.cloud/deletion":"yes"}}`), source{}, must + "x"},
		"DP-14, false":              {deletion(dnsRecord, "x", `{"name":"x","annotations":{"confirmation.gardener.cloud/deletion":"false"}}`), source{}, must + "x"},
		"DP-14, empty":              {deletion(dnsRecord, "x", `{"name":"x","annotations":{"confirmation.gardener.cloud/deletion":""}}`), source{}, must + "x"},
		"DP-20/the time is ignored": {deletion(dnsRecord, "x", `{"annotations":{"confirmation.gardener.cloud/deletion":"true","gardener.cloud/timestamp":"never"}}`), source{}, "200  "},
		"DP-19, a dry run": {func() admissionv1.AdmissionRequest {
			r := deletion(dnsRecord, "x", `{"name":"x"}`)
			yes := true
			r.DryRun = &yes
			return r
		}(), source{}, must + "x"},
		"DP-19/one that is being deleted": {deletion(dnsRecord, "x", `{"name":"x","deletionTimestamp":"2020-01-01T00:00:00Z"}`), source{}, must + "x"},
		"DP-12, only the object, not confirmed": {func() admissionv1.AdmissionRequest {
			r := deletion(dnsRecord, "x", `{"name":"x"}`)
			r.Object, r.OldObject = r.OldObject, r.Object
			return r
		}(), source{}, must + "x"},
		"DP-12, only the object, confirmed": {func() admissionv1.AdmissionRequest {
			r := deletion(dnsRecord, "x", `{"annotations":{"confirmation.gardener.cloud/deletion":"true"}}`)
			r.Object, r.OldObject = r.OldObject, r.Object
			return r
		}(), source{}, "200  "},
		"DP-12, nothing to look at":                               {deletion(dnsRecord, "x", "-"), source{}, "500  no object found in admission request"},
		"DP-13, the list fails":                                   {deletion(dnsRecord, "", "-"), source{err: errors.New("fake")}, "500  fake"},
		"DP-13, the kind is gone":                                 {deletion(dnsRecord, "", "-"), source{err: notFound}, "200  object was not found"},
		"DP-14, one is not confirmed":                             {deletion(dnsRecord, "", "-"), source{pages: [][]string{{"true", "-"}}}, must + "n/o0-1" + notSelected},
		"DP-14, one on a later page":                              {deletion(dnsRecord, "", "-"), source{pages: [][]string{{"true"}, {"1"}, {"no"}}}, must + "n/o2-0" + notSelected},
		"DP-15, all are confirmed":                                {deletion(dnsRecord, "", "-"), source{pages: [][]string{{"true", "1"}, {"t"}}}, "200  "},
		"DP-15, there is none":                                    {deletion(dnsRecord, "", "-"), source{}, "200  "},
		"WB-16/names are bounded":                                 {deletion(dnsRecord, "", "-"), source{pages: [][]string{{"", "", "", "", "", "", ""}}}, must + "n/o0-0, n/o0-1, n/o0-2, n/o0-3, n/o0-4 and 2 more" + notSelected},
		"DP-12, another object of its namespace is not confirmed": {deletion(dnsRecord, "", `{"annotations":{"confirmation.gardener.cloud/deletion":"true"}}`), source{pages: [][]string{{"true"}, {"-"}}}, must + "n/o1-0" + notSelected},
		"DP-12, all objects of its namespace are confirmed":       {deletion(dnsRecord, "", `{"annotations":{"confirmation.gardener.cloud/deletion":"true"}}`), source{pages: [][]string{{"true"}, {"1"}}}, "200  "},
		"DP-12, the list cannot be read":                          {deletion(dnsRecord, "", `{"annotations":{"confirmation.gardener.cloud/deletion":"true"}}`), source{err: errors.New("fake")}, "500  fake"},
		"DP-14, the object itself is not confirmed":               {deletion(dnsRecord, "", `{"name":"x"}`), source{pages: [][]string{{"true"}}}, must + "x"},
		"R13, a definition without label in a collection":         {deletion(crd, "", `{"name":"x"}`), source{pages: [][]string{{"-"}}}, "200  resource is not deletion-protected"},
		"DP-12, definitions": {deletion(crd, "", `{"labels":{"gardener.cloud/deletion-protected":"true"},"annotations":{"confirmation.gardener.cloud/deletion":"true"}}`), source{pages: [][]string{{"true", "-"}}},
			`403 Forbidden must have a "confirmation.gardener.cloud/deletion" annotation to delete: customresourcedefinitions.apiextensions.k8s.io n/o0-1` + notSelected},
		"DP-12/too many to look at": {deletion(dnsRecord, "", `{"annotations":{"confirmation.gardener.cloud/deletion":"true"}}`), source{pages: slices.Repeat([][]string{slices.Repeat([]string{"true"}, pageSize)}, maxObjects/pageSize+1)},
			"403 Forbidden there are more than 10000 dnsrecords.extensions.gardener.cloud, too many to check all of them: delete them by name"},
		"DP-18/names of fields are case-sensitive":  {withObject(`{"metadata":{"name":"x"},"METADATA":{"annotations":{"confirmation.gardener.cloud/deletion":"true"}}}`), source{}, must + "x"},
		"DP-18/those of metadata, too":              {withObject(`{"metadata":{"name":"x","Annotations":{"confirmation.gardener.cloud/deletion":"true"}}}`), source{}, must + "x"},
		"DP-18/those of annotations, too":           {withObject(`{"metadata":{"name":"x","annotations":{"Confirmation.gardener.cloud/deletion":"true"}}}`), source{}, must + "x"},
		"DP-18/metadata twice":                      {withObject(`{"metadata":{"annotations":{"confirmation.gardener.cloud/deletion":"true"}},"metadata":{"name":"x"}}`), source{}, must + "x"},
		"DP-18/annotations twice":                   {withObject(`{"metadata":{"annotations":{"confirmation.gardener.cloud/deletion":"true"},"name":"x","annotations":{}}}`), source{}, must + "x"},
		"DP-18/the annotation twice":                {withObject(`{"metadata":{"name":"x","annotations":{"confirmation.gardener.cloud/deletion":"true","confirmation.gardener.cloud/deletion":"false"}}}`), source{}, must + "x"},
		"DP-18/metadata is null":                    {withObject(`{"metadata":null}`), source{}, must},
		"DP-18/annotations are null":                {withObject(`{"metadata":{"name":"x","annotations":null}}`), source{}, must + "x"},
		"DP-18/metadata is a list":                  {withObject(`{"metadata":["annotations"]}`), source{}, must},
		"DP-18/true is no text":                     {withObject(`{"metadata":{"name":"x","annotations":{"confirmation.gardener.cloud/deletion":true}}}`), source{}, must + "x"},
		"DP-18/null":                                {withObject(`null`), source{}, must},
		"R13, a definition without label":           {deletion(crd, "x", `{"name":"x"}`), source{}, "200  resource is not deletion-protected"},
		"BH-DEL-1/R13, a definition with the label": {deletion(crd, "x", `{"name":"x","labels":{"gardener.cloud/deletion-protected":"true"}}`), source{}, `403 Forbidden must have a "confirmation.gardener.cloud/deletion" annotation to delete: customresourcedefinitions.apiextensions.k8s.io x`},
		"BH-DEL-1/a definition is confirmed":        {deletion(crd, "x", `{"labels":{"gardener.cloud/deletion-protected":"true"},"annotations":{"confirmation.gardener.cloud/deletion":"true"}}`), source{}, "200  "},
		"DP-17/what the object wants does not matter": {func() admissionv1.AdmissionRequest {
			r := deletion(dnsRecord, "x", "-")
			r.OldObject.Raw = []byte(`{"spec":[],"metadata":{"name":"x"}}`)
			return r
		}(), source{}, must + "x"},
		"DP-18/no kind is needed, and any is good": {func() admissionv1.AdmissionRequest {
			r := deletion(dnsRecord, "x", "-")
			r.OldObject.Raw = []byte(`{"kind":"Other","metadata":{"name":"x"}}`)
			return r
		}(), source{}, must + "x"},
	} {
		t.Run(name, func(t *testing.T) {
			response := admissiontest.Respond(Decide(&c.source, clock.RealClock{}), c.request)
			got := fmt.Sprintf("%d %s %s", response.Result.Code, response.Result.Reason, response.Result.Message)
			if !strings.HasPrefix(got, c.want) || (len(got) > len(c.want) && c.want != must) || response.Allowed != (response.Result.Code == 200) {
				t.Errorf("allowed %v: %s, want %s", response.Allowed, got, c.want)
			}
		})
	}
}

// TestEachResource: each protected resource is judged like the others (BH-DEL-2), and what is registered is what is judged.
func TestEachResource(t *testing.T) {
	judged := map[string]bool{}
	for version, resources := range protected {
		for _, resource := range resources {
			name := version.Group + "/" + version.Version + "/" + resource
			judged[name] = true
			metadata := `{"name":"x","labels":{"gardener.cloud/deletion-protected":"true"}}`
			response := admissiontest.Respond(Decide(nil, clock.RealClock{}), deletion(name, "x", metadata))
			expect.True(t, !response.Allowed && response.Result.Code == 403, "BH-DEL-2: %s: %+v", name, response.Result)
			for _, set := range []func(*admissionv1.AdmissionRequest){
				func(r *admissionv1.AdmissionRequest) { r.OldObject.Raw = []byte("foo") },
				func(r *admissionv1.AdmissionRequest) { r.Object.Raw = []byte("foo") },
			} {
				r := deletion(name, "x", "-")
				set(&r)
				if response := admissiontest.Respond(Decide(nil, clock.RealClock{}), r); response.Allowed || response.Result.Code != 500 || !strings.Contains(response.Result.Message, "invalid character") {
					t.Errorf("DP-13: %s: %+v", name, response.Result)
				}
			}
		}
	}
	for _, entry := range Registrations() {
		for _, rule := range entry.Rules {
			for _, version := range rule.APIVersions {
				for _, resource := range rule.Resources {
					if name := rule.APIGroups[0] + "/" + version + "/" + resource; !judged[name] && resource != "bastions" {
						t.Errorf("DP-1: %s is registered and not judged", name)
					} else {
						delete(judged, name)
					}
				}
			}
		}
	}
	expect.Empty(t, judged, "judged and not registered")
}

// TestCollections: what is listed (DP-12), and that a read that does not end refuses (DP-13).
func TestCollections(t *testing.T) {
	s := &source{}
	admissiontest.Respond(Decide(s, clock.RealClock{}), deletion(dnsRecord, "", "-"))
	if s.kind.String() != "extensions.gardener.cloud/v1alpha1, Kind=ThingList" || s.asked.Namespace != "n" || s.asked.LabelSelector != nil {
		t.Errorf("DP-12: listed %s with %+v", s.kind, s.asked)
	}
	admissiontest.Respond(Decide(s, clock.RealClock{}), deletion(crd, "", "-"))
	expect.Equal(t, s.asked.LabelSelector.String(), "gardener.cloud/deletion-protected=true", "DP-12: definitions are listed with %+v", s.asked)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	r := deletion(dnsRecord, "", "-")
	if _, err := Decide(s, clock.RealClock{})(ctx, &r); err == nil || err.Error() != "context canceled" {
		t.Errorf("DP-13: got %v", err)
	}
}

// TestProperty: whether an object may go depends on the annotation alone, in any company and in any order of fields, and a list is refused
// if and only if one of its objects is.
func TestProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		values := rapid.SliceOf(rapid.SampledFrom([]string{"true", "1", "T", "-", "", "false", "yes", " true"})).Draw(rt, "values")
		pages := [][]string{}
		for rest := values; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(rt, "page")
			pages, rest = append(pages, rest[:n]), rest[n:]
		}
		alone := true
		for _, value := range values {
			metadata := map[string]any{"name": "x", "annotations": map[string]string{Confirmation: value, "other": "true"}, "x-future": 1}
			if value == "-" {
				delete(metadata, "annotations")
			}
			raw, err := json.Marshal(metadata)
			must.Succeed(rt, err)
			alone = admissiontest.Respond(Decide(nil, clock.RealClock{}), deletion(dnsRecord, "x", string(raw))).Allowed && alone
		}
		expect.Equal(rt, admissiontest.Respond(Decide(&source{pages: pages}, clock.RealClock{}), deletion(dnsRecord, "", "-")).Allowed, alone, "a list of %q is admitted", values)
		expect.Equal(rt, alone, !slices.ContainsFunc(values, func(v string) bool { return v != "true" && v != "1" && v != "T" }), "%q are admitted", values)
	})
}

func FuzzWebhook(f *testing.F) {
	admissiontest.FuzzReviews(f, Decide(&source{}, clock.RealClock{}), deletion(dnsRecord, "x", "-"), `{"metadata":{"annotations":{"confirmation.gardener.cloud/deletion":"true"}}}`)
}

// TestDocument compares the document with what the webhook does and with its registration (A12.1).
func TestDocument(t *testing.T) {
	admissiontest.Refuses(t, Decide(nil, clock.RealClock{}), deletion(dnsRecord, "x", "-"), Name)
	admissiontest.Registered(t, Name, Registrations()...)
}
