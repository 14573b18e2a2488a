package resourcesize

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	config "github.com/espalier-project/espalier/api/config/admissioncontroller/v1alpha1"
	"github.com/espalier-project/espalier/internal/endpoint/admission/admissiontest"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// small is an object of 52 bytes, without what the system writes.
const small = `{"kind":"Shoot","metadata":{"name":"a"},"spec":"xxx"}`

func limits(mode string) *config.ResourceAdmissionConfiguration {
	return &config.ResourceAdmissionConfiguration{
		OperationMode: ptr.To(mode),
		Limits: []config.ResourceLimit{
			{APIGroups: []string{"core.gardener.cloud"}, APIVersions: []string{"*"}, Resources: []string{"shoots"}, Size: ptr.To(resource.MustParse(fmt.Sprint(len(small))))},
			{APIGroups: []string{"*"}, APIVersions: []string{"v1beta1"}, Resources: []string{"projects", "shoots"}, Size: ptr.To(resource.MustParse("0"))},
			{APIGroups: []string{"core.gardener.cloud"}, APIVersions: []string{"v1beta1"}, Resources: []string{"seeds"}, Count: ptr.To[int64](0)},
			{APIGroups: []string{"core.gardener.cloud"}, APIVersions: []string{"v1beta1"}, Resources: []string{"cloudprofiles"}, Count: ptr.To[int64](2)},
		},
		UnrestrictedSubjects: []rbacv1.Subject{
			{Kind: "User", Name: "admin"}, {Kind: "Group", Name: "admins"}, {Kind: "ServiceAccount", Namespace: "garden", Name: "robot"}, {Kind: "ServiceAccount", Namespace: "all", Name: "*"},
		},
	}
}

func request(what, object string, change ...func(*admissionv1.AdmissionRequest)) admissionv1.AdmissionRequest {
	r := admissionv1.AdmissionRequest{
		Operation: admissionv1.Create, Namespace: "garden-dev", Name: "a", UserInfo: authenticationv1.UserInfo{Username: "jane"}, Kind: metav1.GroupVersionKind{Group: "core.gardener.cloud", Version: "v1beta1", Kind: "Thing"},
		Resource: metav1.GroupVersionResource{Group: "core.gardener.cloud", Version: "v1beta1", Resource: what}, Object: runtime.RawExtension{Raw: []byte(object)},
	}
	for _, c := range change {
		c(&r)
	}
	return r
}

func by(user string, groups ...string) func(*admissionv1.AdmissionRequest) {
	return func(r *admissionv1.AdmissionRequest) { r.UserInfo.Username, r.UserInfo.Groups = user, groups }
}

func wide(r *admissionv1.AdmissionRequest)    { r.Namespace = "" }
func updated(r *admissionv1.AdmissionRequest) { r.Operation = admissionv1.Update }
func from(old string) func(*admissionv1.AdmissionRequest) {
	return func(r *admissionv1.AdmissionRequest) { r.Operation, r.OldObject.Raw = admissionv1.Update, []byte(old) }
}
func core(r *admissionv1.AdmissionRequest) { r.Resource.Group, r.Resource.Version = "", "v1" }

func TestDecisions(t *testing.T) {
	large := strings.Replace(small, "xxx", "xxxx", 1)
	tooLarge := fmt.Sprintf(`403 Forbidden shoots.core.gardener.cloud "a" is forbidden: maximum resource size exceeded! Size in request: %d bytes, max allowed: %d`, len(large), len(small))
	profiles := func(n int) string {
		return strings.Repeat("kind: Thing\nmetadata: {name: x}\n---\n", n)
	}
	for name, c := range map[string]struct {
		mode    string
		request admissionv1.AdmissionRequest
		there   string
		err     error
		want    string
		counted string
	}{
		"RSZ-T1/RSZ-5, at the limit":                {"block", request("shoots", small), "", nil, "200  ", ""},
		"RSZ-T1/RSZ-5, RSZ-6, a byte more":          {"block", request("shoots", large), "", nil, tooLarge, "Size Exceeded"},
		"RSZ-T1/RSZ-5, a byte more in an update":    {"block", request("shoots", large, updated), "", nil, tooLarge, "Size Exceeded"},
		"T4-4/RSZ-8, an update that adds nothing":   {"block", request("shoots", large, from(large)), "", nil, "200  ", ""},
		"T4-4/RSZ-8, a finalizer goes":              {"block", request("shoots", large, from(strings.Replace(large, `"name":"a"`, `"name":"a","finalizers":["x"]`, 1))), "", nil, "200  ", ""},
		"RSZ-8/an update that adds a byte":          {"block", request("shoots", large, from(small)), "", nil, tooLarge, "Size Exceeded"},
		"RSZ-T2/RSZ-5, what the system writes":      {"block", request("shoots", strings.Replace(small, `"name":"a"`, `"name":"a","managedFields":[{"manager":"m"}]`, 1)[:len(small)+len(`,"managedFields":[{"manager":"m"}]`)-1]+`,"status":{"a":"bbbbbbb"}}`), "", nil, "200  ", ""},
		"RSZ-5/spaces do not count":                 {"block", request("shoots", strings.ReplaceAll(small, ":", " : ")), "", nil, "200  ", ""},
		"RSZ-T3/RSZ-2, a user":                      {"block", request("shoots", large, by("admin")), "", nil, "200  ", ""},
		"RSZ-T3/RSZ-2, a group":                     {"block", request("shoots", large, by("x", "a", "admins")), "", nil, "200  ", ""},
		"RSZ-T3/RSZ-2, a ServiceAccount":            {"block", request("shoots", large, by("system:serviceaccount:garden:robot")), "", nil, "200  ", ""},
		"RSZ-2/all ServiceAccounts of a namespace":  {"block", request("shoots", large, by("system:serviceaccount:all:x")), "", nil, "200  ", ""},
		"RSZ-2/another ServiceAccount":              {"block", request("shoots", large, by("system:serviceaccount:garden:robot2")), "", nil, tooLarge, "Size Exceeded"},
		"RSZ-T3/RSZ-2, a ServiceAccount of a group": {"block", request("shoots", large, by("system:serviceaccount:x:y", "admins")), "", nil, tooLarge, "Size Exceeded"},
		"RSZ-T4/RSZ-3, no limit":                    {"block", request("configmaps", large, core), "", nil, "200  ", ""},
		"RSZ-T5/RSZ-3, any group":                   {"block", request("projects", "{}", func(r *admissionv1.AdmissionRequest) { r.Resource.Group = "other" }), "", nil, `403 Forbidden projects.other "a" is forbidden: maximum resource size exceeded! Size in request: 2 bytes, max allowed: 0`, "Size Exceeded"},
		"RSZ-T5/RSZ-3, another version":             {"block", request("projects", "{}", func(r *admissionv1.AdmissionRequest) { r.Resource.Version = "v1" }), "", nil, "200  ", ""},
		"RSZ-T5/RSZ-3, another group":               {"block", request("seeds", small, wide, func(r *admissionv1.AdmissionRequest) { r.Resource.Group = "other" }), "", nil, "200  ", ""},
		"RSZ-3/what the client asked for": {"block", request("configmaps", large, func(r *admissionv1.AdmissionRequest) {
			r.RequestResource = &metav1.GroupVersionResource{Group: "core.gardener.cloud", Version: "v1", Resource: "shoots"}
		}), "", nil, tooLarge, "Size Exceeded"},
		"RSZ-T6/RSZ-4, not even one":  {"block", request("seeds", small, wide), "", nil, `403 Forbidden seeds.core.gardener.cloud "a" is forbidden: maximum resource count exceeded! max allowed: 0`, "Count Exceeded"},
		"RSZ-T6/RSZ-4, an update":     {"block", request("seeds", small, wide, updated), "", nil, "200  ", ""},
		"RSZ-T6/RSZ-4, unrestricted":  {"block", request("seeds", small, wide, by("admin")), "", nil, "200  ", ""},
		"RSZ-4/one more":              {"block", request("cloudprofiles", small, wide), profiles(1), nil, "200  ", ""},
		"RSZ-4/one too many":          {"block", request("cloudprofiles", small, wide), profiles(2), nil, `403 Forbidden cloudprofiles.core.gardener.cloud "a" is forbidden: maximum resource count exceeded! max allowed: 2`, "Count Exceeded"},
		"RSZ-4/in a namespace":        {"block", request("cloudprofiles", small), profiles(3), nil, "200  ", ""},
		"RSZ-4/they cannot be read":   {"block", request("cloudprofiles", small, wide), "", errors.New("fake"), "403 Forbidden error handling count limit: failed to determine if count exceeds limit: fake", ""},
		"RSZ-T7/RSZ-6, log only":      {"log", request("shoots", large), "", nil, "200  ", ""},
		"RSZ-T8/RSZ-5, no object":     {"block", request("shoots", "", updated), "", nil, "200  ", ""},
		"RSZ-5/no JSON":               {"block", request("shoots", "[1]"), "", nil, "403 Forbidden error handling size limit: json: cannot unmarshal array into Go value of type map[string]interface {}", ""},
		"WB-39/metadata is no object": {"block", request("shoots", `{"metadata":1}`), "", nil, "400  error handling size limit: metadata is no object", ""},
		"RSZ-1/a deletion":            {"block", request("shoots", small, func(r *admissionv1.AdmissionRequest) { r.Operation = admissionv1.Delete }), "", nil, `400  unknown operation request "DELETE"`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			counted := &rejections{}
			garden := admissiontest.NewReader(t, c.there)
			garden.Err["Thing"] = c.err
			response := admissiontest.Respond(Decide(Options{Config: limits(c.mode), Garden: garden, Rejections: counted, Log: logr.Discard()}), c.request)
			if got := fmt.Sprintf("%d %s %s", response.Result.Code, response.Result.Reason, response.Result.Message); got != c.want || response.Allowed != (response.Result.Code == 200) {
				t.Errorf("allowed %v: %s, want %s", response.Allowed, got, c.want)
			}
			expect.Equal(t, counted.reason, c.counted, "RSZ-6, OBS-20: counted")
		})
	}
	response := admissiontest.Respond(Decide(Options{}), request("shoots", large, wide))
	expect.True(t, response.Allowed, "RSZ-T9, WB-39: without a configuration: %+v", response.Result)
}

// OBS-6, RSZ-6: what would be refused is logged with its size and the limit.
func TestLog(t *testing.T) {
	var lines []string
	log := funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{})
	admissiontest.Respond(Decide(Options{Config: limits("log"), Rejections: &rejections{}, Log: log}), request("projects", "{}", func(r *admissionv1.AdmissionRequest) { r.Resource.Group = "other" }))
	expect.True(t, len(lines) == 1 && strings.Contains(lines[0], `"requestObjectSize"=2 "limit"="0"`), "got %q", lines)
}

type rejections struct{ reason string }

func (r *rejections) Count(_ *admissionv1.AdmissionRequest, reason string) { r.reason = reason }

// pages is a cluster that answers in pages of one object.
type pages struct{ objects, reads int }

func (p *pages) List(_ context.Context, into client.ObjectList, options ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(options)
	p.reads++
	list := into.(*metav1.PartialObjectMetadataList)
	list.Items, list.Continue = nil, ""
	if done := len(o.Continue); done < p.objects {
		list.Items = make([]metav1.PartialObjectMetadata, 1)
		if done+1 < p.objects {
			list.Continue = o.Continue + "x"
		}
	}
	return nil
}

// TestPages: an API server that answers in pages is asked on until the limit is reached or all is seen (RSZ-4).
func TestPages(t *testing.T) {
	for objects, want := range map[int]bool{0: true, 1: true, 2: false, 9: false} {
		garden := &pages{objects: objects}
		response := admissiontest.Respond(Decide(Options{Config: limits("block"), Garden: garden, Rejections: &rejections{}, Log: logr.Discard()}), request("cloudprofiles", small, wide))
		expect.True(t, response.Allowed == want && garden.reads <= 2,
			"%d objects: %+v after %d reads", objects, response.Result, garden.reads)
	}
}

// TestProperty: whatever the system writes, the size is that of the rest; and an object is judged by its size alone, created or updated.
func TestProperty(t *testing.T) {
	decide := Decide(Options{Config: limits("block"), Rejections: &rejections{}, Log: logr.Discard()})
	rapid.Check(t, func(rt *rapid.T) {
		spec := rapid.StringN(0, 30, 60).Draw(rt, "spec")
		plain := map[string]any{"metadata": map[string]any{"name": "a"}, "spec": spec}
		text, err := json.Marshal(plain)
		must.Succeed(rt, err)
		plain["status"] = rapid.SampledFrom([]any{nil, "x", map[string]any{"a": spec}}).Draw(rt, "status")
		plain["metadata"].(map[string]any)["managedFields"] = []any{spec}
		written, err := json.Marshal(plain)
		must.Succeed(rt, err)
		if size, err := sizeOf(written); err != nil || size != int64(len(text)) {
			rt.Errorf("%s has %d bytes, %v, want %d", written, size, err, len(text))
		}
		created, changed := admissiontest.Respond(decide, request("shoots", string(written))), admissiontest.Respond(decide, request("shoots", string(written), updated))
		expect.True(rt, created.Allowed == (len(text) <= len(small)) && changed.Allowed == created.Allowed,
			"%d bytes: created %v, changed %v", len(text), created.Allowed, changed.Allowed)
	})
}

func FuzzWebhook(f *testing.F) {
	admissiontest.FuzzReviews(f, Decide(Options{Config: limits("block"), Garden: admissiontest.NewReader(f, ""), Rejections: &rejections{}, Log: logr.Discard()}), request("shoots", ""), small, `{"metadata":[]}`, `{"metadata":{"managedFields":1}}`)
}

// TestDocument: the document shows what the webhook does and how it is registered (ADM-19).
func TestDocument(t *testing.T) {
	blocks := admissiontest.Shown(t, admissiontest.GardenDocument, Name, 2)
	cfg := &config.AdmissionControllerConfiguration{}
	must.Succeed(t, yaml.UnmarshalStrict([]byte(blocks[0]), cfg))
	config.SetDefaults(cfg)
	if errs := config.Validate(cfg); len(errs) > 0 {
		t.Fatalf("RSZ-7: %v", errs)
	}
	limits := cfg.Server.ResourceAdmissionConfiguration
	var object map[string]any
	must.Succeed(t, yaml.UnmarshalStrict([]byte(blocks[1]), &object))
	raw, err := json.Marshal(object)
	must.Succeed(t, err)
	r := request("shoots", string(raw))
	r.Name = "web"
	decide := Decide(Options{Config: limits, Rejections: &rejections{}, Log: logr.Discard()})
	if response := admissiontest.Respond(decide, r); response.Allowed || !strings.Contains(admissiontest.Section(t, admissiontest.GardenDocument, Name), response.Result.Message) {
		t.Errorf("%+v", response.Result)
	}
	r.UserInfo.Username = limits.UnrestrictedSubjects[0].Name
	response := admissiontest.Respond(decide, r)
	expect.True(t, response.Allowed, "%+v", response.Result)
	entries := Registrations(limits)
	admissiontest.Entry(t, Name, entries[0])
	expect.True(t, Registrations(nil) == nil && Registrations(&config.ResourceAdmissionConfiguration{}) == nil,
		"without limits nothing is registered")
}
