package v1alpha1_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
)

// A ManagedResource and the Secret with its manifests. The objects stay in the target when the ManagedResource is deleted.
func ExampleManagedResource() {
	manifests := corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shoot--dev--one"},
		StringData: map[string]string{"objects.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n"},
	}
	web := resourcesv1alpha1.ManagedResource{
		TypeMeta:   metav1.TypeMeta{APIVersion: resourcesv1alpha1.SchemeGroupVersion.String(), Kind: "ManagedResource"},
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: manifests.Namespace},
		Spec: resourcesv1alpha1.ManagedResourceSpec{
			SecretRefs:   []corev1.LocalObjectReference{{Name: manifests.Name}},
			InjectLabels: map[string]string{"app": "web"},
			KeepObjects:  ptr.To(true),
		},
	}
	text, err := yaml.Marshal(web)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(string(text))
	// Output:
	// apiVersion: resources.gardener.cloud/v1alpha1
	// kind: ManagedResource
	// metadata:
	//   name: web
	//   namespace: shoot--dev--one
	// spec:
	//   injectLabels:
	//     app: web
	//   keepObjects: true
	//   secretRefs:
	//   - name: web
	// status: {}
}

// A client waits until the objects of the present manifests are applied and healthy.
func ExampleManagedResourceStatus() {
	ready := func(mr *resourcesv1alpha1.ManagedResource) (bool, string) {
		if mr.Status.ObservedGeneration != mr.Generation {
			return false, "the status is about a former generation"
		}
		wanted := map[resourcesv1alpha1.ConditionType]bool{resourcesv1alpha1.ResourcesApplied: true, resourcesv1alpha1.ResourcesHealthy: true}
		for _, condition := range mr.Status.Conditions {
			if wanted[condition.Type] && condition.Status != resourcesv1alpha1.ConditionTrue {
				return false, condition.Reason + ": " + condition.Message
			}
			delete(wanted, condition.Type)
		}
		return len(wanted) == 0, "all conditions are True"
	}
	mr := &resourcesv1alpha1.ManagedResource{
		ObjectMeta: metav1.ObjectMeta{Generation: 2},
		Status: resourcesv1alpha1.ManagedResourceStatus{
			ObservedGeneration: 2,
			Conditions: []resourcesv1alpha1.Condition{
				{Type: resourcesv1alpha1.ResourcesHealthy, Status: resourcesv1alpha1.ConditionFalse, Reason: "DeploymentUnhealthy", Message: "Deployment default/web: 0 of 1 Pods"},
				{Type: resourcesv1alpha1.ResourcesApplied, Status: resourcesv1alpha1.ConditionTrue, Reason: resourcesv1alpha1.ReasonApplySucceeded},
			},
		},
	}
	fmt.Println(ready(mr))
	// Output:
	// false DeploymentUnhealthy: Deployment default/web: 0 of 1 Pods
}

// A client registers the types before it reads or writes them.
func ExampleAddToScheme() {
	scheme := runtime.NewScheme()
	if err := resourcesv1alpha1.AddToScheme(scheme); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(scheme.Recognizes(resourcesv1alpha1.SchemeGroupVersion.WithKind("ManagedResource")))
	// Output: true
}
