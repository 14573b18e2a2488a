package kubectl

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"maps"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// bundle is a CA bundle that ends at a time, as objects have it.
func bundle(t *testing.T, end time.Time) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must.Succeed(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: end.Add(-2 * time.Hour), NotAfter: end,
		DNSNames: []string{"gardener-resource-manager.n.svc"}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	must.Succeed(t, err)
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// TestCheck: CLI-58: check names each thing that an installation lacks, and tells what it could not ask.
func TestCheck(t *testing.T) {
	const (
		definition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/managedresources.resources.gardener.cloud"
		review     = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
		lease      = "/apis/coordination.k8s.io/v1/namespaces/n/leases/gardener-resource-manager"
		validating = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
		mutating   = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
		service    = "/api/v1/namespaces/n/services/gardener-resource-manager"
		slicesOf   = "/apis/discovery.k8s.io/v1/namespaces/n/endpointslices"
	)
	at := time.Now()
	leaseAt := func(renewed time.Time) string {
		return fmt.Sprintf(`{"kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "metadata": {"name": "x"}, "spec": {"holderIdentity": "pod-1", "leaseDurationSeconds": 60, "renewTime": %q}}`, renewed.UTC().Format("2006-01-02T15:04:05.000000Z"))
	}
	webhooks := func(ca string) string {
		return `{"kind": "ValidatingWebhookConfigurationList", "apiVersion": "admissionregistration.k8s.io/v1", "metadata": {}, "items": [
			{"kind": "ValidatingWebhookConfiguration", "apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": "another"}, "webhooks": [{"name": "w", "clientConfig": {}}]},
			{"kind": "ValidatingWebhookConfiguration", "apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": "gardener-resource-manager"},
			"webhooks": [{"name": "w", "clientConfig": {"caBundle": "` + ca + `", "service": {"namespace": "n", "name": "gardener-resource-manager"}}}]}]}`
	}
	endpoints := func(ready bool) string {
		return fmt.Sprintf(`{"kind": "EndpointSliceList", "apiVersion": "discovery.k8s.io/v1", "metadata": {}, "items": [{"kind": "EndpointSlice", "apiVersion": "discovery.k8s.io/v1",
			"metadata": {"name": "s"}, "addressType": "IPv4", "endpoints": [{"addresses": ["10.0.0.1"], "conditions": {"ready": %t}}]}]}`, ready)
	}
	fine := map[string]string{
		"/version": `{"major": "1", "minor": "37", "gitVersion": "v1.37.2"}`,
		definition: `{"kind": "CustomResourceDefinition", "apiVersion": "apiextensions.k8s.io/v1", "metadata": {"name": "x"}, "spec": {"versions": [{"name": "v1alpha1", "served": true, "subresources": {"status": {}}}]}}`,
		review:     `{"kind": "SubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "status": {"allowed": true}}`,
		lease:      leaseAt(at), validating: webhooks(bundle(t, at.Add(time.Hour))),
		mutating: `{"kind": "MutatingWebhookConfigurationList", "apiVersion": "admissionregistration.k8s.io/v1", "metadata": {}, "items": []}`,
		service:  `{"kind": "Service", "apiVersion": "v1", "metadata": {"name": "x"}}`, slicesOf: endpoints(true),
	}
	const gone = "gone"
	for name, tc := range map[string]struct {
		path, object string
		code         int
		want         string
	}{
		"all is well":        {"", "", 0, "ok      Lease n/gardener-resource-manager: pod-1 holds it\n"},
		"webhooks are well":  {"", "", 0, "ok      ValidatingWebhookConfiguration gardener-resource-manager: 1 webhooks, with valid CA bundles and ready endpoints\nok      MutatingWebhookConfiguration: none is registered\n"},
		"an old API server":  {"/version", `{"major": "1", "minor": "29+", "gitVersion": "v1.29.1"}`, 1, "wrong   API server of the source: version v1.29.1 is older than 1.30\n"},
		"no definition":      {definition, gone, 1, "wrong   CustomResourceDefinition managedresources.resources.gardener.cloud: the source does not have it\n"},
		"no version":         {definition, strings.Replace(fine[definition], "v1alpha1", "v1", 1), 1, "version v1alpha1 is not served\n"},
		"no status":          {definition, strings.Replace(fine[definition], `"status"`, `"scale"`, 1), 1, "version v1alpha1 has no subresource status\n"},
		"definition unknown": {definition, "", 2, "unknown CustomResourceDefinition managedresources.resources.gardener.cloud: it cannot be read: forbidden\n"},
		"no rights":          {review, strings.Replace(fine[review], "true", "false", 1), 1, "it lacks the rights to list managedresources, watch managedresources, patch managedresources, patch managedresources/status, get secrets in"},
		"rights unknown":     {review, "", 2, "unknown ServiceAccount n/gardener-resource-manager: its rights cannot be asked: "},
		"no Lease":           {lease, gone, 1, "wrong   Lease n/gardener-resource-manager: it does not exist"},
		"an old Lease":       {lease, leaseAt(at.Add(-time.Hour)), 1, "pod-1 renewed it 60m ago, and it lasts 1m0s\n"},
		"an expired bundle":  {validating, webhooks(bundle(t, at.Add(-time.Minute))), 1, "webhook w: its CA bundle is valid from "},
		"no bundle":          {validating, webhooks(""), 1, "webhook w: it has no CA bundle"},
		"no Service":         {service, gone, 1, "Service n/gardener-resource-manager does not exist\n"},
		"no ready endpoint":  {slicesOf, endpoints(false), 1, "Service n/gardener-resource-manager has no ready endpoint\n"},
		"endpoints unknown":  {slicesOf, "", 2, "unknown ValidatingWebhookConfiguration gardener-resource-manager: the endpoints of Service n/gardener-resource-manager cannot be read: "},
		"webhooks unknown":   {mutating, "", 2, "unknown MutatingWebhookConfiguration: they cannot be listed: "},
	} {
		t.Run("CLI-58/"+name, func(t *testing.T) {
			objects := maps.Clone(fine)
			if objects[tc.path] = tc.object; tc.object == gone || tc.path == "" {
				delete(objects, tc.path)
			}
			code, out, _ := answering(t, objects, "check", "-n", "n")
			expect.True(t, code == tc.code && strings.Contains(out, tc.want), "exit code %d:\n%s", code, out)
		})
	}
	const secret = "/api/v1/namespaces/n/secrets/tls"
	ofCertificate := func(certificate string) string {
		return fmt.Sprintf(`{"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "tls", "namespace": "n"}, "data": {"tls.crt": %q}}`, certificate)
	}
	own := bundle(t, at.Add(time.Hour))
	for certificate, want := range map[string]struct {
		code int
		text string
	}{
		ofCertificate(own): {0, "1 webhooks, with valid CA bundles"}, "": {2, "Secret n/tls cannot be read: forbidden"}, ofCertificate(""): {1, "it has no tls.crt"},
		ofCertificate(bundle(t, at.Add(time.Hour))): {1, "webhook w does not trust the certificate of Secret n/tls: x509: certificate signed by unknown authority"},
	} {
		objects := maps.Clone(fine)
		objects[secret], objects[validating] = certificate, webhooks(own)
		if code, out, _ := answering(t, objects, "check", "-n", "n", "--certificate", "tls"); code != want.code || !strings.Contains(out, want.text) {
			t.Errorf("CLI-58: exit code %d, no %q in\n%s", code, want.text, out)
		}
	}
	code, out, _ := answering(t, fine, "check", "-n", "n", "-o", "jsonpath={[*].result}")
	expect.True(t, code == 0 && out == "ok ok ok ok ok ok", "CLI-58: exit code %d: %s", code, out)
}
