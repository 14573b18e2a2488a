package projectedtokenmount

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-project/espalier/internal/endpoint/admission/admissiontest"
	"github.com/espalier-project/espalier/internal/feature"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// accounts are ServiceAccounts by namespace and name with what they say about automounting; "broken" cannot be read.
type accounts map[string]*bool

func (a accounts) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	if key.Name == "broken" {
		return errors.New("away")
	}
	automount, found := a[key.String()]
	if !found {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "serviceaccounts"}, key.Name)
	}
	object.(*corev1.ServiceAccount).AutomountServiceAccountToken = automount
	return nil
}

var target = accounts{"n/sa": ptr.To(false), "n/true": ptr.To(true), "n/unset": nil}

var properties = admissiontest.Pods{
	Decide:  Decide(target, 43200),
	Touches: []string{"/spec/volumes", "/spec/containers/*/volumeMounts", "/spec/initContainers/*/volumeMounts"},
	Spares:  []string{"ephemeralContainers"},
	Draw: func(rt *rapid.T, pod map[string]any) {
		spec := pod["spec"].(map[string]any)
		admissiontest.Maybe(rt, spec, "serviceAccountName", "sa", "sa", "true", "unset", "default", "missing")
		admissiontest.Maybe(rt, spec, "volumes", nil, []any{}, []any{map[string]any{"name": "kube-api-access-x", "emptyDir": map[string]any{}}})
		admissiontest.Maybe(rt, pod["metadata"].(map[string]any), "annotations", map[string]any{Expiration: "700"}, map[string]any{Expiration: "x"})
		container := spec["containers"].([]any)[0].(map[string]any)
		admissiontest.Maybe(rt, container, "volumeMounts", nil, []any{}, []any{map[string]any{"name": "v", "mountPath": mountPath}})
	},
}

func TestProperties(t *testing.T) { properties.Check(t) }
func FuzzWebhook(f *testing.F)    { properties.Fuzz(f) }

// TestPods is the order of the decisions: which Pods are left alone, refused, or get a token of which lifetime.
func TestPods(t *testing.T) {
	pod := func(spec string, annotation ...string) string {
		metadata := `{}`
		if len(annotation) > 0 {
			metadata = fmt.Sprintf(`{"annotations":{%q:%q}}`, Expiration, annotation[0])
		}
		return `{"metadata":` + metadata + `,"spec":{` + spec + `,"containers":[{"name":"a"}]}}`
	}
	const (
		sa     = `"serviceAccountName":"sa"`
		parse  = "403 annotation projected-token-mount.resources.gardener.cloud/expiration-seconds: strconv.ParseInt: parsing "
		limits = "403 annotation projected-token-mount.resources.gardener.cloud/expiration-seconds: must be from 600 to 4294967296, got "
	)
	for name, c := range map[string]struct{ pod, want string }{
		"PTM-1, no ServiceAccount":                   {pod(`"serviceAccountName":""`), "unchanged"},
		"BH-PTM-2, PTM-1, default":                   {pod(`"serviceAccountName":"default"`), "unchanged"},
		"WB-23, no such ServiceAccount":              {pod(`"serviceAccountName":"missing"`), `404 serviceaccounts "missing" not found (ServiceAccount "n/missing")`},
		"PTM-2/a ServiceAccount that cannot be read": {pod(`"serviceAccountName":"broken"`), `403 failed to get ServiceAccount "n/broken": away`},
		"PTM-3, automounting":                        {pod(`"serviceAccountName":"true"`), "unchanged"},
		"PTM-3, automounting by default":             {pod(`"serviceAccountName":"unset"`), "unchanged"},
		"C23, PTM-4, the Pod declines":               {pod(sa + `,"automountServiceAccountToken":false`), "unchanged"},
		"PTM-4, the Pod asks":                        {pod(sa + `,"automountServiceAccountToken":true`), "43200"},
		"BH-PTM-3, PTM-4, the Pod says null":         {pod(sa + `,"automountServiceAccountToken":null`), "43200"},
		"PTM-5/PTM-10, has what this webhook adds":   {pod(sa + `,"volumes":[{"name":"kube-api-access-gardener"}]`), "unchanged"},
		"BH-PTM-4, has a token":                      {pod(sa + `,"volumes":[{"name":"kube-api-access-2138h"}]`), "unchanged"},
		"BH-PTM-6, PTM-6, a lifetime of its own":     {pod(sa, "8998"), "8998"},
		"PTM-6, no number":                           {pod(sa, "abc"), parse + `"abc": invalid syntax`},
		"PTM-6, nothing":                             {pod(sa, ""), parse + `"": invalid syntax`},
		"PTM-6/a large number":                       {pod(sa, "9223372036854775808"), parse + `"9223372036854775808": value out of range`},
		"WB-11/too short":                            {pod(sa, "599"), limits + "599"},
		"WB-11/the shortest":                         {pod(sa, "600"), "600"},
		"WB-11/the longest":                          {pod(sa, "4294967296"), "4294967296"},
		"WB-11/too long":                             {pod(sa, "4294967297"), limits + "4294967297"},
		"PTM-6/only the key counts":                  {strings.Replace(pod(sa, "8998"), Expiration, "expiration-seconds", 1), "43200"},
		"PTM-3/before PTM-6":                         {pod(`"serviceAccountName":"true"`, "abc"), "unchanged"},
	} {
		t.Run(name, func(t *testing.T) {
			response := admissiontest.Ask(properties.Decide, admissionv1.Create, []byte(c.pod))
			got := "unchanged"
			switch {
			case !response.Allowed:
				got = fmt.Sprint(response.Result.Code, " ", response.Result.Message)
			case response.Patch != nil:
				_, after, _ := strings.Cut(string(response.Patch), `"expirationSeconds":`)
				got, _, _ = strings.Cut(after, ",")
			}
			expect.Equal(t, got, c.want)
		})
	}
}

// TestMount is what a Pod gets (PTM-7, PTM-8, PTM-9, BH-PTM-5, BH-PTM-7).
func TestMount(t *testing.T) {
	const mount = `{"name":"kube-api-access-gardener","readOnly":true,"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}`
	const before = `{"metadata":{"name":"x"},"spec":{"serviceAccountName":"sa","securityContext":{},
		"initContainers":[{"name":"i","volumeMounts":[{"name":"v","mountPath":"/v"}]}],"containers":[{"name":"a"},{"name":"b","volumeMounts":[{"name":"v","mountPath":"` + mountPath + `"}]}],
		"ephemeralContainers":[{"name":"e"}],"volumes":[{"name":"v"}]}}`
	const after = `{"metadata":{"name":"x"},"spec":{"serviceAccountName":"sa","securityContext":{},
		"initContainers":[{"name":"i","volumeMounts":[{"name":"v","mountPath":"/v"},` + mount + `]}],"containers":[{"name":"a","volumeMounts":[` + mount + `]},{"name":"b","volumeMounts":[{"name":"v","mountPath":"` + mountPath + `"}]}],
		"ephemeralContainers":[{"name":"e"}],"volumes":[{"name":"v"},{"name":"kube-api-access-gardener","projected":{"defaultMode":420,"sources":[
			{"serviceAccountToken":{"expirationSeconds":1337,"path":"token"}},
			{"configMap":{"name":"kube-root-ca.crt","items":[{"key":"ca.crt","path":"ca.crt"}]}},
			{"downwardAPI":{"items":[{"path":"namespace","fieldRef":{"apiVersion":"v1","fieldPath":"metadata.namespace"}}]}}]}}]}}`
	got, admitted, err := admissiontest.Apply(Decide(target, 1337), []byte(before))
	expect.True(t, err == nil && admitted && jsonpatch.Equal(got, []byte(after)),
		"WB-10: %v, %v, got\n%s, want\n%s", admitted, err, got, after)
	pod := corev1.Pod{}
	must.Succeed(t, json.Unmarshal(got, &pod))
	volume, err := json.Marshal(pod.Spec.Volumes[len(pod.Spec.Volumes)-1])
	if want := `{"name":"kube-api-access-gardener","projected":{"sources":[{"serviceAccountToken":{"expirationSeconds":1337,"path":"token"}},` +
		`{"configMap":{"name":"kube-root-ca.crt","items":[{"key":"ca.crt","path":"ca.crt"}]}},` +
		`{"downwardAPI":{"items":[{"path":"namespace","fieldRef":{"apiVersion":"v1","fieldPath":"metadata.namespace"}}]}}],"defaultMode":420}}`; err != nil || string(volume) != want {
		t.Errorf("PTM-7/BH-PTM-5: the volume is %s, want %s, error %v", volume, want, err)
	}
	for _, container := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
		expect.Equal(t, container.VolumeMounts[len(container.VolumeMounts)-1].MountPath, "/var/run/secrets/kubernetes.io/serviceaccount", "BH-PTM-7: container %s has its last mount at", container.Name)
	}
	if token := pod.Spec.Volumes[len(pod.Spec.Volumes)-1].Projected.Sources[0].ServiceAccountToken; token.Audience != "" || pod.Spec.SecurityContext.FSGroup != nil {
		t.Errorf("PTM-8: audience %q, security context %v", token.Audience, pod.Spec.SecurityContext)
	}
	expect.Empty(t, pod.Spec.EphemeralContainers[0].VolumeMounts, "PTM-9: an ephemeral container has the mounts")
}

// TestNamespace: the ServiceAccount is looked up where the request says, as the object may leave that to it (CW-9).
func TestNamespace(t *testing.T) {
	for _, pod := range []string{`{"spec":{"serviceAccountName":"sa"}}`, `{"metadata":{"namespace":""},"spec":{"serviceAccountName":"sa"}}`} {
		response := admissiontest.Ask(properties.Decide, admissionv1.Create, []byte(pod))
		expect.True(t, response.Patch != nil, "CW-9: %s: %+v", pod, response.Result)
	}
}

// TestDocument compares the document with what the webhook does and with its registration (WHC-1, BH-PTM-1, BH-PTM-8, DEP-4, DEP-5, DEP-7).
func TestDocument(t *testing.T) {
	blocks := admissiontest.Shown(t, admissiontest.Document, Name, 1)
	admissiontest.Example(t, Decide(accounts{"n/web": ptr.To(false)}, 43200), blocks[0])
	admissiontest.Registered(t, Name, Registration(feature.Installation{}))
	if got := Registration(feature.Installation{Shoot: true, Prefix: "x-"}); got.ObjectSelector.MatchLabels != nil || got.ObjectSelector.MatchExpressions[1].Values[0] != "x-gardener-resource-manager" {
		t.Errorf("WHC-1/BH-PTM-8: got %v", got.ObjectSelector)
	}
}
