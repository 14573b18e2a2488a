package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/test/env/harness"
)

// resources are those of the kinds in manifests of scenarios.
var resources = map[string]schema.GroupVersionResource{
	"ConfigMap": {Version: "v1", Resource: "configmaps"}, "ServiceAccount": {Version: "v1", Resource: "serviceaccounts"},
	"Service": {Version: "v1", Resource: "services"}, "Deployment": {Group: "apps", Version: "v1", Resource: "deployments"},
	"Ingress": {Group: "networking.k8s.io", Version: "v1", Resource: "ingresses"},
}

// bareClient makes the writes that number ManagedResources cost, in source and target: their Secrets and themselves, the finalizer, the inventory
// before the first object, the objects, and the result. It returns the seconds that they take. A class that no executable has keeps the
// ManagedResources from being applied.
func (b *bench) bareClient(ctx context.Context, number int, manifests func(name string) string) (float64, error) {
	const namespace = "bare"
	for _, c := range []client.Client{b.SeedClient, b.ShootClient} {
		if err := c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
			return 0, err
		}
	}
	target, err := dynamic.NewForConfig(b.ShootREST)
	if err != nil {
		return 0, err
	}
	all := make([][]*unstructured.Unstructured, number)
	inventories := make([][]resourcesv1alpha1.ObjectReference, number)
	for i := range all {
		for _, document := range strings.Split(manifests(bareName(i)), "---\n")[1:] {
			object := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
				return 0, err
			}
			object.SetNamespace(namespace)
			object.SetLabels(map[string]string{resourcesv1alpha1.LabelManagedBy: "nobody"})
			object.SetAnnotations(map[string]string{
				resourcesv1alpha1.AnnotationOrigin: namespace + "/mr", resourcesv1alpha1.AnnotationDescription: resourcesv1alpha1.DescriptionValue,
			})
			all[i] = append(all[i], object)
			inventories[i] = append(inventories[i], resourcesv1alpha1.ObjectReference{Labels: object.GetLabels(), ObjectReference: corev1.ObjectReference{
				APIVersion: object.GetAPIVersion(), Kind: object.GetKind(), Namespace: namespace, Name: object.GetName(),
			}})
		}
	}
	limit := make(chan struct{}, writer)
	started := time.Now()
	err = parallel(number, writer, func(i int) error {
		name, class := bareName(i), "none"
		if err := b.create(ctx, namespace, name, manifests(name), &class); err != nil {
			return err
		}
		mr := harness.ManagedResource(namespace, name, name)
		if err := b.SeedClient.Patch(ctx, mr, harness.MergePatch(map[string]any{"metadata": map[string]any{"finalizers": []string{"example.org/bare"}}})); err != nil {
			return err
		}
		if err := b.SeedClient.Status().Patch(ctx, mr, harness.MergePatch(map[string]any{"status": map[string]any{"resources": inventories[i]}})); err != nil {
			return err
		}
		if err := parallel(len(all[i]), writer, func(k int) error {
			limit <- struct{}{}
			defer func() { <-limit }()
			_, err := target.Resource(resources[all[i][k].GetKind()]).Namespace(namespace).Create(ctx, all[i][k], metav1.CreateOptions{})
			return err
		}); err != nil {
			return err
		}
		return b.SeedClient.Status().Patch(ctx, mr, harness.MergePatch(map[string]any{"status": map[string]any{"observedGeneration": 1}}))
	})
	return time.Since(started).Seconds(), err
}

func bareName(i int) string { return fmt.Sprintf("mr-%d", i) }
