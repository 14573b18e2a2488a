package integration

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-project/espalier/internal/feature"
	"github.com/espalier-project/espalier/internal/webhook/tokeninvalidator"
	"github.com/espalier-project/espalier/test/env/harness"
)

// TestTokenInvalidator: static tokens of ServiceAccounts that do not mount any are invalid, also those that kube-controller-manager makes anew, unless
// a Pod uses them or they are skipped; then they are made anew (TI-1 to TI-14, BH-TI-2 to BH-TI-6, SW-10).
func TestTokenInvalidator(t *testing.T) {
	f := newFixture(t)
	on := map[string]any{"enabled": true}
	process := f.controllersAndWebhooks(map[string]any{"tokenInvalidator": on}, map[string]any{"tokenInvalidator": on})
	f.registers(process, tokeninvalidator.Registration(feature.Installation{}), tokeninvalidator.Path)

	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: f.ns, Name: "sa"}, AutomountServiceAccountToken: ptr.To(false)}
	f.must(f.shoot.Create(f.ctx, account))
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: f.ns, Name: "p"}, Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "c", Image: "c"}}, Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "used"}}}}}}
	pod.Spec.ServiceAccountName = "sa"
	f.must(f.shoot.Create(f.ctx, pod))
	for _, name := range []string{"free", "used"} {
		f.must(f.shoot.Create(f.ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.ns, Name: name, Annotations: map[string]string{corev1.ServiceAccountNameKey: "sa"}}, Type: corev1.SecretTypeServiceAccountToken}))
	}
	token := func(name string, want string) func() error {
		return func() error {
			data := f.readSecret(f.shoot, name).Data
			got := "valid"
			switch {
			case len(data["token"]) == 0:
				got = "none"
			case bytes.Equal(data["token"], []byte{0, 0, 0}):
				got = "invalid"
			}
			if got != want || len(data["ca.crt"]) == 0 || len(data["namespace"]) == 0 {
				return fmt.Errorf("the token of %s is %s, want %s; %d data: %s", name, got, want, len(data), lastLog(process))
			}
			return nil
		}
	}
	f.eventually(token("free", "invalid"))
	f.eventually(token("used", "valid"))
	f.stays(time.Second, token("used", "valid"))

	f.must(f.shoot.Patch(f.ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.ns, Name: "free"}}, harness.MergePatch(map[string]any{"data": map[string]any{"token": nil}})))
	f.eventually(token("free", "invalid"))

	f.must(f.shoot.Delete(f.ctx, pod, client.GracePeriodSeconds(0)))
	f.eventually(token("used", "invalid"))

	f.must(f.shoot.Patch(f.ctx, account, harness.MergePatch(map[string]any{"metadata": map[string]any{"labels": map[string]any{"token-invalidator.resources.gardener.cloud/skip": "true"}}})))
	f.eventually(token("free", "valid"))
	f.eventually(token("used", "valid"))
	f.eventually(func() error {
		if labels := f.readSecret(f.shoot, "free").Labels; labels["resources.gardener.cloud/purpose"] != "token-invalidator" || len(labels["token-invalidator.resources.gardener.cloud/consider"]) > 0 {
			return errors.New("TI-5, TI-6: labels are wrong")
		}
		return nil
	})
}
