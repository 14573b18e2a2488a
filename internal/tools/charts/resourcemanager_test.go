package charts

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/test/env/harness"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// TestResourceManagerRights: with everything switched on and no right but those of the features and of ConfigMaps in ManagedResources,
// nothing is forbidden (MRC-9, OPB-23).
func TestResourceManagerRights(t *testing.T) {
	const name = "resource-manager"
	s := start(t)
	values := with(cases(t, name)["all-features"], "managedObjects", []any{map[string]any{"apiGroups": []any{""}, "resources": []any{"configmaps"}, "verbs": []any{"*"}}})
	for path, value := range map[string]any{"config.controllers.clusterID": "a", "config.controllers.managedResource.syncPeriod": "15s", "config.controllers.garbageCollector.syncPeriod": "15s", "config.controllers.garbageCollector.minimumAge": "0s", "config.controllers.tokenRequestor.class": ""} {
		values = with(values, path, value)
	}
	r := render(t, name, values)
	p := s.runs(t, name, r)

	object := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: applied, namespace: garden}\n"
	must.Succeed(t, s.client.Create(t.Context(), harness.Secret(namespace, "mr", map[string][]byte{"a.yaml": []byte(object)})))
	mr := harness.ManagedResource(namespace, "mr", "mr")
	class := "seed"
	mr.Spec.Class = &class
	must.Succeed(t, s.client.Create(t.Context(), mr))
	ask := harness.Secret(namespace, "access", nil)
	ask.Labels = map[string]string{"resources.gardener.cloud/purpose": "token-requestor"}
	ask.Annotations = map[string]string{"serviceaccount.resources.gardener.cloud/name": "somebody", "serviceaccount.resources.gardener.cloud/namespace": namespace}
	must.Succeed(t, s.client.Create(t.Context(), ask))
	garbage := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "garbage", Labels: map[string]string{"resources.gardener.cloud/garbage-collectable-reference": "true"}}}
	must.Succeed(t, s.client.Create(t.Context(), garbage))
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "some"}, Spec: corev1.ServiceSpec{Selector: map[string]string{"a": "b"}, Ports: []corev1.ServicePort{{Port: 80}}}}
	must.Succeed(t, s.client.Create(t.Context(), service))
	must.Succeed(t, s.client.Create(t.Context(), &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "some", Annotations: map[string]string{}},
		Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: "node.gardener.cloud/critical-components-not-ready", Effect: corev1.TaintEffectNoSchedule}}},
	}))
	must.Succeed(t, harness.Poll(t.Context(), patience, func() error {
		got := &resourcesv1alpha1.ManagedResource{}
		if err := s.client.Get(t.Context(), client.ObjectKeyFromObject(mr), got); err != nil {
			return err
		}
		return harness.Settled(got)
	}))
	must.Succeed(t, harness.Poll(t.Context(), patience, func() error {
		got := &corev1.Secret{}
		if err := s.client.Get(t.Context(), client.ObjectKeyFromObject(ask), got); err != nil {
			return err
		}
		if len(got.Data["token"]) == 0 {
			return fmt.Errorf("there is no token")
		}
		return nil
	}))
	must.Succeed(t, harness.Poll(t.Context(), patience, func() error {
		if err := s.client.Get(t.Context(), client.ObjectKeyFromObject(garbage), garbage); !apierrors.IsNotFound(err) {
			return fmt.Errorf("garbage is there: %v", err)
		}
		return nil
	}))
	p.reviews(t, r)
	s.granted(t, r,
		"create /events", "update coordination.k8s.io/leases", "patch resources.gardener.cloud/managedresources/status", "create /configmaps", "create /serviceaccounts/token", "create authentication.k8s.io/tokenreviews",
		"create networking.k8s.io/networkpolicies", "watch certificates.k8s.io/certificatesigningrequests", "watch machine.sapcloud.io/machines", "watch /pods", "list /secrets", "list batch/cronjobs",
		"patch /nodes", "watch autoscaling/horizontalpodautoscalers",
	)
	must.Succeed(t, s.client.Delete(t.Context(), mr))
	must.Succeed(t, harness.Poll(t.Context(), patience, func() error {
		if err := s.client.Get(t.Context(), client.ObjectKeyFromObject(mr), mr); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the ManagedResource is there: %v", err)
		}
		return nil
	}))
	s.granted(t, r, "delete /configmaps")
}

// reviews asks each registered webhook about an object of each of its kinds.
func (p *process) reviews(t *testing.T, r *rendered) {
	t.Helper()
	asks := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}}} // Whose certificate it is, other tests check.
	asked := 0
	for _, registration := range r.Objects {
		if !strings.HasSuffix(registration.GetKind(), "WebhookConfiguration") {
			continue
		}
		entries, _, _ := unstructured.NestedSlice(registration.Object, "webhooks")
		for _, entry := range entries {
			path, _, _ := unstructured.NestedString(entry.(map[string]any), "clientConfig", "service", "path")
			list, _, _ := unstructured.NestedSlice(entry.(map[string]any), "rules")
			for _, rule := range list {
				for _, resource := range at(rule.(map[string]any), "resources").([]any) {
					review := reviewOf(rule.(map[string]any), resource.(string))
					body, err := json.Marshal(review)
					must.Succeed(t, err)
					response, err := asks.Post(fmt.Sprintf("https://127.0.0.1:%d%s", p.server, path), "application/json", bytes.NewReader(body))
					must.Succeed(t, err)
					_ = response.Body.Close()
					expect.Equal(t, response.StatusCode, http.StatusOK, "%s: status", path)
					asked++
				}
			}
		}
	}
	expect.True(t, asked != 0, "nothing is registered")
}

func reviewOf(rule map[string]any, resource string) *admissionv1.AdmissionReview {
	kinds := map[string]string{
		"pods": "Pod", "secrets": "Secret", "deployments": "Deployment", "statefulsets": "StatefulSet", "horizontalpodautoscalers": "HorizontalPodAutoscaler", "verticalpodautoscalers": "VerticalPodAutoscaler",
		"endpointslices": "EndpointSlice", "customresourcedefinitions": "CustomResourceDefinition",
	}
	group, version := at(rule, "apiGroups").([]any)[0].(string), at(rule, "apiVersions").([]any)[0].(string)
	object := harness.Object(strings.TrimPrefix(group+"/"+version, "/"), kinds[resource], namespace, "some")
	object.Object["spec"] = map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"a": "b"}}, "template": map[string]any{}}
	if resource == "pods" {
		object.Object["spec"] = map[string]any{"serviceAccountName": "somebody", "containers": []any{}}
	}
	if resource == "customresourcedefinitions" {
		object.SetNamespace("")
		object.SetName("managedresources.resources.gardener.cloud")
	}
	raw := runtime.RawExtension{Object: object}
	request := &admissionv1.AdmissionRequest{
		UID: types.UID("u"), Name: object.GetName(), Namespace: object.GetNamespace(), Operation: admissionv1.Operation(at(rule, "operations").([]any)[0].(string)), Object: raw,
		Kind: metav1.GroupVersionKind{Group: group, Version: version, Kind: kinds[resource]}, Resource: metav1.GroupVersionResource{Group: group, Version: version, Resource: resource},
	}
	if request.Operation == admissionv1.Delete {
		request.Object, request.OldObject = runtime.RawExtension{}, raw
	}
	return &admissionv1.AdmissionReview{TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: request}
}
