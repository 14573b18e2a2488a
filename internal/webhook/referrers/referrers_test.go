package referrers

import (
	"encoding/json"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	gardencorev1beta1 "github.com/espalier-project/espalier/internal/externalapi/core/v1beta1"
	securityv1alpha1 "github.com/espalier-project/espalier/internal/externalapi/security/v1alpha1"
	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

func decoded[T any](t testing.TB, object *T, text string) *T {
	t.Helper()
	must.Succeed(t, json.Unmarshal([]byte(text), object))
	return object
}

func shoot(t testing.TB, name, server string) *gardencorev1beta1.Shoot {
	t.Helper()
	return decoded(t, &gardencorev1beta1.Shoot{}, `{"metadata":{"namespace":"n","name":"`+name+`","uid":"u","labels":{"a":"b"},"annotations":{"a":"b","authentication.gardener.cloud/issuer":"managed"}},
		"spec":{"seedName":"s","kubernetes":{"version":"1.34.0","kubeAPIServer":`+server+`}},"status":{"seedName":"s","advertisedAddresses":[{"name":"external","url":"https://x"}]}}`)
}

// TestShoots: a Shoot is found by each reference that webhooks ask for, and of it only their fields are kept (CV-12, SKR-2, WB-48).
func TestShoots(t *testing.T) {
	for name, c := range map[string]struct {
		server string
		kind   graph.Kind
	}{
		"CV-12/an audit policy":                   {`{"auditConfig":{"auditPolicy":{"configMapRef":{"name":"x"}}}}`, relation.ConfigMap},
		"CV-12/an authentication configuration":   {`{"structuredAuthentication":{"configMapName":"x"}}`, relation.ConfigMap},
		"CV-12/an authorization configuration":    {`{"structuredAuthorization":{"configMapName":"x"}}`, relation.ConfigMap},
		"SKR-2/a kubeconfig of an authorizer":     {`{"structuredAuthorization":{"kubeconfigs":[{"secretName":"y"},{"secretName":"x"}]}}`, relation.Secret},
		"SKR-2/a kubeconfig of a plugin":          {`{"admissionPlugins":[{},{"kubeconfigSecretName":"x"}]}`, relation.Secret},
		"WB-48/two references to the same object": {`{"structuredAuthentication":{"configMapName":"x"},"structuredAuthorization":{"configMapName":"x"}}`, relation.ConfigMap},
	} {
		var x Index
		whole := shoot(t, "web", c.server)
		x.Set(whole)
		want := &gardencorev1beta1.Shoot{}
		want.Namespace, want.Name, want.UID, want.Annotations = "n", "web", "u", map[string]string{"authentication.gardener.cloud/issuer": "managed"}
		want.Spec.Kubernetes, want.Status.AdvertisedAddresses = whole.Spec.Kubernetes, whole.Status.AdvertisedAddresses
		expect.DeepEqual(t, x.Shoots(c.kind, "n", "x"), []*gardencorev1beta1.Shoot{want}, "%s: -want, +got", name)
		other := relation.Secret + relation.ConfigMap - c.kind
		expect.True(t, len(x.Shoots(other, "n", "x")) == 0 && len(x.Shoots(c.kind, "m", "x")) == 0 && len(x.Shoots(c.kind, "n", "")) == 0,
			"%s: the Shoot is found by what it does not name", name)
		x.Set(shoot(t, "web", `{"auditConfig":{"auditPolicy":{}}}`))
		expect.Equal(t, len(x.shoots.values)+len(x.shoots.references), 0, "%s: a Shoot without references is kept", name)
	}
	var x Index
	x.Set(decoded(t, &gardencorev1beta1.Shoot{}, `{"metadata":{"namespace":"n","name":"plain"}}`))
	x.Set(&gardencorev1beta1.Seed{})
	expect.Equal(t, len(x.shoots.references)+len(x.types.references), 0, "WB-48: objects that refer to nothing are kept")
}

// TestProviderTypes: the types are those of the bindings that name an object (PSL-2).
func TestProviderTypes(t *testing.T) {
	binding := func(text string) runtime.Object { return decoded(t, &gardencorev1beta1.SecretBinding{}, text) }
	credentials := func(text string) runtime.Object { return decoded(t, &securityv1alpha1.CredentialsBinding{}, text) }
	var x Index
	for _, object := range []runtime.Object{
		binding(`{"metadata":{"namespace":"n","name":"a"},"secretRef":{"namespace":"n","name":"s"},"provider":{"type":"gcp,aws,"}}`),
		binding(`{"metadata":{"namespace":"n","name":"b"},"secretRef":{"namespace":"n","name":"s"}}`),
		credentials(`{"metadata":{"namespace":"m","name":"a"},"credentialsRef":{"apiVersion":"v1","kind":"Secret","namespace":"n","name":"s"},"provider":{"type":"aws"}}`),
		credentials(`{"metadata":{"namespace":"n","name":"a"},"credentialsRef":{"apiVersion":"core.gardener.cloud/v1beta1","kind":"InternalSecret","namespace":"n","name":"s"},"provider":{"type":"azure"}}`),
		credentials(`{"metadata":{"namespace":"n","name":"w"},"credentialsRef":{"apiVersion":"v1","kind":"WorkloadIdentity","namespace":"n","name":"s"},"provider":{"type":"x"}}`),
	} {
		x.Set(object)
	}
	expect.DeepEqual(t, x.ProviderTypes(relation.Secret, "n", "s"), []string{"aws", "gcp"}, "PSL-2: a Secret has the types")
	expect.DeepEqual(t, x.ProviderTypes(relation.InternalSecret, "n", "s"), []string{"azure"},
		"PSL-2: an InternalSecret has the types")
	x.Set(credentials(`{"metadata":{"namespace":"n","name":"a"},"credentialsRef":{"apiVersion":"v1","kind":"ConfigMap","namespace":"n","name":"s"},"provider":{"type":"azure"}}`))
	x.Remove(relation.SecretBinding, "n", "a")
	if got := x.ProviderTypes(relation.Secret, "n", "s"); !slices.Equal(got, []string{"aws"}) || len(x.ProviderTypes(relation.InternalSecret, "n", "s")) > 0 {
		t.Errorf("PSL-2: without a binding a Secret has the types %v", got)
	}
}

// TestProperty: after any sequence of events the index has what a search of all objects finds (WB-48).
func TestProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var x Index
		model := map[string]string{} // The ConfigMap of each Shoot.
		name := rapid.SampledFrom([]string{"a", "b", "c"})
		for range rapid.IntRange(1, 30).Draw(rt, "events") {
			switch of := name.Draw(rt, "shoot"); rapid.IntRange(0, 3).Draw(rt, "event") {
			case 0:
				delete(model, of)
				x.Remove(relation.Shoot, "n", of)
			case 1:
				there := rapid.SliceOfDistinct(name, rapid.ID).Draw(rt, "there")
				for known := range model {
					if !slices.Contains(there, known) {
						delete(model, known)
					}
				}
				x.Retain(relation.SecretBinding, func(_, _ string) bool { return false })
				x.Retain(relation.Shoot, func(_, name string) bool { return slices.Contains(there, name) })
			default:
				model[of] = rapid.SampledFrom([]string{"x", "y", ""}).Draw(rt, "ConfigMap")
				x.Set(shoot(t, of, `{"structuredAuthentication":{"configMapName":"`+model[of]+`"}}`))
			}
			for _, configMap := range []string{"x", "y"} {
				var want, got []string
				for of, names := range model {
					if names == configMap {
						want = append(want, of)
					}
				}
				for _, of := range x.Shoots(relation.ConfigMap, "n", configMap) {
					got = append(got, of.Name)
				}
				slices.Sort(want)
				slices.Sort(got)
				expect.DeepEqual(rt, got, want, "WB-48: %v refer to %s, the index", want, configMap)
			}
		}
	})
}
