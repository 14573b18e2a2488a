package dropin

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-project/espalier/test/env/harness"
	"github.com/espalier-project/espalier/test/must"
)

const (
	// inTarget is who resource-manager is in a shoot once it has given itself a token.
	inTarget  = "system:serviceaccount:kube-system:gardener-resource-manager"
	accessKey = "shoot-access-gardener-resource-manager"
	renewKey  = "serviceaccount.resources.gardener.cloud/token-renew-timestamp"
	clusterID = "seed-identity"
)

// shootValues fill in the manifests of a hosted shoot.
func shootValues(t *testing.T, source, target *audited, ca *authority, namespace string) map[string]string {
	t.Helper()
	filled := values(t, source, ca, "gardener-resource-manager", namespace)
	filled["clusterID"], filled["alwaysUpdate"] = clusterID, "true"
	filled["target"], filled["targetCA"] = target.URL(), base64.StdEncoding.EncodeToString(target.ca(t))
	return filled
}

// bootstrapSecret has the kubeconfig of the bootstrap (DPL-3).
func bootstrapSecret(t *testing.T, target *audited, namespace string) *corev1.Secret {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	must.Succeed(t, target.WriteKubeconfig(file, "gardener.cloud:system:gardener-resource-manager", "system:masters"))
	content, err := os.ReadFile(file)
	must.Succeed(t, err)
	secret := harness.Secret(namespace, accessKey+"-bootstrap", map[string][]byte{"kubeconfig": content})
	secret.Labels = map[string]string{garbage: "true"}
	return secret
}

// bootstrapping makes a Deployment one that uses the kubeconfig of the bootstrap, as gardenlet does (DPL-77, DPL-3).
func bootstrapping(t *testing.T, source, target *audited, namespace string) {
	t.Helper()
	secret := bootstrapSecret(t, target, namespace)
	must.Succeed(t, source.client.Create(t.Context(), secret))
	changeVolume(t, source, namespace, func(volume *corev1.Volume) {
		volume.VolumeSource = corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: secret.Name}}
	})
}

// changeVolume changes where a Deployment has the kubeconfig of its target from.
func changeVolume(t *testing.T, source *audited, namespace string, change func(*corev1.Volume)) *corev1.VolumeSource {
	t.Helper()
	deployment := &appsv1.Deployment{}
	must.Succeed(t, source.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "gardener-resource-manager"}, deployment))
	var before *corev1.VolumeSource
	volumes := deployment.Spec.Template.Spec.Volumes
	for i := range volumes {
		if volumes[i].Name == "kubeconfig" {
			before = volumes[i].VolumeSource.DeepCopy()
			change(&volumes[i])
		}
	}
	must.Succeed(t, source.client.Update(t.Context(), deployment))
	return before
}

// ownRights is the ManagedResource by which resource-manager gets its rights in the shoot: gardenlet writes it, and it applies it itself (3.5).
func ownRights() []any {
	return []any{map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
		"metadata": map[string]any{"name": "gardener.cloud:target:resource-manager", "annotations": map[string]any{"resources.gardener.cloud/keep-object": "true"}},
		"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
		"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": "gardener-resource-manager", "namespace": "kube-system"}},
	}}
}

// renewal returns when the token of a Secret is to be renewed, as gardenlet reads it (DPL-2).
func (a *audited) renewal(ctx context.Context, namespace, name string) (time.Time, error) {
	secret := &corev1.Secret{}
	if err := a.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, secret); err != nil {
		return time.Time{}, err
	}
	return time.Parse(time.RFC3339, secret.Annotations[renewKey])
}

// CT-38, CT-40, DPL-1 … DPL-4, DPL-77, DPL-83, HLP-9, DPL-101, DPL-103, DPL-104, DPL-105, DPL-107, DPL-108, DPL-109: resource-manager under the
// manifests of a hosted shoot, from the bootstrap on.
func TestShoot(t *testing.T) {
	source, target := get(t, seed), get(t, shoot)
	const namespace = "shoot--dev--web"
	refusedBefore := len(target.requests(t, inTarget, forbidden)) // When the API server of another test came back.
	ca := newAuthority(t)
	filled := shootValues(t, source, target, ca, namespace)
	source.deploy(t, "shoot.yaml", filled)
	written := newRelease(t, namespace, "shoot-core-gardener-resource-manager", ownRights()...)
	must.Succeed(t, source.client.Create(t.Context(), written.secret))
	must.Succeed(t, source.client.Create(t.Context(), written.managedResource()))

	token := changeVolume(t, source, namespace, func(*corev1.Volume) {})
	bootstrapping(t, source, target, namespace)
	began := time.Now()
	first := source.startPod(t, namespace, "gardener-resource-manager")
	first.ready()
	leader := source.leads(t, namespace, "")
	eventually(t, bootstrapLimit, func() error {
		at, err := source.renewal(t.Context(), namespace, accessKey)
		if err != nil {
			return fmt.Errorf("CT-40/DPL-2: no time of renewal: %w", err)
		}
		if at.Before(time.Now()) {
			err = fmt.Errorf("DPL-3: the token is to be renewed at %s", at)
		}
		return err
	})
	source.settled(t, namespace, written.name)
	// OPB-24: until then it may do everything, with a certificate.
	if took := time.Since(began); took > bootstrapLimit/4 {
		t.Errorf("DPL-4, OPB-24: the bootstrap took %s", took)
	}

	account := &corev1.ServiceAccount{}
	if err := target.client.Get(t.Context(), client.ObjectKey{Namespace: "kube-system", Name: "gardener-resource-manager"}, account); err != nil {
		t.Fatalf("DPL-83: the ServiceAccount that the access Secret names: %v", err)
	}
	if ptr.Deref(account.AutomountServiceAccountToken, true) {
		t.Error("TR-13: its token is mounted")
	}
	binding := &rbacv1.ClusterRoleBinding{}
	must.Succeed(t, target.client.Get(t.Context(), client.ObjectKey{Name: "gardener.cloud:target:resource-manager"}, binding))
	if got, want := binding.Annotations["resources.gardener.cloud/origin"], clusterID+":"+namespace+"/"+written.name; got != want {
		t.Errorf("MRC-8: origin %q, want %q", got, want)
	}

	// gardenlet deploys it again, with the token.
	changeVolume(t, source, namespace, func(volume *corev1.Volume) { volume.VolumeSource = *token })
	second := source.startPod(t, namespace, "gardener-resource-manager")
	second.ready()
	first.stop()
	source.leads(t, namespace, leader)
	second.hooks(ca, "shoot-webhooks.yaml", filled, "kube-system")
	base := "https://gardener-resource-manager." + namespace + ":443"
	second.absent(ca, base, "/webhooks/seccomp-profile", "/webhooks/validate-crd-deletion", "/webhooks/pod-topology-spread-constraints")
	status, answer := second.ask(second.client(ca), "https://gardener-resource-manager/webhooks/auth/nodeagent", map[string]any{
		"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
		"spec": map[string]any{"user": "somebody", "resourceAttributes": map[string]any{"verb": "get", "resource": "nodes", "name": "n"}},
	})
	if verdict, _ := answer["status"].(map[string]any); status != 200 || verdict["allowed"] != false || verdict["evaluationError"] != nil {
		t.Errorf("NAA-8: status %d, answer %v", status, answer)
	}

	// New objects are applied with the token.
	later := newRelease(t, namespace, "shoot-core-later", map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "later", "namespace": "kube-system"}})
	must.Succeed(t, source.client.Create(t.Context(), later.secret))
	must.Succeed(t, source.client.Create(t.Context(), later.managedResource()))
	source.settled(t, namespace, later.name)
	if got := target.requests(t, inTarget, func(r *request) bool { return r.Verb == "create" && r.Object.Name == "later" }); len(got) != 1 {
		t.Errorf("DPL-77/HLP-9: with the token of the generic kubeconfig it sent %v", got)
	}
	second.stop()
	if refused := source.requests(t, "system:serviceaccount:"+namespace+":gardener-resource-manager", forbidden); len(refused) > 0 {
		t.Errorf("CT-38: it was refused in the source: %v", refused)
	}
	if refused := target.requests(t, inTarget, forbidden)[refusedBefore:]; len(refused) > 0 {
		t.Errorf("CT-38: it was refused in the target: %v", refused)
	}
}
