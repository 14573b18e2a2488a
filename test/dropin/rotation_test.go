package dropin

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// DPL-82: authority and certificate of the webhooks are rotated while an API server asks them about Pods, and none of these is refused: the
// new authority is trusted beside the old one, the files of the certificate are exchanged under the running process, the old authority goes.
func TestRotation(t *testing.T) {
	s := get(t, seed)
	before, after := newAuthority(t), newAuthority(t)
	s.deploy(t, "seed.yaml", values(t, s, before, "gardener-resource-manager", "garden"))
	p := s.startPod(t, "garden", "gardener-resource-manager")
	p.ready()

	const namespace = "rotation"
	s.create(t, []*unstructured.Unstructured{
		{Object: object{"apiVersion": "v1", "kind": "Namespace", "metadata": object{"name": namespace}}},
		{Object: object{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": object{"name": "agent", "namespace": namespace}, "automountServiceAccountToken": false}},
	})
	pod := func(labels map[string]string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "p", Labels: labels}, Spec: corev1.PodSpec{ServiceAccountName: "agent", Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
	}
	// trust has the API server ask the webhook with some authorities, and waits until it does: there is another entry that refuses what it has not
	// heard of before.
	trust := func(authorities ...*authority) {
		var bundle []byte
		for _, a := range authorities {
			bundle = append(bundle, a.pem...)
		}
		version := fmt.Sprint(len(bundle)) + "-" + fmt.Sprint(authorities[0] == after)
		entry := func(name, url string, labels object) object {
			return object{
				"name": name + ".example.org", "clientConfig": object{"url": url, "caBundle": base64.StdEncoding.EncodeToString(bundle)}, "admissionReviewVersions": []any{"v1"}, "sideEffects": "None",
				"failurePolicy": "Fail", "objectSelector": object{"matchLabels": labels}, "namespaceSelector": object{"matchLabels": object{"kubernetes.io/metadata.name": namespace}},
				"rules": []any{object{"apiGroups": []any{""}, "apiVersions": []any{"v1"}, "resources": []any{"pods"}, "operations": []any{"CREATE"}}},
			}
		}
		registration := &unstructured.Unstructured{Object: object{
			"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration", "metadata": object{"name": namespace}, "webhooks": []any{
				entry("mounts", fmt.Sprintf("https://127.0.0.1:%d/webhooks/mount-projected-service-account-token", p.ports[10250]), object{"asked": "true"}), entry("refuses", "https://127.0.0.1:1/", object{"seen": version}),
			},
		}}
		must.Succeed(t, s.client.Patch(t.Context(), registration, client.Apply, client.FieldOwner("test"), client.ForceOwnership)) //nolint:staticcheck // The typed form wants applied configurations.
		eventually(t, patience, func() error {
			if err := s.client.Create(t.Context(), pod(map[string]string{"seen": version}), client.DryRunAll); err == nil || !strings.Contains(err.Error(), "refuses.example.org") {
				return fmt.Errorf("the API server has not seen the configuration: %v", err)
			}
			return nil
		})
	}
	trust(before)
	t.Cleanup(func() {
		registration := &unstructured.Unstructured{Object: object{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration", "metadata": object{"name": namespace}}}
		must.Succeed(t, s.client.Delete(context.Background(), registration))
	})

	both := x509.NewCertPool()
	both.AddCert(before.certificate)
	both.AddCert(after.certificate)
	// handshake returns who signed the certificate that is served.
	handshake := func() (*x509.Certificate, error) {
		connection, err := tls.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", p.ports[10250]), &tls.Config{RootCAs: both, MinVersion: tls.VersionTLS12})
		if err != nil {
			return nil, err
		}
		defer func() { _ = connection.Close() }()
		return connection.ConnectionState().VerifiedChains[0][1], nil
	}

	ctx, cancel := context.WithCancel(t.Context())
	var lock sync.Mutex
	var failures []error
	done := map[string]int{}
	var asking sync.WaitGroup
	keep := func(what string, ask func() error) {
		asking.Go(func() {
			for ctx.Err() == nil {
				err := ask()
				lock.Lock()
				if err != nil {
					failures = append(failures, fmt.Errorf("%s: %w", what, err))
				}
				done[what]++
				lock.Unlock()
			}
		})
	}
	keep("reviews", func() error {
		asked := pod(map[string]string{"asked": "true"})
		if err := s.client.Create(context.Background(), asked, client.DryRunAll); err != nil {
			return err
		}
		return expect.Holds(slices.ContainsFunc(asked.Spec.Volumes, func(v corev1.Volume) bool { return v.Projected != nil }),
			"nobody has mounted a token")
	})
	keep("handshakes", func() error { _, err := handshake(); return err })
	// some waits until there were some more of each.
	some := func() {
		lock.Lock()
		already := map[string]int{"reviews": done["reviews"], "handshakes": done["handshakes"]}
		lock.Unlock()
		eventually(t, patience, func() error {
			lock.Lock()
			defer lock.Unlock()
			for what, n := range already {
				if done[what] < n+20 {
					return fmt.Errorf("%d %s, of them %d since the last step", done[what], what, done[what]-n)
				}
			}
			return nil
		})
	}

	some()
	trust(before, after)
	some()
	certificate, key := after.serving(t, "gardener-resource-manager", "garden")
	files := map[string][]byte{}
	for name, encoded := range map[string]string{"tls.crt": certificate, "tls.key": key} {
		content, err := base64.StdEncoding.DecodeString(encoded)
		must.Succeed(t, err)
		files[name] = content
	}
	must.Succeed(t, p.files.Write("/etc/gardener-resource-manager-tls", files))
	eventually(t, patience, func() error {
		if signer, err := handshake(); err != nil || !signer.Equal(after.certificate) {
			return fmt.Errorf("the old certificate is served (%v)", err)
		}
		return nil
	})
	some()
	trust(after)
	some()
	cancel()
	asking.Wait()
	expect.Empty(t, failures, "DPL-82: requests that failed, of %d", done)
	p.stop()
}
