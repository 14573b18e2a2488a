package dropin

import (
	"fmt"
	"net/http"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// hooks asks under the addresses of webhook configurations as an API server does, and wants an answer from each (3.6, 4.2). Webhooks that change
// objects must let through what is sent here. namespace is that of the objects.
func (p *pod) hooks(ca *authority, file string, values map[string]string, namespace string) {
	t := p.t
	t.Helper()
	c := p.client(ca)
	asked := 0
	for _, object := range manifests(t, file, values) {
		configuration := &admissionregistrationv1.MutatingWebhookConfiguration{} // The other kind has the same fields here.
		must.Succeed(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, configuration))
		for _, hook := range configuration.Webhooks {
			url := ""
			switch service := hook.ClientConfig.Service; {
			case hook.ClientConfig.URL != nil:
				url = *hook.ClientConfig.URL
			case service != nil:
				url = fmt.Sprintf("https://%s.%s.svc:443%s", service.Name, service.Namespace, *service.Path)
			}
			for _, version := range hook.AdmissionReviewVersions {
				status, answer := p.ask(c, url, review(version, hook.Rules[0], namespace))
				response, _ := answer["response"].(map[string]any)
				allowed, isAnswer := response["allowed"].(bool)
				expect.True(t, status == http.StatusOK && answer["apiVersion"] == "admission.k8s.io/"+version && response["uid"] == "u-1" && isAnswer,
					"%s %s: status %d, answer %v", hook.Name, version, status, answer)
				if object.GetKind() == "MutatingWebhookConfiguration" && !allowed {
					t.Errorf("%s %s: refused: %v", hook.Name, version, response)
				}
				asked++
			}
		}
	}
	expect.True(t, asked != 0, "%s has no webhooks", file)
}

// absent wants no answer under paths of webhooks that the configuration leaves off (IDX-1).
func (p *pod) absent(ca *authority, base string, paths ...string) {
	p.t.Helper()
	for _, path := range paths {
		if status, _ := p.ask(p.client(ca), base+path, map[string]any{}); status != http.StatusNotFound {
			p.t.Errorf("IDX-1 %s: status %d", path, status)
		}
	}
}

var kinds = map[string]string{
	"pods": "Pod", "deployments": "Deployment", "verticalpodautoscalers": "VerticalPodAutoscaler", "customresourcedefinitions": "CustomResourceDefinition",
	"secrets": "Secret", "configmaps": "ConfigMap", "namespaces": "Namespace", "shoots": "Shoot", "etcds": "Etcd",
}

// review is an AdmissionReview for the first of the resources of a rule.
func review(version string, rule admissionregistrationv1.RuleWithOperations, namespace string) map[string]any {
	group, resource, resourceVersion := rule.APIGroups[0], rule.Resources[0], rule.APIVersions[len(rule.APIVersions)-1]
	kind := kinds[resource]
	if kind == "" {
		kind = strings.ToUpper(resource[:1]) + strings.TrimSuffix(resource[1:], "s")
	}
	apiVersion := resourceVersion
	if group != "" {
		apiVersion = group + "/" + resourceVersion
	}
	object := map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": "x", "namespace": namespace}}
	container := map[string]any{"name": "c", "image": "i"}
	switch kind {
	case "Pod":
		object["spec"] = map[string]any{"containers": []any{container}, "serviceAccountName": "default"}
	case "Deployment":
		labels := map[string]any{"a": "b"}
		object["spec"] = map[string]any{
			"selector": map[string]any{"matchLabels": labels},
			"template": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": map[string]any{"containers": []any{container}}},
		}
	}
	operation := rule.Operations[0]
	request := map[string]any{
		"uid": "u-1", "kind": map[string]any{"group": group, "version": resourceVersion, "kind": kind}, "resource": map[string]any{"group": group, "version": resourceVersion, "resource": resource},
		"name": "x", "namespace": namespace, "operation": operation, "userInfo": map[string]any{"username": "somebody"},
	}
	if operation != admissionregistrationv1.Delete {
		request["object"] = object
	}
	if operation != admissionregistrationv1.Create {
		request["oldObject"] = object
	}
	return map[string]any{"apiVersion": "admission.k8s.io/" + version, "kind": "AdmissionReview", "request": request}
}
