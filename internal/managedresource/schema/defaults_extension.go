package schema

import "strings"

var (
	webhook = fields{
		"failurePolicy": "Fail", "matchPolicy": "Equivalent", "timeoutSeconds": 10,
		"namespaceSelector": map[string]any{}, "objectSelector": map[string]any{},
	}
	webhookService = fields{"port": 443}
	deviceRequest  = fields{
		"allocationMode": "ExactCount",
		"count":          deviceCount,
	}
)

var extensionDefaults = map[string]fields{
	"admissionregistration.ValidatingWebhook": webhook,
	"admissionregistration.MutatingWebhook": {
		"failurePolicy": "Fail", "matchPolicy": "Equivalent", "timeoutSeconds": 10, "reinvocationPolicy": "Never",
		"namespaceSelector": map[string]any{}, "objectSelector": map[string]any{},
	},
	"admissionregistration.Rule":                          {"scope": "*"},
	"admissionregistration.ServiceReference":              webhookService,
	"admissionregistration.ValidatingAdmissionPolicySpec": {"failurePolicy": "Fail"},
	"admissionregistration.MutatingAdmissionPolicySpec":   {"failurePolicy": "Fail"},
	"admissionregistration/v1alpha1.ParamRef":             {"parameterNotFoundAction": "Deny"},
	"admissionregistration.MatchResources": {
		"matchPolicy": "Equivalent", "namespaceSelector": map[string]any{}, "objectSelector": map[string]any{},
	},

	"apiextensions.CustomResourceDefinitionSpec": {"conversion": map[string]any{"strategy": "None"}},
	"apiextensions.CustomResourceDefinitionNames": {
		"singular": func(s scope) any { return strings.ToLower(text(s.sibling("kind"))) },
		"listKind": func(s scope) any { return text(s.sibling("kind")) + "List" },
	},
	"apiextensions.ServiceReference": webhookService,

	"apiregistration.apiServiceReference": webhookService,

	"certificates.PodCertificateRequestSpec": {"maxExpirationSeconds": 86400},

	"resource.ExactDeviceRequest": deviceRequest,
	"resource.DeviceSubRequest":   deviceRequest,
	"resource.DeviceRequest": { // Version v1beta1 has these fields inline, for requests of one device.
		"allocationMode": whenOfClass(func(scope) any { return "ExactCount" }), "count": whenOfClass(deviceCount),
	},
	"resource.DeviceToleration":              {"operator": "Equal"},
	"resource.ResourcePoolStatusRequestSpec": {"limit": 100},
}

func deviceCount(s scope) any {
	if mode := text(s.sibling("allocationMode")); mode != "" && mode != "ExactCount" {
		return nil
	}
	return int64(1)
}

func whenOfClass(compute func(scope) any) func(scope) any {
	return func(s scope) any {
		if text(s.sibling("deviceClassName")) == "" {
			return nil
		}
		return compute(s)
	}
}
