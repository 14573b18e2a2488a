package merge

import (
	"strings"
	"testing"

	"github.com/espalier-project/espalier/test/expect"
)

// TestMerge_FindsNoChangeInDefaults holds manifests as people write them to what the API server makes of them (MRB-8, MR-26): nothing would be
// written. The integration tests hold the same to a real API server, with many more.
func TestMerge_FindsNoChangeInDefaults(t *testing.T) {
	const (
		pod       = "metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: 'web:1'}]}"
		filledPod = "metadata: {creationTimestamp: null, labels: {app: web}}, spec: {containers: [{name: web, image: 'web:1', imagePullPolicy: IfNotPresent, resources: {}, terminationMessagePath: /dev/termination-log, terminationMessagePolicy: File}]," +
			" dnsPolicy: ClusterFirst, restartPolicy: Always, schedulerName: default-scheduler, securityContext: {}, terminationGracePeriodSeconds: 30}"
		usualScaleUp = "{stabilizationWindowSeconds: 0, selectPolicy: Max, policies: [{type: Pods, value: 4, periodSeconds: 15}, {type: Percent, value: 100, periodSeconds: 15}]}"
		cpu          = "[{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}]"
	)
	for name, tc := range map[string]struct{ kind, manifest, stored string }{
		"an autoscaler": {"autoscaling/v2 HorizontalPodAutoscaler", "spec: {maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: d}}",
			"spec: {minReplicas: 1, maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: d}, metrics: " + cpu + "}"},
		"an autoscaler with behaviour": {"autoscaling/v2 HorizontalPodAutoscaler", "spec: {maxReplicas: 3, scaleTargetRef: {kind: X, name: x}, behavior: {scaleDown: {stabilizationWindowSeconds: 60}}}",
			"spec: {minReplicas: 1, maxReplicas: 3, scaleTargetRef: {kind: X, name: x}, metrics: " + cpu + ", behavior: {scaleUp: " + usualScaleUp + ", scaleDown: {stabilizationWindowSeconds: 60, selectPolicy: Max, policies: [{type: Percent, value: 100, periodSeconds: 15}]}}}"},
		"a headless Service without ports": {"v1 Service", "spec: {clusterIP: None, selector: {a: b}}",
			"spec: {clusterIP: None, clusterIPs: [None], selector: {a: b}, type: ClusterIP, sessionAffinity: None, internalTrafficPolicy: Cluster, ipFamilies: [IPv4], ipFamilyPolicy: SingleStack}"},
		"a Service with affinity": {"v1 Service", "spec: {ports: [{port: 80}], sessionAffinity: ClientIP}",
			"spec: {ports: [{port: 80, protocol: TCP, targetPort: 80}], clusterIP: 1.2.3.4, clusterIPs: [1.2.3.4], type: ClusterIP, sessionAffinity: ClientIP, sessionAffinityConfig: {clientIP: {timeoutSeconds: 10800}}, internalTrafficPolicy: Cluster, ipFamilies: [IPv4], ipFamilyPolicy: SingleStack}"},
		"Endpoints": {"v1 Endpoints", "subsets: [{addresses: [{ip: 10.0.0.2}, {ip: 10.0.0.1}], ports: [{port: 80}]}]",
			"subsets: [{addresses: [{ip: 10.0.0.1}, {ip: 10.0.0.2}], ports: [{port: 80, protocol: TCP}]}]"},
		"an EndpointSlice": {"discovery.k8s.io/v1 EndpointSlice", "addressType: IPv4, endpoints: [{addresses: [10.0.0.1]}], ports: [{port: 80}]",
			"addressType: IPv4, endpoints: [{addresses: [10.0.0.1], conditions: {}}], ports: [{name: '', port: 80, protocol: TCP}]"},
		"a LimitRange": {"v1 LimitRange", "spec: {limits: [{type: Container, max: {cpu: 1}, min: {cpu: 100m, memory: 1Mi}}]}",
			"spec: {limits: [{type: Container, max: {cpu: '1'}, min: {cpu: 100m, memory: 1Mi}, default: {cpu: '1'}, defaultRequest: {cpu: '1', memory: 1Mi}}]}"},
		"a NetworkPolicy": {"networking.k8s.io/v1 NetworkPolicy", "spec: {podSelector: {}, ingress: [{ports: [{port: 80}]}]}",
			"spec: {podSelector: {}, policyTypes: [Ingress], ingress: [{ports: [{port: 80, protocol: TCP}]}]}"},
		"a PriorityClass": {"scheduling.k8s.io/v1 PriorityClass", "value: 1000", "value: 1000, preemptionPolicy: PreemptLowerPriority"},
		"an IngressClass": {"networking.k8s.io/v1 IngressClass", "spec: {controller: c, parameters: {apiGroup: g, kind: K, name: n}}",
			"spec: {controller: c, parameters: {apiGroup: g, kind: K, name: n, scope: Cluster}}"},
		"a CSIDriver": {"storage.k8s.io/v1 CSIDriver", "spec: {}",
			"spec: {attachRequired: true, fsGroupPolicy: ReadWriteOnceWithFSType, podInfoOnMount: false, requiresRepublish: false, seLinuxMount: false, storageCapacity: false, volumeLifecycleModes: [Persistent]}"},
		"a FlowSchema": {"flowcontrol.apiserver.k8s.io/v1 FlowSchema", "spec: {priorityLevelConfiguration: {name: p}}",
			"spec: {priorityLevelConfiguration: {name: p}, matchingPrecedence: 1000}"},
		"a PriorityLevelConfiguration": {"flowcontrol.apiserver.k8s.io/v1 PriorityLevelConfiguration", "spec: {type: Limited, limited: {limitResponse: {type: Queue, queuing: {}}}}",
			"spec: {type: Limited, limited: {nominalConcurrencyShares: 30, lendablePercent: 0, limitResponse: {type: Queue, queuing: {handSize: 8, queues: 64, queueLengthLimit: 50}}}}"},
		"a ValidatingAdmissionPolicy": {"admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy",
			"spec: {matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}, validations: [{expression: 'true'}]}",
			"spec: {failurePolicy: Fail, matchConstraints: {matchPolicy: Equivalent, namespaceSelector: {}, objectSelector: {}, resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods], scope: '*'}]}, validations: [{expression: 'true'}]}"},
		"its binding": {"admissionregistration.k8s.io/v1 ValidatingAdmissionPolicyBinding", "spec: {policyName: p, validationActions: [Deny], matchResources: {namespaceSelector: {matchLabels: {a: b}}}}",
			"spec: {policyName: p, validationActions: [Deny], matchResources: {matchPolicy: Equivalent, namespaceSelector: {matchLabels: {a: b}}, objectSelector: {}}}"},
		"a ReplicaSet": {"apps/v1 ReplicaSet", "spec: {selector: {matchLabels: {app: web}}, template: {" + pod + "}}",
			"spec: {replicas: 1, selector: {matchLabels: {app: web}}, template: {" + filledPod + "}}"},
		"a ReplicationController": {"v1 ReplicationController", "spec: {template: {" + pod + "}}", "spec: {replicas: 1, selector: {app: web}, template: {" + filledPod + "}}"},
		"a PodTemplate":           {"v1 PodTemplate", "template: {" + pod + "}", "template: {" + filledPod + "}"},
		"a Deployment that recreates": {"apps/v1 Deployment", "spec: {strategy: {type: Recreate}, selector: {matchLabels: {app: web}}, template: {" + pod + "}}",
			"spec: {replicas: 1, progressDeadlineSeconds: 600, revisionHistoryLimit: 10, strategy: {type: Recreate}, selector: {matchLabels: {app: web}}, template: {" + filledPod + "}}"},
		"a Deployment with host ports": {"apps/v1 Deployment", "spec: {template: {spec: {containers: [{name: web, image: 'web:1', ports: [{containerPort: 80, hostPort: 80}]}]}}}",
			"spec: {replicas: 1, progressDeadlineSeconds: 600, revisionHistoryLimit: 10, strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 25%, maxUnavailable: 25%}}, template: {metadata: {creationTimestamp: null}, " +
				strings.Replace(strings.TrimPrefix(filledPod, "metadata: {creationTimestamp: null, labels: {app: web}}, "), "resources: {}", "resources: {}, ports: [{containerPort: 80, hostPort: 80, protocol: TCP}]", 1) + "}}"},
		"a probe without path": {"apps/v1 DaemonSet", "spec: {template: {spec: {containers: [{name: web, image: 'web:1', livenessProbe: {httpGet: {port: 80}}}]}}}",
			"spec: {revisionHistoryLimit: 10, updateStrategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}, template: {metadata: {creationTimestamp: null}, " +
				strings.Replace(strings.TrimPrefix(filledPod, "metadata: {creationTimestamp: null, labels: {app: web}}, "), "resources: {}", "resources: {}, livenessProbe: {httpGet: {path: /, port: 80, scheme: HTTP}, timeoutSeconds: 1, periodSeconds: 10, successThreshold: 1, failureThreshold: 3}", 1) + "}}"},
	} {
		t.Run(name, func(t *testing.T) {
			apiVersion, kind, _ := strings.Cut(tc.kind, " ")
			object := "{apiVersion: " + apiVersion + ", kind: " + kind + ", metadata: {name: x, namespace: n}, "
			desired, live := desiredFrom(t, object+tc.manifest+"}"), fromYAML(t, object+tc.stored+"}")
			merged := Merge(desired, live, Options{Origin: "o"})
			live.SetAnnotations(merged.GetAnnotations())
			expect.Equal(t, Difference(live, merged), "", "it would be written because of")
		})
	}
}
