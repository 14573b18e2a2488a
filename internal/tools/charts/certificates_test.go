package charts

import (
	"crypto/x509"
	"encoding/pem"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/engine"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// serving returns values with which the executable serves something with a certificate.
func serving(name string) map[string]any {
	if name == "resource-manager" {
		return with(nil, "config.webhooks.highAvailabilityConfig.enabled", true)
	}
	return nil
}

// TestNoCertificate: resource-manager without webhooks waits for no certificate (PRC-40).
func TestNoCertificate(t *testing.T) {
	const chart = "resource-manager"
	for name, c := range map[string]struct {
		values map[string]any
		wants  bool
	}{
		"PRC-40: the defaults":             {nil, false},
		"PRC-40: a webhook":                {serving(chart), true},
		"PRC-40: metrics with certificate": {with(nil, "config.debugging.authentication.enabled", true), true},
	} {
		r := render(t, chart, with(c.values, "tls.selfSigned", true))
		awaited := !ptr.Deref(deployment(t, r).Spec.Template.Spec.Volumes[1].Secret.Optional, false)
		if made := len(made(t, r)) == 2; awaited != c.wants || made != c.wants || strings.Contains(render(t, chart, c.values).Notes, "wait for the Secret") != c.wants {
			t.Errorf("%s: awaited: %t, made: %t", name, awaited, made)
		}
	}
}

// made are the Secrets with a CA and a certificate, by the end of their names.
func made(t *testing.T, r *rendered) map[string]*corev1.Secret {
	t.Helper()
	all := map[string]*corev1.Secret{}
	for _, object := range r.Objects {
		if object.GetKind() == "Secret" {
			secret := &corev1.Secret{}
			must.Succeed(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, secret))
			all[secret.Name[strings.LastIndex(secret.Name, "-")+1:]] = secret
		}
	}
	return all
}

// bundleOf is the CA bundle of all registered webhooks.
func bundleOf(t *testing.T, r *rendered) string {
	t.Helper()
	var bundles []string
	for _, object := range r.Objects {
		if !strings.HasSuffix(object.GetKind(), "WebhookConfiguration") {
			continue
		}
		configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{}
		must.Succeed(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, configuration))
		for i := range configuration.Webhooks {
			bundles = append(bundles, string(configuration.Webhooks[i].ClientConfig.CABundle))
		}
	}
	if bundles = slices.Compact(bundles); len(bundles) != 1 {
		t.Fatalf("there are %d bundles", len(bundles))
	}
	return bundles[0]
}

// verifies reports whether an API server that has the bundle accepts the certificate for the Service.
func verifies(t *testing.T, bundle string, secret *corev1.Secret, service string) bool {
	t.Helper()
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(bundle)) {
		t.Fatal("the bundle has no certificate")
	}
	block, _ := pem.Decode(secret.Data[corev1.TLSCertKey])
	certificate, err := x509.ParseCertificate(block.Bytes)
	must.Succeed(t, err)
	_, err = certificate.Verify(x509.VerifyOptions{Roots: roots, DNSName: service + "." + namespace + ".svc"})
	return err == nil
}

// TestSelfSigned: the release makes a CA and a certificate, which upgrades keep until they are due (CHT-1).
func TestSelfSigned(t *testing.T) {
	s := start(t)
	config, err := s.Admin()
	must.Succeed(t, err)
	s.spaces(t, nil, namespace)
	for _, name := range charts(t) {
		values := with(with(serving(name), "tls.selfSigned", true), "namePrefix", "self-signed-")
		upgraded := func() (*rendered, map[string]*corev1.Secret) {
			t.Helper()
			r, err := renderBy(engine.New(config), load(t, name), namespace, values)
			must.Succeed(t, err)
			return r, made(t, r)
		}
		first, before := upgraded()
		service := only[corev1.Service](t, first, "Service").Name
		if len(before) != 2 {
			t.Fatalf("CHT-1: %s: Secrets %v", name, before)
		}
		isRegistered := strings.Contains(first.Text, "WebhookConfiguration")
		bundle := func(r *rendered, secrets map[string]*corev1.Secret) string {
			if isRegistered {
				return bundleOf(t, r)
			}
			return string(secrets["ca"].Data[corev1.TLSCertKey])
		}
		expect.True(t, verifies(t, bundle(first, before), before["tls"], service),
			"CHT-1: %s: the CA does not verify the certificate", name)
		expect.Equal(t, deployment(t, first).Spec.Template.Spec.Volumes[1].Secret.SecretName, before["tls"].Name,
			"CHT-1: %s: Pods", name)
		for _, secret := range before {
			must.Succeed(t, s.client.Create(t.Context(), secret.DeepCopy()))
		}
		due := func(which string) {
			t.Helper()
			secret := before[which].DeepCopy()
			secret.Annotations["espalier-project/renew-after"] = "2001-01-01"
			must.Succeed(t, s.client.Update(t.Context(), secret))
		}
		data := func(secrets map[string]*corev1.Secret, which string) string {
			return string(secrets[which].Data[corev1.TLSCertKey])
		}
		if r, kept := upgraded(); data(kept, "ca") != data(before, "ca") || data(kept, "tls") != data(before, "tls") || bundle(r, kept) != bundle(first, before) {
			t.Errorf("CHT-1: %s: an upgrade changes the certificate", name)
		}
		due("tls")
		if r, renewed := upgraded(); data(renewed, "ca") != data(before, "ca") || data(renewed, "tls") == data(before, "tls") || !verifies(t, bundle(r, renewed), renewed["tls"], service) {
			t.Errorf("CHT-1: %s: a certificate that is due is not renewed", name)
		}
		due("ca")
		if r, renewed := upgraded(); data(renewed, "ca") == data(before, "ca") || !verifies(t, bundle(r, renewed), renewed["tls"], service) || isRegistered && !verifies(t, bundle(r, renewed), before["tls"], service) {
			t.Errorf("CHT-1: %s: a CA that is due is not renewed, or the old certificate is not accepted meanwhile", name)
		}
		for _, other := range []string{"certificate", "certManager.enabled"} {
			value := map[string]any{"certificate": "c", "certManager.enabled": true}[other]
			if _, err := tryRender(t, name, with(with(values, "tls.key", "k"), "tls."+other, value)); err == nil || !strings.Contains(err.Error(), "tls.selfSigned: set one") {
				t.Errorf("CHT-1: %s with tls.%s: %v", name, other, err)
			}
		}
	}
}

// TestRolesForPeople: roles that Kubernetes aggregates, and one for those who run kubectl espalier; by default there are none (CHT-2).
func TestRolesForPeople(t *testing.T) {
	const chart = "resource-manager"
	if text := render(t, chart, nil).Text; strings.Contains(text, "aggregate-to") || strings.Contains(text, ":client") {
		t.Error("CHT-2: there are roles for people by default")
	}
	r := render(t, chart, with(with(nil, "rbac.aggregate", []any{"view"}), "rbac.client", true))
	rules := map[string]any{}
	for _, object := range r.Objects {
		for _, name := range []string{"view", "edit", "client"} {
			if object.GetKind() == "ClusterRole" && strings.HasSuffix(object.GetName(), ":"+name) {
				rules[name] = object.Object["rules"]
				if name != "client" && object.GetLabels()["rbac.authorization.k8s.io/aggregate-to-"+name] != "true" {
					t.Errorf("CHT-2: %s is not aggregated", object.GetName())
				}
			}
		}
	}
	rule := func(group string, verbs []any, resources ...any) any {
		return map[string]any{"apiGroups": []any{group}, "resources": resources, "verbs": verbs}
	}
	read := []any{"get", "list"}
	want := map[string]any{
		"view":   []any{rule("resources.gardener.cloud", []any{"get", "list", "watch"}, "managedresources")},
		"client": []any{rule("resources.gardener.cloud", read, "managedresources"), rule("", read, "secrets", "events"), rule("", []any{"get"}, "configmaps")},
	}
	expect.DeepEqual(t, rules, want, "CHT-2")
}

// TestCertificate: of PEM the Secret is made, cert-manager is asked for it, or there is one; nothing is drawn.
func TestCertificate(t *testing.T) {
	for _, name := range charts(t) {
		serving := serving(name)
		secret := deployment(t, render(t, name, serving)).Spec.Template.Spec.Volumes[1].Secret.SecretName
		made := only[corev1.Secret](t, render(t, name, with(serving, "tls", map[string]any{"certificate": "c", "key": "k"})), "Secret")
		if made.Name != secret || string(made.Data["tls.crt"]) != "c" || string(made.Data["tls.key"]) != "k" || made.Type != corev1.SecretTypeTLS {
			t.Errorf("%s: got %v", name, made)
		}
		expect.ErrorContains(t, expect.ErrorOf(tryRender(t, name, with(serving, "tls.certificate", "c"))), "needs its key",
			"%s", name)
		asked := render(t, name, with(serving, "tls.certManager", map[string]any{"enabled": true, "issuerRef": map[string]any{"name": "i"}}))
		certificate := only[unstructured.Unstructured](t, asked, "Certificate")
		if at(certificate.Object, "spec.secretName") != secret || at(certificate.Object, "spec.issuerRef.name") != "i" {
			t.Errorf("%s: got %v", name, certificate.Object)
		}
		service := only[corev1.Service](t, asked, "Service").Name
		names := []any{service, service + "." + namespace, service + "." + namespace + ".svc", service + "." + namespace + ".svc.cluster.local"}
		if diff := cmp.Diff([]any{service, names}, []any{at(certificate.Object, "spec.commonName"), at(certificate.Object, "spec.dnsNames")}); diff != "" {
			t.Errorf("%s: DPL-82, ADM-34: %s", name, diff)
		}
	}
}
