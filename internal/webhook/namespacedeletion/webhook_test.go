package namespacedeletion

import (
	"errors"
	"fmt"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/espalier-project/espalier/internal/endpoint/admission/admissiontest"
)

var deletion = admissionv1.AdmissionRequest{Operation: admissionv1.Delete, Name: "garden-dev"}

const (
	namespace = "kind: Namespace\nmetadata: {name: garden-dev, labels: {project.gardener.cloud/name: dev}}"
	project   = "\n---\nkind: Project\nmetadata: {name: dev}"
	going     = "\n---\nkind: Project\nmetadata: {name: dev, deletionTimestamp: '2020-01-01T00:00:00Z'}"
	shoot     = "\n---\nkind: Shoot\nmetadata: {name: web, namespace: garden-dev}"
)

func TestDecisions(t *testing.T) {
	for name, c := range map[string]struct {
		garden string
		err    map[string]error
		want   string
	}{
		"NSD-2/no namespace":                 {"", nil, "200  "},
		"NSD-2/no project is named":          {"kind: Namespace\nmetadata: {name: garden-dev}" + project + shoot, nil, "200  "},
		"NSD-2/no project":                   {namespace, nil, "200  "},
		"NSD-2/the namespace cannot be read": {namespace, map[string]error{"Namespace": errors.New("fake")}, "500 InternalError Internal error occurred: fake"},
		"NSD-2/the project cannot be read":   {namespace, map[string]error{"Project": errors.New("fake")}, "500 InternalError Internal error occurred: fake"},
		"NSD-3/it goes already":              {"kind: Namespace\nmetadata: {name: garden-dev, deletionTimestamp: '2020-01-01T00:00:00Z', labels: {project.gardener.cloud/name: dev}}" + project + shoot, nil, "200  "},
		"NSD-4/with Shoots":                  {namespace + going + shoot, nil, `403 Forbidden Namespace "garden-dev" is forbidden: deletion of namespace "garden-dev" is not permitted (it still contains Shoots)`},
		"NSD-4/Shoots of others":             {namespace + going + "\n---\nkind: Shoot\nmetadata: {name: web, namespace: garden-other}", nil, "200  "},
		"NSD-4/the Shoots cannot be read":    {namespace + going, map[string]error{"Shoot": errors.New("fake")}, "500 InternalError Internal error occurred: fake"},
		"NSD-5/the project stays":            {namespace + project, nil, `403 Forbidden Namespace "garden-dev" is forbidden: direct deletion of namespace "garden-dev" is not permitted (you must delete the corresponding project "dev")`},
	} {
		t.Run(name, func(t *testing.T) {
			garden := admissiontest.NewReader(t, c.garden)
			if c.err != nil {
				garden.Err = c.err
			}
			response := admissiontest.Respond(Decide(garden), deletion)
			if details := response.Result.Details; response.Result.Code == 403 && (details == nil || details.Kind != "Namespace" || details.Name != "garden-dev" || response.Result.Status != "Failure") {
				t.Errorf("NSD-4, NSD-5: got details %+v of %+v", details, response.Result)
			}
			if got := fmt.Sprintf("%d %s %s", response.Result.Code, response.Result.Reason, response.Result.Message); got != c.want || response.Allowed != (response.Result.Code == 200) {
				t.Errorf("WB-37: allowed %v: %s, want %s", response.Allowed, got, c.want)
			}
		})
	}
	for _, operation := range []admissionv1.Operation{admissionv1.Create, admissionv1.Update, admissionv1.Connect} {
		garden := admissiontest.NewReader(t, namespace+project)
		if response := admissiontest.Respond(Decide(garden), admissionv1.AdmissionRequest{Operation: operation, Name: "garden-dev"}); !response.Allowed || len(garden.Reads) > 0 {
			t.Errorf("NSD-1: %s: %+v, reads %v", operation, response.Result, garden.Reads)
		}
	}
}

func FuzzWebhook(f *testing.F) {
	admissiontest.FuzzReviews(f, Decide(admissiontest.NewReader(f, namespace+project)), deletion)
}

// TestDocument: the document shows what the webhook does and how it is registered (ADM-11).
func TestDocument(t *testing.T) {
	other := deletion
	other.Name = "garden-test"
	t.Run("ADM-11 as it is registered", func(t *testing.T) {
		admissiontest.Judged{Decide: Decide(admissiontest.NewReader(t, namespace+project)), Request: deletion, Other: other}.Document(t, Name, Registration())
	})
}
