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
		"count": func(s scope) any {
			if mode := text(s.sibling("allocationMode")); mode != "" && mode != "ExactCount" {
				return nil
			}
			return int64(1)
		},
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
	"resource.DeviceToleration":   {"operator": "Equal"},
}
