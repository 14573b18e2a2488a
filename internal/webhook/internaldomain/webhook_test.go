package internaldomain

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/espalier-project/espalier/internal/endpoint/admission/admissiontest"
	"github.com/espalier-project/espalier/test/expect"
)

const labelled = `labels: {gardener.cloud/role: internal-domain}, `

// about is a request about a Secret with the given metadata before and after.
func about(operation admissionv1.Operation, namespace, now, old string) admissionv1.AdmissionRequest {
	r := admissionv1.AdmissionRequest{Operation: operation, Namespace: namespace, Name: "s"}
	for _, object := range []struct {
		metadata string
		into     *runtime.RawExtension
	}{{now, &r.Object}, {old, &r.OldObject}} {
		if object.metadata != "" {
			raw, err := yaml.YAMLToJSON([]byte("{metadata: {name: s, " + object.metadata + "}, data: {password: c2VjcmV0}}"))
			if err != nil {
				panic(err)
			}
			object.into.Raw = raw
		}
	}
	return r
}

func domainIs(name string) string {
	return labelled + "annotations: {dns.gardener.cloud/domain: " + name + ", dns.gardener.cloud/provider: aws}"
}

func TestDecisions(t *testing.T) {
	const create, update, remove = admissionv1.Create, admissionv1.Update, admissionv1.Delete
	const second = "kind: Secret\nmetadata: {name: other, namespace: %s, labels: {gardener.cloud/role: internal-domain}}"
	const shoot = "kind: Shoot\nmetadata: {name: web, namespace: garden-dev}\nspec: {seedName: a}"
	const only = `there can be only one secret with the 'internal-domain' secret role per namespace`
	const left = "because there are still shoots left in the system"
	good, other := domainIs("a.example.com"), domainIs("b.example.com")
	fake := func(kind string) map[string]error { return map[string]error{kind: errors.New("fake")} }
	for name, c := range map[string]struct {
		request admissionv1.AdmissionRequest
		garden  string
		err     map[string]error
		want    string
	}{
		"IDS-T1/IDS-1, created elsewhere":            {about(create, "garden-dev", labelled+"x: y", ""), fmt.Sprintf(second, "garden-dev"), nil, "200  "},
		"IDS-T1/IDS-1, changed elsewhere":            {about(update, "garden-dev", other, good), shoot, nil, "200  "},
		"IDS-T1/IDS-1, deleted elsewhere":            {about(remove, "garden-dev", "", good), shoot, nil, "200  "},
		"IDS-2/the first":                            {about(create, "garden", good, ""), fmt.Sprintf(second, "seed-a"), nil, "200  "},
		"IDS-T2/IDS-2, IDS-5, a second in garden":    {about(create, "garden", good, ""), fmt.Sprintf(second, "garden"), nil, `409 Conflict Operation cannot be fulfilled on Secret "s": cannot create internal domain secret because ` + only},
		"IDS-T2/IDS-2, a second of a seed":           {about(create, "seed-a", good, ""), fmt.Sprintf(second, "seed-a"), nil, `409 Conflict Operation cannot be fulfilled on Secret "s": cannot create internal domain secret because ` + only},
		"IDS-T3/IDS-2, no annotations":               {about(create, "garden", labelled, ""), "", nil, "400 BadRequest domain secret has no annotations"},
		"IDS-2/no domain":                            {about(create, "garden", "annotations: {dns.gardener.cloud/provider: aws}", ""), "", nil, "400 BadRequest missing dns domain annotation on domain secret"},
		"IDS-2/no provider":                          {about(create, "garden", "annotations: {dns.gardener.cloud/domain: a}", ""), "", nil, "400 BadRequest missing dns provider annotation on domain secret"},
		"IDS-T6/IDS-2, Secrets cannot be read":       {about(create, "garden", good, ""), "", fake("Secret"), "500 InternalError Internal error occurred: fake"},
		"IDS-3/a label comes where there is one":     {about(update, "garden", good, strings.TrimPrefix(good, labelled)), fmt.Sprintf(second, "garden"), nil, `409 Conflict Operation cannot be fulfilled on Secret "s": cannot update secret because ` + only},
		"IDS-3/a label stays, though there are two":  {about(update, "garden", good, good), fmt.Sprintf(second, "garden"), nil, "200  "},
		"IDS-3/a label comes":                        {about(update, "garden", good, strings.TrimPrefix(good, labelled)), "kind: Secret\nmetadata: {name: s, namespace: garden, labels: {gardener.cloud/role: internal-domain}}", nil, "200  "},
		"IDS-T3/WB-36, annotations go":               {about(update, "garden", labelled, good), "", nil, "400 BadRequest domain secret has no annotations"},
		"IDS-T3/WB-36, there were no annotations":    {about(update, "garden", good, labelled), "", nil, "400 BadRequest domain secret has no annotations"},
		"IDS-T4/IDS-3, another domain, a Shoot":      {about(update, "garden", other, good), shoot, nil, `403 Forbidden Secret "s" is forbidden: cannot change domain ` + left},
		"IDS-T4/IDS-3, another domain, no Shoot":     {about(update, "garden", other, good), "", nil, "200  "},
		"IDS-T4/IDS-3, a Shoot on the seed":          {about(update, "seed-a", other, good), shoot, nil, `403 Forbidden Secret "s" is forbidden: cannot change domain ` + left},
		"IDS-T4/IDS-3, a Shoot on another seed":      {about(update, "seed-b", other, good), shoot, nil, "200  "},
		"IDS-T4/IDS-3, another provider":             {about(update, "garden", strings.Replace(good, "aws", "gcp", 1), good), shoot, nil, "200  "},
		"IDS-T6/IDS-3, Shoots cannot be read":        {about(update, "garden", other, good), "", fake("Shoot"), "500 InternalError Internal error occurred: fake"},
		"IDS-T5/IDS-4, deleted, a Shoot":             {about(remove, "garden", "", good), shoot, nil, `403 Forbidden Secret "s" is forbidden: cannot delete internal domain secret ` + left},
		"IDS-T5/IDS-4, deleted, no Shoot":            {about(remove, "garden", "", good), "", nil, "200  "},
		"IDS-T5/IDS-4, deleted, a Shoot on the seed": {about(remove, "seed-a", "", good), shoot, nil, `403 Forbidden Secret "s" is forbidden: cannot delete internal domain secret ` + left},
		"IDS-T5/IDS-4, deleted, on another seed":     {about(remove, "seed-b", "", good), shoot, nil, "200  "},
		"IDS-6/WB-35, selected by the other label":   {about(update, "garden", strings.Replace(other, "gardener.cloud/role", "role", 1), strings.Replace(good, "gardener.cloud/role", "role", 1)), shoot, nil, `403 Forbidden Secret "s" is forbidden: cannot change domain ` + left},
	} {
		t.Run(name, func(t *testing.T) {
			garden := admissiontest.NewReader(t, c.garden)
			if c.err != nil {
				garden.Err = c.err
			}
			response := admissiontest.Respond(Decide(garden), c.request)
			if got := fmt.Sprintf("%d %s %s", response.Result.Code, response.Result.Reason, response.Result.Message); got != c.want || response.Allowed != (response.Result.Code == 200) {
				t.Errorf("allowed %v: %s, want %s", response.Allowed, got, c.want)
			}
		})
	}
}

// TestUnreadable: a Secret that cannot be read is not admitted.
func TestUnreadable(t *testing.T) {
	for name, r := range map[string]admissionv1.AdmissionRequest{
		"IDS-2/created":         {Operation: admissionv1.Create, Namespace: "garden", Object: runtime.RawExtension{Raw: []byte("{")}},
		"IDS-3/as it is to be":  {Operation: admissionv1.Update, Namespace: "garden", Object: runtime.RawExtension{Raw: []byte("{")}, OldObject: about("", "garden", domainIs("a"), "").Object},
		"IDS-3/as it was":       {Operation: admissionv1.Update, Namespace: "garden", Object: about("", "garden", domainIs("a"), "").Object, OldObject: runtime.RawExtension{Raw: []byte("{")}},
		"IDS-3/neither of them": {Operation: admissionv1.Update, Namespace: "garden", Object: runtime.RawExtension{Raw: []byte("{")}, OldObject: runtime.RawExtension{Raw: []byte("{")}},
	} {
		response := admissiontest.Respond(Decide(admissiontest.NewReader(t, "")), r)
		expect.False(t, response.Allowed, "%s: it is admitted: %+v", name, response.Result)
	}
}

// TestProperty: every Secret can be written again as it is, and an update is judged like the creation of its result.
func TestProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		draw := func(label string) string {
			return rapid.SampledFrom([]string{labelled, domainIs("a"), domainIs("b"), "annotations: {}", "annotations: {dns.gardener.cloud/domain: a}", "x: y"}).Draw(rt, label)
		}
		now := draw("now")
		garden := admissiontest.NewReader(t, "")
		created := admissiontest.Respond(Decide(garden), about(admissionv1.Create, "garden", now, ""))
		updated := admissiontest.Respond(Decide(garden), about(admissionv1.Update, "garden", now, now))
		expect.True(rt, updated.Allowed, "T4-4, IDS-7: %s: nothing changes: %+v", now, updated.Result)
		if changed := admissiontest.Respond(Decide(garden), about(admissionv1.Update, "garden", now, domainIs("c"))); changed.Allowed != created.Allowed {
			rt.Errorf("%s: created %+v, changed %+v", now, created.Result, changed.Result)
		}
	})
}

func FuzzWebhook(f *testing.F) {
	admissiontest.FuzzReviews(f, Decide(admissiontest.NewReader(f, "kind: Shoot\nmetadata: {name: web}")), admissionv1.AdmissionRequest{Namespace: "garden", Name: "s"}, string(about("", "garden", domainIs("a"), "").Object.Raw))
}

// TestDocument: the document shows what the webhook does and how it is registered: for the label that Secrets have (ADM-13, OPB-22).
func TestDocument(t *testing.T) {
	r := about(admissionv1.Update, "garden", "x: y", "")
	t.Run("ADM-13/OPB-22 as it is registered", func(t *testing.T) {
		admissiontest.Judged{
			Decide: Decide(admissiontest.NewReader(t, "kind: Shoot\nmetadata: {name: web, namespace: garden-dev}")), Request: r, Other: r, Old: about("", "garden", "", domainIs("internal.example.com")).OldObject.Raw,
		}.Document(t, Name, Registration())
	})
}
