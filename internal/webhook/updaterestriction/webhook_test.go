package updaterestriction

import (
	"fmt"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/espalier-project/espalier/internal/endpoint/admission/admissiontest"
	"github.com/espalier-project/espalier/test/expect"
)

func request(operation admissionv1.Operation, user string, groups ...string) admissionv1.AdmissionRequest {
	return admissionv1.AdmissionRequest{Operation: operation, UserInfo: authenticationv1.UserInfo{Username: user, Groups: groups}, Resource: metav1.GroupVersionResource{Version: "v1", Resource: "configmaps"}}
}

func TestDecisions(t *testing.T) {
	const create, update, remove = admissionv1.Create, admissionv1.Update, admissionv1.Delete
	for name, c := range map[string]struct {
		request admissionv1.AdmissionRequest
		want    string
	}{
		"UPR-1/the garbage collector deletes":        {request(remove, garbageCollector), "200  generic-garbage-collector is allowed to delete system resources"},
		"UPR-1/the garbage collector updates":        {request(update, garbageCollector), `403 Forbidden user "system:serviceaccount:kube-system:generic-garbage-collector" is not allowed to UPDATE system configmaps`},
		"UPR-2/gardener-internal updates":            {request(update, internal), "200  system:serviceaccount:kube-system:gardener-internal is allowed to update system resources"},
		"UPR-2/gardener-internal deletes":            {request(remove, internal), `403 Forbidden user "system:serviceaccount:kube-system:gardener-internal" is not allowed to DELETE system configmaps`},
		"UPR-3/the gardenlet of a seed":              {request(create, "x", "gardener.cloud:system:seeds"), "200  gardenlet is allowed to modify system resources"},
		"UPR-3/the gardenlet of a self-hosted shoot": {request(remove, "x", "a", "gardener.cloud:system:shoots"), "200  gardenlet is allowed to modify system resources"},
		"UPR-4/another user creates":                 {request(create, "jane", "system:masters"), `403 Forbidden user "jane" is not allowed to CREATE system configmaps`},
		"UPR-4/another user updates":                 {request(update, "jane"), `403 Forbidden user "jane" is not allowed to UPDATE system configmaps`},
		"UPR-4/another user deletes":                 {request(remove, "jane"), `403 Forbidden user "jane" is not allowed to DELETE system configmaps`},
	} {
		t.Run(name, func(t *testing.T) {
			response := admissiontest.Respond(Decide(), c.request)
			if got := fmt.Sprintf("%d %s %s", response.Result.Code, response.Result.Reason, response.Result.Message); got != c.want || response.Allowed != (response.Result.Code == 200) {
				t.Errorf("allowed %v: %s, want %s", response.Allowed, got, c.want)
			}
		})
	}
}

// TestProperty: nobody is admitted but the four that the rules name, and no object is looked at.
func TestProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := request(rapid.SampledFrom([]admissionv1.Operation{admissionv1.Create, admissionv1.Update, admissionv1.Delete, admissionv1.Connect}).Draw(rt, "operation"),
			rapid.SampledFrom([]string{garbageCollector, internal, "jane", "", internal + "2", "system:admin"}).Draw(rt, "user"),
			rapid.SliceOf(rapid.SampledFrom([]string{"gardener.cloud:system:seeds", "gardener.cloud:system:shoots", "gardener.cloud:system:seeds2", "system:masters"})).Draw(rt, "groups")...)
		r.Object.Raw = rapid.SampledFrom([][]byte{nil, []byte("{"), []byte(`{"metadata":{"labels":null}}`)}).Draw(rt, "object")
		want := r.UserInfo.Username == garbageCollector && r.Operation == admissionv1.Delete || r.UserInfo.Username == internal && r.Operation == admissionv1.Update
		for _, group := range r.UserInfo.Groups {
			want = want || group == "gardener.cloud:system:seeds" || group == "gardener.cloud:system:shoots"
		}
		expect.Equal(rt, admissiontest.Respond(Decide(), r).Allowed, want, "%s by %+v is admitted", r.Operation, r.UserInfo)
	})
}

func FuzzWebhook(f *testing.F) { admissiontest.FuzzReviews(f, Decide(), request("", "jane")) }

// TestDocument: the document shows what the webhook does and how it is registered (ADM-18).
func TestDocument(t *testing.T) {
	t.Run("ADM-18 as it is registered", func(t *testing.T) {
		admissiontest.Judged{Decide: Decide(), Request: request(admissionv1.Update, "jane"), Other: request(admissionv1.Update, internal)}.Document(t, Name, Registration())
	})
}
