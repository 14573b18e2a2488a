package apply

import (
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kindDefaults are the values that the API server fills in for fields that a manifest leaves out. A value that is missing
// here costs an update that changes nothing; a live value that differs from the default is drift in any case.
var kindDefaults = sync.OnceValue(func() map[schema.GroupKind]*defaultNode {
	meta := map[string]any{"metadata.creationTimestamp": func(v any, _ map[string]any) bool { return v == nil }}
	template := podTemplateDefaults()
	workload := func(fields map[string]any) *defaultNode {
		return tree(meta, map[string]any{"spec.template": template}, fields)
	}
	job := map[string]any{
		"parallelism": 1, "completions": 1, "backoffLimit": 6, "completionMode": "NonIndexed", "suspend": false,
		"manualSelector": false, "podReplacementPolicy": "TerminatingOrFailed",
	}
	jobNode := tree(job, map[string]any{"template": template})
	return map[schema.GroupKind]*defaultNode{
		{Group: "apps", Kind: "Deployment"}: workload(map[string]any{
			"spec.strategy": wholeMap, "spec.strategy.type": "RollingUpdate", "spec.strategy.rollingUpdate": wholeMap,
			"spec.strategy.rollingUpdate.maxUnavailable": "25%", "spec.strategy.rollingUpdate.maxSurge": "25%",
			"spec.revisionHistoryLimit": 10, "spec.progressDeadlineSeconds": 600,
		}),
		{Group: "apps", Kind: "StatefulSet"}: workload(map[string]any{
			"spec.podManagementPolicy": "OrderedReady", "spec.revisionHistoryLimit": 10,
			"spec.updateStrategy": wholeMap, "spec.updateStrategy.type": "RollingUpdate", "spec.updateStrategy.rollingUpdate": wholeMap,
			"spec.updateStrategy.rollingUpdate.partition": 0, "spec.updateStrategy.rollingUpdate.maxUnavailable": 1,
			"spec.persistentVolumeClaimRetentionPolicy":             wholeMap,
			"spec.persistentVolumeClaimRetentionPolicy.whenDeleted": "Retain", "spec.persistentVolumeClaimRetentionPolicy.whenScaled": "Retain",
		}),
		{Group: "apps", Kind: "DaemonSet"}: workload(map[string]any{
			"spec.updateStrategy": wholeMap, "spec.updateStrategy.type": "RollingUpdate", "spec.updateStrategy.rollingUpdate": wholeMap,
			"spec.updateStrategy.rollingUpdate.maxUnavailable": 1, "spec.updateStrategy.rollingUpdate.maxSurge": 0,
			"spec.revisionHistoryLimit": 10,
		}),
		{Group: "batch", Kind: "Job"}: tree(map[string]any{"spec": jobNode}),
		{Group: "batch", Kind: "CronJob"}: tree(map[string]any{
			"spec.concurrencyPolicy": "Allow", "spec.suspend": false, "spec.successfulJobsHistoryLimit": 3, "spec.failedJobsHistoryLimit": 1,
			"spec.jobTemplate.spec": tree(map[string]any{"template": template}),
		}),
		{Kind: "Pod"}: tree(map[string]any{"spec": podSpecDefaults()}),
		{Kind: "Service"}: tree(map[string]any{
			"spec.sessionAffinity": "None", "spec.internalTrafficPolicy": "Cluster", "spec.type": typeClusterIP,
			"spec.externalTrafficPolicy": "Cluster", "spec.allocateLoadBalancerNodePorts": true,
			"spec.sessionAffinityConfig": wholeMap, "spec.sessionAffinityConfig.clientIP": wholeMap, "spec.sessionAffinityConfig.clientIP.timeoutSeconds": 10800,
			"spec.ports[].protocol": "TCP",
			"spec.ports[].targetPort": func(value any, port map[string]any) bool {
				return value == port["port"]
			},
		}),
		{Kind: "Secret"}:                tree(map[string]any{"type": "Opaque"}),
		{Kind: "Namespace"}:             tree(map[string]any{"spec": wholeMap, "spec.finalizers": anything}),
		{Kind: "PersistentVolumeClaim"}: tree(map[string]any{"spec.volumeMode": "Filesystem", "spec.volumeName": anything, "spec.storageClassName": anything}),
		{Kind: "PersistentVolume"}:      tree(map[string]any{"spec.persistentVolumeReclaimPolicy": "Retain", "spec.volumeMode": "Filesystem", "spec.claimRef": anything}),
		{Group: "networking.k8s.io", Kind: "NetworkPolicy"}: tree(map[string]any{
			"spec.ingress[].ports[].protocol": "TCP", "spec.egress[].ports[].protocol": "TCP",
		}),
		{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}: tree(bindingDefaults()),
		{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}:        tree(bindingDefaults()),
		{Group: "scheduling.k8s.io", Kind: "PriorityClass"}:              tree(map[string]any{"preemptionPolicy": "PreemptLowerPriority"}),
		{Group: "storage.k8s.io", Kind: "StorageClass"}:                  tree(map[string]any{"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"}),
		{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: tree(map[string]any{
			"spec.conversion": wholeMap, "spec.conversion.strategy": "None",
			"spec.names.listKind": func(value any, names map[string]any) bool {
				kind, _ := names["kind"].(string)
				return value == kind+"List"
			},
			"spec.names.singular": func(value any, names map[string]any) bool {
				kind, _ := names["kind"].(string)
				return value == strings.ToLower(kind)
			},
		}),
		{Group: "apiregistration.k8s.io", Kind: "APIService"}:                           tree(map[string]any{"spec.service.port": 443}),
		{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"}: tree(webhookDefaults()),
		{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"}:   tree(webhookDefaults(), map[string]any{"webhooks[].reinvocationPolicy": "Never"}),
	}
})

// anything is what other controllers fill in, once: it can't be compared, and an update that leaves it out is refused or
// has no effect.
func anything(any, map[string]any) bool { return true }

func bindingDefaults() map[string]any {
	return map[string]any{
		"roleRef.apiGroup": "rbac.authorization.k8s.io",
		"subjects[].apiGroup": func(value any, subject map[string]any) bool {
			return value == "rbac.authorization.k8s.io" && subject["kind"] != "ServiceAccount"
		},
	}
}

func webhookDefaults() map[string]any {
	return map[string]any{
		"webhooks[].failurePolicy": "Fail", "webhooks[].matchPolicy": "Equivalent", "webhooks[].timeoutSeconds": 10,
		"webhooks[].clientConfig.service.port": 443, "webhooks[].rules[].scope": "*",
	}
}

func podTemplateDefaults() *defaultNode {
	return tree(map[string]any{"spec": podSpecDefaults()})
}

func podSpecDefaults() *defaultNode {
	container := containerDefaults()
	return tree(map[string]any{
		"restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "schedulerName": "default-scheduler",
		"terminationGracePeriodSeconds": 30, "enableServiceLinks": true,
		// Both names of the ServiceAccount hold the same value.
		"serviceAccount":     func(value any, spec map[string]any) bool { return value == spec["serviceAccountName"] },
		"containers[]":       container,
		"initContainers[]":   container,
		"securityContext":    wholeMap,
		"volumes[].emptyDir": wholeMap, "volumes[].configMap.defaultMode": 420, "volumes[].secret.defaultMode": 420,
		"volumes[].projected.defaultMode": 420, "volumes[].downwardAPI.defaultMode": 420, "volumes[].hostPath.type": "",
		"volumes[].projected.sources[].serviceAccountToken.expirationSeconds":   3600,
		"volumes[].projected.sources[].downwardAPI.items[].fieldRef.apiVersion": "v1",
		"volumes[].downwardAPI.items[].fieldRef.apiVersion":                     "v1",
		"topologySpreadConstraints[].nodeAffinityPolicy":                        "Honor",
		"topologySpreadConstraints[].nodeTaintsPolicy":                          "Ignore",
		"topologySpreadConstraints[].minDomains":                                1,
	})
}

func containerDefaults() *defaultNode {
	fields := map[string]any{
		"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
		"imagePullPolicy": defaultPullPolicy, "ports[].protocol": "TCP", "resources": wholeMap,
		"env[].valueFrom.fieldRef.apiVersion": "v1", "env[].valueFrom.resourceFieldRef.divisor": "0",
	}
	for _, probe := range []string{"livenessProbe", "readinessProbe", "startupProbe"} {
		for field, value := range map[string]any{"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3, "httpGet.scheme": "HTTP", "grpc.service": ""} {
			fields[probe+"."+field] = value
		}
	}
	for _, hook := range []string{"postStart", "preStop"} {
		fields["lifecycle."+hook+".httpGet.scheme"] = "HTTP"
	}
	// The API server sets requests to the limits that have no request of their own.
	fields["resources.requests"] = func(value any, resources map[string]any) bool {
		limits, _ := resources["limits"].(map[string]any)
		requests, ok := value.(map[string]any)
		if !ok {
			return false
		}
		for name, request := range requests {
			if limits[name] != request {
				return false
			}
		}
		return true
	}
	return tree(fields)
}

func defaultPullPolicy(value any, container map[string]any) bool {
	image, _ := container["image"].(string)
	name := image[strings.LastIndex(image, "/")+1:]
	_, tag, tagged := strings.Cut(name, ":")
	if strings.Contains(name, "@") {
		return value == "IfNotPresent"
	}
	if !tagged || tag == "latest" {
		return value == "Always"
	}
	return value == "IfNotPresent"
}
