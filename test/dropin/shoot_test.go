package dropin

import (
	"context"
	"encoding/base64"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
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
