// Package externalapi_test decodes objects as landscapes of several ages have them into the slices, with and without the cut.
package externalapi_test

import (
	"os"
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/espalier-project/espalier/internal/externalapi/boundedyaml/yamltest"
	gardencorev1beta1 "github.com/espalier-project/espalier/internal/externalapi/core/v1beta1"
	extensionsv1alpha1 "github.com/espalier-project/espalier/internal/externalapi/extensions/v1alpha1"
	gardenletv1alpha1 "github.com/espalier-project/espalier/internal/externalapi/gardenlet/v1alpha1"
	"github.com/espalier-project/espalier/internal/externalapi/jsonprune"
	"github.com/espalier-project/espalier/internal/externalapi/partialmeta"
	seedmanagementv1alpha1 "github.com/espalier-project/espalier/internal/externalapi/seedmanagement/v1alpha1"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// decode reads a file whole and cut down, which must come to the same.
func decode[T any](t *testing.T, file string) *T {
	t.Helper()
	text, err := os.ReadFile("testdata/" + file)
	must.Succeed(t, err)
	raw, err := yaml.YAMLToJSON(text)
	must.Succeed(t, err)
	whole, cut := new(T), new(T)
	must.Succeed(t, kjson.UnmarshalCaseSensitivePreserveInts(raw, whole), "%s", file)
	small := jsonprune.ShapeOf(reflect.TypeFor[T]()).Cut(nil, raw)
	must.Succeed(t, kjson.UnmarshalCaseSensitivePreserveInts(small, cut), "%s, cut", file)
	expect.DeepEqual(t, cut, whole, "%s: the cut loses something", file)
	return whole
}

func TestOldShoot(t *testing.T) {
	s := decode[gardencorev1beta1.Shoot](t, "shoot-old.yaml")
	got := []any{s.Namespace, s.Name, string(s.UID), *s.Spec.SeedName, *s.Status.SeedName, *s.Spec.CloudProfileName, s.Spec.CloudProfile == nil, *s.Spec.SecretBindingName,
		*s.Spec.DNS.Providers[0].SecretName, s.Spec.Kubernetes.KubeAPIServer.AuditConfig.AuditPolicy.ConfigMapRef.Name, s.Status.LastOperation.Type}
	want := []any{"garden-dev", "crazy-botany", "2b8e1f5e-0000-4000-8000-000000000001", "aws-eu1", "aws-eu1", "aws", true, "my-aws", "route53", "auditpolicy", "Reconcile"}
	expect.DeepEqual(t, got, want)
}

func TestNewShoot(t *testing.T) {
	s := decode[gardencorev1beta1.Shoot](t, "shoot-new.yaml")
	k := s.Spec.Kubernetes.KubeAPIServer
	got := []any{*s.Spec.CloudProfile, *s.Spec.CredentialsBindingName, *s.Spec.ExposureClassName, *s.Spec.DNS.Providers[0].CredentialsRef, s.Spec.Resources[0].ResourceRef,
		k.StructuredAuthentication.ConfigMapName, k.StructuredAuthorization.ConfigMapName, k.StructuredAuthorization.Kubeconfigs[0].SecretName, *s.Status.LastOperation, s.Status.SeedName == nil}
	want := []any{gardencorev1beta1.CloudProfileReference{Kind: "NamespacedCloudProfile", Name: "custom"}, "local", "internet",
		partialmeta.Reference{APIVersion: "security.gardener.cloud/v1alpha1", Kind: "WorkloadIdentity", Name: "dns"}, partialmeta.Reference{APIVersion: "v1", Kind: "ConfigMap", Name: "cm"},
		"authn", "authz", "authz-kubeconfig", gardencorev1beta1.LastOperation{Type: "Restore", State: "Processing"}, true}
	expect.DeepEqual(t, got, want)
}

func TestOldSeed(t *testing.T) {
	s := decode[gardencorev1beta1.Seed](t, "seed-old.yaml")
	got := []any{*s.Spec.SecretRef, *s.Spec.Backup.SecretRef, *s.Spec.DNS.Provider.SecretRef, s.Status.ClientCertificateExpirationTimestamp.Year()}
	want := []any{partialmeta.SecretReference{Namespace: "garden", Name: "seed-kubeconfig"}, partialmeta.SecretReference{Namespace: "garden", Name: "backup"}, partialmeta.SecretReference{Namespace: "garden", Name: "dns"}, 2021}
	expect.DeepEqual(t, got, want)
}

func TestGardenlet(t *testing.T) {
	g := decode[seedmanagementv1alpha1.Gardenlet](t, "gardenlet.yaml")
	config, err := gardenletv1alpha1.Decode(g.Spec.Config)
	must.Succeed(t, err)
	got := []any{g.Spec.Deployment.Helm.OCIRepository.PullSecretRef.Name, g.Spec.Deployment.Helm.OCIRepository.CABundleSecretRef.Name, config.SeedConfig.Spec.Backup.CredentialsRef.Name,
		config.SeedConfig.Spec.DNS.Internal.CredentialsRef.Name, config.SeedConfig.Spec.Resources[0].ResourceRef.Name}
	expect.DeepEqual(t, got, []any{"pull", "ca", "backup-local", "internal", "resource"})
	for name, raw := range map[string]*runtime.RawExtension{
		"none": nil, "empty": {}, "no JSON": {Raw: []byte("{")}, "another kind": {Raw: []byte(`{"apiVersion":"v1","kind":"Secret"}`)}, "no kind": {Raw: []byte(`{}`)},
	} {
		expect.Error(t, expect.ErrorOf(gardenletv1alpha1.Decode(raw)), "%s is taken for a configuration", name)
	}
}

// TestHostileOperatingSystemConfigs: the owner of a shoot may write the Secrets of its nodes (T3-6).
func TestHostileOperatingSystemConfigs(t *testing.T) {
	yamltest.RefusesCheaply(t, "T3-6/9.4", []int{20 << 10, 80 << 10, 1 << 20}, func(content []byte) error {
		_, err := extensionsv1alpha1.DecodeOperatingSystemConfig(content)
		return err
	})
}
