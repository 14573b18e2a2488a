package harness

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1 "github.com/espalier-project/espalier/internal/foreign/core/v1"
	gardencorev1beta1 "github.com/espalier-project/espalier/internal/foreign/core/v1beta1"
	"github.com/espalier-project/espalier/internal/foreign/meta"
	operationsv1alpha1 "github.com/espalier-project/espalier/internal/foreign/operations/v1alpha1"
	securityv1alpha1 "github.com/espalier-project/espalier/internal/foreign/security/v1alpha1"
	seedmanagementv1alpha1 "github.com/espalier-project/espalier/internal/foreign/seedmanagement/v1alpha1"
)

// gardenKind is a kind of the garden's API.
type gardenKind struct {
	schema.GroupVersion
	plural, kind string
	namespaced   bool
	// slice is the Go type of what is read of it; nil if objects of the kind are only referred to.
	slice any
}

var gardenKinds = []gardenKind{
	{gardencorev1beta1.GroupVersion, "backupbuckets", "BackupBucket", false, gardencorev1beta1.BackupBucket{}},
	{gardencorev1beta1.GroupVersion, "backupentries", "BackupEntry", true, gardencorev1beta1.BackupEntry{}},
	{gardencorev1beta1.GroupVersion, "cloudprofiles", "CloudProfile", false, nil},
	{gardencorev1beta1.GroupVersion, "controllerinstallations", "ControllerInstallation", false, gardencorev1beta1.ControllerInstallation{}},
	{gardencorev1beta1.GroupVersion, "controllerregistrations", "ControllerRegistration", false, nil},
	{gardencorev1.GroupVersion, "controllerdeployments", "ControllerDeployment", false, gardencorev1.ControllerDeployment{}},
	{gardencorev1beta1.GroupVersion, "exposureclasses", "ExposureClass", false, nil},
	{gardencorev1beta1.GroupVersion, "internalsecrets", "InternalSecret", true, nil},
	{gardencorev1beta1.GroupVersion, "namespacedcloudprofiles", "NamespacedCloudProfile", true, nil},
	{gardencorev1beta1.GroupVersion, "projects", "Project", false, gardencorev1beta1.Project{}},
	{gardencorev1beta1.GroupVersion, "quotas", "Quota", true, nil},
	{gardencorev1beta1.GroupVersion, "secretbindings", "SecretBinding", true, gardencorev1beta1.SecretBinding{}},
	{gardencorev1beta1.GroupVersion, "seeds", "Seed", false, gardencorev1beta1.Seed{}},
	{gardencorev1beta1.GroupVersion, "shoots", "Shoot", true, gardencorev1beta1.Shoot{}},
	{gardencorev1beta1.GroupVersion, "shootstates", "ShootState", true, nil},
	{operationsv1alpha1.GroupVersion, "bastions", "Bastion", true, operationsv1alpha1.Bastion{}},
	{securityv1alpha1.GroupVersion, "credentialsbindings", "CredentialsBinding", true, securityv1alpha1.CredentialsBinding{}},
	{securityv1alpha1.GroupVersion, "workloadidentities", "WorkloadIdentity", true, nil},
	{seedmanagementv1alpha1.GroupVersion, "gardenlets", "Gardenlet", true, seedmanagementv1alpha1.Gardenlet{}},
	{seedmanagementv1alpha1.GroupVersion, "managedseeds", "ManagedSeed", true, seedmanagementv1alpha1.ManagedSeed{}},
}

// InstallGardenAPI installs the kinds of the garden's API as CRDs, made from the slices; fields that those do not know are kept.
func InstallGardenAPI(ctx context.Context, cl client.Client) error {
	for _, k := range gardenKinds {
		if err := cl.Create(ctx, k.crd()); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("CRD of %s: %w", k.kind, err)
		}
	}
	for _, k := range gardenKinds {
		if err := Poll(ctx, 60*time.Second, func() error {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(k.WithKind(k.kind + "List"))
			return cl.List(ctx, list, client.Limit(1))
		}); err != nil {
			return err
		}
	}
	return nil
}

func (k gardenKind) crd() *unstructured.Unstructured {
	scope := "Cluster"
	if k.namespaced {
		scope = "Namespaced"
	}
	root := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	if k.slice != nil {
		root["properties"] = properties(reflect.TypeOf(k.slice))
	}
	version := map[string]any{
		"name": k.Version, "served": true, "storage": true,
		"schema":       map[string]any{"openAPIV3Schema": root},
		"subresources": map[string]any{"status": map[string]any{}},
	}
	if k.kind == "Shoot" { // As gardener-apiserver has it.
		version["selectableFields"] = []any{map[string]any{"jsonPath": ".spec.seedName"}}
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": k.plural + "." + k.Group},
		"spec": map[string]any{
			"group": k.Group, "scope": scope,
			"names":    map[string]any{"plural": k.plural, "singular": strings.ToLower(k.kind), "kind": k.kind, "listKind": k.kind + "List"},
			"versions": []any{version},
		},
	}}
}

// properties is the schema of a struct's fields.
func properties(t reflect.Type) map[string]any {
	result := map[string]any{}
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case field.Type == reflect.TypeFor[metav1.TypeMeta](), field.Type == reflect.TypeFor[meta.Object]():
		case name == "" && field.Anonymous:
			for key, value := range properties(field.Type) {
				result[key] = value
			}
		case name != "":
			result[name] = schemaOf(field.Type)
		}
	}
	return result
}

func schemaOf(t reflect.Type) map[string]any {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == reflect.TypeFor[metav1.Time]():
		return map[string]any{"type": "string", "format": "date-time"}
	case t == reflect.TypeFor[runtime.RawExtension]():
		return map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	}
	switch t.Kind() {
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": schemaOf(t.Elem())}
	case reflect.Slice:
		return map[string]any{"type": "array", "items": schemaOf(t.Elem())}
	case reflect.Struct:
		return map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": properties(t)}
	}
	return map[string]any{"type": "string"}
}
