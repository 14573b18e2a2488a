package restriction

import (
	"testing"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	clocktesting "k8s.io/utils/clock/testing"
)

// RES-2: whether an object exists is read only for a refused creation of a named object of a known resource.
func TestExistenceIsReadForRefusedCreations(t *testing.T) {
	there := garden{"backupentries n/x": "{}", "seeds ": "{}", " n/x": "{}"}
	for name, tc := range map[string]struct {
		question string
		change   func(*admissionv1.AdmissionRequest)
		code     int32
		reads    int
	}{
		"RES-2/a refused creation":            {"gardenlet CREATE backupentries n/x", nil, 409, 1},
		"RES-2/a refused creation, not there": {"gardenlet CREATE backupentries n/y", nil, 403, 1},
		"RES-2/another operation":             {"gardenlet CONNECT backupentries n/x", nil, 400, 0},
		"RES-2/the name is to be generated":   {"gardenlet CREATE seeds", nil, 403, 0},
		"RES-2/no resource is named":          {"gardenlet CREATE backupentries n/x", func(r *admissionv1.AdmissionRequest) { r.Resource.Resource = "" }, 400, 0},
		"RES-2/an extension":                  {"extension CREATE backupentries n/x", nil, 409, 1},
		"RES-2/a Bastion, not there":          {"gardenlet CREATE bastions n/x", nil, 403, 1},
	} {
		t.Run(name, func(t *testing.T) {
			reader := &counting{garden: there}
			h := &Handler{Reader: reader, Graph: graphOf(t, nil), Clock: clocktesting.NewFakePassiveClock(now), Log: logr.Discard()}
			r := ask(t, tc.question, "{}")
			if tc.change != nil {
				tc.change(r)
			}
			response := respond(h.Decide, r)
			if response.Allowed || response.Result.Code != tc.code || len(reader.read) != tc.reads {
				t.Errorf("RES-2: got %d after %d reads (%s), want %d after %d", response.Result.Code, len(reader.read), response.Result.Message, tc.code, tc.reads)
			}
		})
	}
}
