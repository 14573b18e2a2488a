package admissioncontroller

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	config "github.com/espalier-project/espalier/api/config/admissioncontroller/v1alpha1"
	"github.com/espalier-project/espalier/internal/endpoint/admission"
	gardencorev1beta1 "github.com/espalier-project/espalier/internal/externalapi/core/v1beta1"
	"github.com/espalier-project/espalier/internal/feature"
	"github.com/espalier-project/espalier/internal/seedauthorizer/restriction"
	"github.com/espalier-project/espalier/internal/webhook/updaterestriction"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// recording is a manager whose webhook server records the handlers.
type recording struct {
	manager.Manager
	server recorder
}

func (r recording) GetWebhookServer() webhook.Server { return r.server }

type recorder struct {
	webhook.Server
	handlers map[string]*admission.Handler
}

func (r recorder) Register(path string, handler http.Handler) {
	r.handlers[path] = handler.(*admission.Handler)
}

// judgeUsers are the webhooks that judge the user of a request, whatever it changes.
var judgeUsers = []string{updaterestriction.Name, restriction.SeedName, restriction.ShootName, restriction.ReservedName}

// user returns a Shoot that refers to the objects named x.
func user(t *testing.T) *gardencorev1beta1.Shoot {
	t.Helper()
	shoot := &gardencorev1beta1.Shoot{}
	must.Succeed(t, json.Unmarshal([]byte(`{"metadata":{"namespace":"garden","name":"web"},"spec":{"kubernetes":{"kubeAPIServer":{
		"auditConfig":{"auditPolicy":{"configMapRef":{"name":"x"}}},"structuredAuthentication":{"configMapName":"x"},
		"structuredAuthorization":{"configMapName":"x","kubeconfigs":[{"secretName":"x"}]}}}}}`), shoot))
	return shoot
}

// TestUnchanged is the property of all validating webhooks that are asked about updates: an object that is admitted already, however wrong, keeps the
// fields that are judged, and its finalizers and labels change (T4-4). Nothing is read: the garden does not answer.
func TestUnchanged(t *testing.T) {
	p := newProcess(t, func(cfg *configuration) {
		cfg.Server.ResourceAdmissionConfiguration = &config.ResourceAdmissionConfiguration{
			OperationMode: ptr.To(config.OperationModeBlock),
			Limits:        []config.ResourceLimit{{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"secrets"}, Size: ptr.To(resource.MustParse("1"))}},
		}
	})
	p.users.Set(user(t))
	server := recorder{handlers: map[string]*admission.Handler{}}
	p.Manager = recording{p.Manager, server}
	kinds := map[string]string{"secrets": "Secret", "configmaps": "ConfigMap", "shoots": "Shoot"}
	refused := map[string]bool{}
	for _, row := range Table() {
		if row.Validating == nil || slices.Contains(judgeUsers, row.Name) {
			continue
		}
		must.Succeed(t, row.Start(t.Context(), p))
		for _, rule := range row.Validating(p.Config, feature.Installation{})[0].Rules {
			if !slices.Contains(rule.Operations, admissionregistrationv1.Update) {
				continue
			}
			kind, known := kinds[rule.Resources[0]]
			must.True(t, known, "%s: the property draws no %s", row.Name, rule.Resources[0])
			group := strings.ReplaceAll(rule.APIGroups[0], "*", "")
			rapid.Check(t, func(rt *rapid.T) {
				old := drawWrong(rt)
				now := maps.Clone(old)
				now["metadata"] = maps.Clone(old["metadata"].(map[string]any))
				delete(now["metadata"].(map[string]any), "finalizers")
				request := &admissionv1.AdmissionRequest{
					Operation: admissionv1.Update, Namespace: "garden", Name: "x", Kind: metav1.GroupVersionKind{Group: group, Version: version(rule), Kind: kind},
					Resource: metav1.GroupVersionResource{Group: group, Version: version(rule), Resource: rule.Resources[0]},
				}
				request.Object.Raw, request.OldObject.Raw = encode(rt, now), encode(rt, old)
				if response := server.handlers[row.Path].Respond(t.Context(), request); !response.Allowed {
					rt.Errorf("T4-4: %s refuses an update of a %s that changes nothing it judges: %+v\nold: %s\nnow: %s", row.Name, kind, response.Result, request.OldObject.Raw, request.Object.Raw)
				}
				request.OldObject.Raw = []byte(`{"metadata":{"name":"x"},"data":{"kubeconfig":"YQ==","policy":"x","config.yaml":"x"}}`)
				if kind == "Shoot" {
					return // Its ConfigMap would be read.
				}
				refused[row.Name] = refused[row.Name] || !server.handlers[row.Path].Respond(t.Context(), request).Allowed
			})
		}
	}
	expect.True(t, len(refused) >= 5, "only %v are asked about updates", refused)
	for name, once := range refused {
		expect.True(t, once, "%s refused no object, so that the property proves nothing", name)
	}
}

func version(rule admissionregistrationv1.RuleWithOperations) string {
	if v := rule.APIVersions[0]; v != "*" {
		return v
	}
	return "v1"
}

// drawWrong draws an object that no webhook would admit if it were new.
func drawWrong(rt *rapid.T) map[string]any {
	some := func(name string, values ...any) any { return rapid.SampledFrom(values).Draw(rt, name) }
	metadata := map[string]any{"name": "x", "namespace": "garden", "resourceVersion": "1", "finalizers": []any{"example.com/x"}}
	metadata["labels"] = some("labels", nil, map[string]any{"gardener.cloud/role": "internal-domain"})
	metadata["annotations"] = some("annotations", nil, map[string]any{}, map[string]any{"dns.gardener.cloud/domain": "a"})
	if rapid.Bool().Draw(rt, "in deletion") {
		metadata["deletionTimestamp"] = "2020-01-01T00:00:00Z"
	}
	reference := map[string]any{"kubernetes": map[string]any{"version": "1.33.0", "kubeAPIServer": map[string]any{
		"auditConfig": map[string]any{"auditPolicy": map[string]any{"configMapRef": map[string]any{"name": "gone"}}}, "structuredAuthentication": map[string]any{"configMapName": "gone"},
		"structuredAuthorization": map[string]any{"configMapName": "gone"},
	}}}
	return map[string]any{
		"metadata": metadata, "spec": some("spec", nil, map[string]any{}, reference),
		"data": some("data", nil, map[string]any{}, map[string]any{"kubeconfig": "Zm9v"}, map[string]any{"kubeconfig": ""}, map[string]any{"policy": "[", "config.yaml": "["}),
	}
}

func encode(rt *rapid.T, object any) []byte {
	raw, err := json.Marshal(object)
	must.Succeed(rt, err)
	return raw
}
