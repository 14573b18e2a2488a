package healthcheck

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

func fromYAML(t *testing.T, apiVersion, kind, rest string) *unstructured.Unstructured {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte("apiVersion: " + apiVersion + "\nkind: " + kind + "\n" + rest))
	must.Succeed(t, err)
	object := &unstructured.Unstructured{}
	must.Succeed(t, object.UnmarshalJSON(raw))
	return object
}

func cond(pairs ...string) string {
	text := "conditions: ["
	for i := 0; i < len(pairs); i += 2 {
		text += fmt.Sprintf("{type: %s, status: '%s', reason: R, message: M},", pairs[i], pairs[i+1])
	}
	return text + "]"
}

// TestAssess: when an object of each kind is healthy, and when it is rolled out.
func TestAssess(t *testing.T) {
	const outdatedText = "observed generation outdated (1/2)"
	invalid := func(name, is, want string) string {
		return fmt.Sprintf("condition %q has invalid status %s (expected %s) due to R: M", name, is, want)
	}
	type c struct{ name, apiVersion, kind, rest, unhealthy, progressing string }
	unhealthy, progressing := map[string]bool{}, map[string]bool{}
	for _, tc := range []c{
		{"MRH-20 established", "apiextensions.k8s.io/v1", "CustomResourceDefinition", "status: {" + cond("NamesAccepted", "True", "Established", "True") + "}", "", ""},
		{"MRH-20 names", "apiextensions.k8s.io/v1", "CustomResourceDefinition", "status: {" + cond("Established", "True") + "}", `condition "NamesAccepted" is missing`, ""},
		{"MRH-20 not established, v1beta1", "apiextensions.k8s.io/v1beta1", "CustomResourceDefinition", "status: {" + cond("NamesAccepted", "True", "Established", "False") + "}", invalid("Established", "False", "True"), ""},
		{"MRH-20 terminating", "apiextensions.k8s.io/v1", "CustomResourceDefinition", "status: {" + cond("NamesAccepted", "True", "Established", "True", "Terminating", "True") + "}", invalid("Terminating", "True", "False"), ""},

		{"MRH-21 healthy", "apps/v1", "DaemonSet", "status: {desiredNumberScheduled: 2, currentNumberScheduled: 2, updatedNumberScheduled: 2}", "", ""},
		{"MRH-21/MRP-13 outdated", "apps/v1", "DaemonSet", "metadata: {generation: 2}\nstatus: {observedGeneration: 1}", outdatedText, outdatedText},
		{"MRH-21 scheduled", "apps/v1", "DaemonSet", "status: {desiredNumberScheduled: 2, currentNumberScheduled: 1, updatedNumberScheduled: 2}", "not enough scheduled pods (1/2)", ""},
		{"MRH-21 misscheduled", "apps/v1", "DaemonSet", "status: {numberMisscheduled: 1}", "misscheduled pods found (1)", ""},
		{"MRH-21 unavailable", "apps/v1", "DaemonSet", "status: {desiredNumberScheduled: 2, currentNumberScheduled: 2, updatedNumberScheduled: 2, numberUnavailable: 1}", "too many unavailable pods found (1/2)", ""},
		{"MRH-21 roll-out, 10 % of 15", "apps/v1", "DaemonSet", "spec: {updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 10%}}}\nstatus: {desiredNumberScheduled: 15, currentNumberScheduled: 15, updatedNumberScheduled: 3, numberUnavailable: 1}", "", "3 of 15 replica(s) have been updated"},
		{"MRH-21 roll-out, too many", "apps/v1", "DaemonSet", "spec: {updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 10%}}}\nstatus: {desiredNumberScheduled: 15, currentNumberScheduled: 15, updatedNumberScheduled: 3, numberUnavailable: 2}", "too many unavailable pods found (2/15, only max. 1 unavailable pods allowed)", "3 of 15 replica(s) have been updated"},
		{"MRH-21 roll-out, OnDelete", "apps/v1", "DaemonSet", "spec: {updateStrategy: {type: OnDelete}}\nstatus: {desiredNumberScheduled: 1, currentNumberScheduled: 1, numberUnavailable: 1}", "too many unavailable pods found (1/1, only max. 0 unavailable pods allowed)", "0 of 1 replica(s) have been updated"},

		{"MRH-21/roll-out, one may be missing", "apps/v1", "DaemonSet", "spec: {updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 1}}}\nstatus: {desiredNumberScheduled: 2, currentNumberScheduled: 2, numberUnavailable: 1}", "", "0 of 2 replica(s) have been updated"},
		{"MRH-21/OnDelete, whatever may be missing in a roll-out", "apps/v1", "DaemonSet", "spec: {updateStrategy: {type: OnDelete, rollingUpdate: {maxUnavailable: 1}}}\nstatus: {desiredNumberScheduled: 2, currentNumberScheduled: 2, numberUnavailable: 1}", "too many unavailable pods found (1/2, only max. 0 unavailable pods allowed)", "0 of 2 replica(s) have been updated"},
		{"MRH-21/roll-out, no percentage", "apps/v1", "DaemonSet", "spec: {updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: '50'}}}\nstatus: {desiredNumberScheduled: 2, currentNumberScheduled: 2, numberUnavailable: 1}", "too many unavailable pods found (1/2, only max. 0 unavailable pods allowed)", "0 of 2 replica(s) have been updated"},
		{"MRH-21/roll-out, garbled percentage", "apps/v1", "DaemonSet", "spec: {updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: x%}}}\nstatus: {desiredNumberScheduled: 2, currentNumberScheduled: 2, numberUnavailable: 1}", "too many unavailable pods found (1/2, only max. 0 unavailable pods allowed)", "0 of 2 replica(s) have been updated"},
		{"MRH-21/roll-out, nothing said", "apps/v1", "DaemonSet", "spec: {updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: null}}}\nstatus: {desiredNumberScheduled: 2, currentNumberScheduled: 2, numberUnavailable: 1}", "too many unavailable pods found (1/2, only max. 0 unavailable pods allowed)", "0 of 2 replica(s) have been updated"},
		{"MRH-28/outdated", "apps/v1", "StatefulSet", "metadata: {generation: 2}\nstatus: {observedGeneration: 1, readyReplicas: 1, updatedReplicas: 1}", outdatedText, outdatedText},
		{"MRH-25/outdated", "apps/v1", "ReplicaSet", "metadata: {generation: 2}\nspec: {replicas: 1}\nstatus: {observedGeneration: 1, readyReplicas: 1}", outdatedText, ""},

		{"MRH-22/C15 healthy", "apps/v1", "Deployment", "status: {conditions: [{type: Available, status: 'True'}, {type: Progressing, status: 'True', reason: NewReplicaSetAvailable}]}", "", ""},
		{"MRH-22/MRP-10 available only", "apps/v1", "Deployment", "status: {" + cond("Available", "True") + "}", "", `condition "Progressing" is missing`},
		{"MRH-22/BH-MR-18 not available", "apps/v1", "Deployment", "status: {" + cond("Available", "False", "Progressing", "True") + "}", invalid("Available", "False", "True"), "M"},
		{"MRP-10 deadline exceeded", "apps/v1", "Deployment", "status: {" + cond("Available", "True", "Progressing", "False") + "}", invalid("Progressing", "False", "True"), "M"},
		{"MRH-22 replica failure", "apps/v1", "Deployment", "status: {conditions: [{type: Available, status: 'True'}, {type: Progressing, status: 'True', reason: NewReplicaSetAvailable}, {type: ReplicaFailure, status: 'True', reason: R, message: M}]}", invalid("ReplicaFailure", "True", "False"), ""},
		{"MRP-10/BH-HL-8 outdated", "apps/v1", "Deployment", "metadata: {generation: 2}\nstatus: {observedGeneration: 1}", outdatedText, outdatedText},

		{"MRH-23 running", "batch/v1", "Job", "status: {}", "", ""},
		{"MRH-23 failed", "batch/v1", "Job", "status: {" + cond("Failed", "True") + "}", invalid("Failed", "True", "False"), ""},
		{"MRH-24 running", "v1", "Pod", "status: {phase: Running}", "", ""},
		{"MRH-24 pending", "v1", "Pod", "status: {phase: Pending}", `pod is in invalid phase "Pending" (expected one of ["Running" "Succeeded"])`, ""},
		{"MRH-25 available", "apps/v1", "ReplicaSet", "spec: {replicas: 1}\nstatus: {readyReplicas: 1}", "", ""},
		{"MRH-25 unavailable", "apps/v1", "ReplicaSet", "spec: {replicas: 2}\nstatus: {readyReplicas: 1}", "ReplicaSet does not have minimum availability", ""},
		{"MRH-26 unavailable", "v1", "ReplicationController", "spec: {replicas: 2}", "ReplicationController does not have minimum availability", ""},
		{"MRH-27 any type", "v1", "Service", "spec: {type: NodePort}", "", ""},
		{"MRH-27 load balancer", "v1", "Service", "spec: {type: LoadBalancer}\nstatus: {loadBalancer: {ingress: [{ip: 1.1.1.1}]}}", "", ""},
		{"MRH-27 waiting", "v1", "Service", "spec: {type: LoadBalancer}", "service is missing ingress status", ""},
		{"MRH-28/MRP-12 ready", "apps/v1", "StatefulSet", "status: {readyReplicas: 1, updatedReplicas: 1}", "", ""},
		{"MRP-12/recreates", "apps/v1", "StatefulSet", "status: {readyReplicas: 1, updatedReplicas: 1, conditions: [{type: Progressing, status: 'True', reason: R, message: Deleting old revision pods}]}", "", "Deleting old revision pods"},
		{"MRP-12/recreates, without a message", "apps/v1", "StatefulSet", "status: {readyReplicas: 1, updatedReplicas: 1, conditions: [{type: Progressing, status: 'True', reason: R}]}", "", `condition "Progressing" is True due to R`},
		{"MRP-12/recreated", "apps/v1", "StatefulSet", "status: {readyReplicas: 1, updatedReplicas: 1, conditions: [{type: Progressing, status: 'False', reason: R, message: All recreated}]}", "", ""},
		{"MRP-12 none", "apps/v1", "StatefulSet", "status: {}", "not enough ready replicas (0/1)", "0 of 1 replica(s) have been updated"},
		{"MRH-29 nothing said", "autoscaling.k8s.io/v1", "VerticalPodAutoscaler", "metadata: {generation: 2}", "", ""},
		{"MRH-29 unsupported", "autoscaling.k8s.io/v1", "VerticalPodAutoscaler", "status: {" + cond("ConfigUnsupported", "True") + "}", invalid("ConfigUnsupported", "True", "False"), ""},

		{"MRH-30/MRP-14 fine", "monitoring.coreos.com/v1", "Prometheus", "status: {availableReplicas: 1, updatedReplicas: 1, " + cond("Available", "True", "Reconciled", "True") + "}", "", ""},
		{"MRH-30/MRP-14 absent", "monitoring.coreos.com/v1", "Alertmanager", "status: {}", `condition "Available" is missing`, `condition "Reconciled" is missing`},
		{"MRH-30/MRP-14 outdated", "monitoring.coreos.com/v1", "Prometheus", "metadata: {generation: 2}\nstatus: {availableReplicas: 1, conditions: [{type: Available, status: 'True', observedGeneration: 1}, {type: Reconciled, status: 'True', observedGeneration: 1}]}", outdatedText, outdatedText},
		{"MRH-30/MRP-14 replicas", "monitoring.coreos.com/v1", "Alertmanager", "spec: {replicas: 2}\nstatus: {availableReplicas: 1, updatedReplicas: 1, " + cond("Available", "True", "Reconciled", "True") + "}", "not enough available replicas (1/2)", "1 of 2 replica(s) have been updated"},
		{"MRH-31/MRP-15 ready", "cert.gardener.cloud/v1alpha1", "Certificate", "status: {state: Ready, " + cond("Ready", "True") + "}", "", ""},
		{"MRH-31 pending", "cert.gardener.cloud/v1alpha1", "Certificate", "status: {state: Pending}", `certificate state is "Pending" ("Ready" expected)`, ""},
		{"MRH-31 condition", "cert.gardener.cloud/v1alpha1", "Certificate", "status: {state: Ready, " + cond("Ready", "False") + "}", invalid("Ready", "False", "True"), ""},
		{"MRP-15/Certificate outdated", "cert.gardener.cloud/v1alpha1", "Certificate", "metadata: {generation: 2}\nstatus: {observedGeneration: 1}", `certificate state is "" ("Ready" expected)`, outdatedText},
		{"MRH-32/not ready", "cert.gardener.cloud/v1alpha1", "Issuer", "status: {state: Pending}", `issuer state is "Pending" ("Ready" expected)`, ""},
		{"MRP-15 outdated", "cert.gardener.cloud/v1alpha1", "Issuer", "metadata: {generation: 2}\nstatus: {observedGeneration: 1}", `issuer state is "" ("Ready" expected)`, outdatedText},

		{"MRH-8 no rule", "v1", "ConfigMap", "", "", ""},
		{"MRH-8 other version", "apps/v1beta1", "ReplicaSet", "spec: {replicas: 5}", "", ""},
		{"MRH-9/BH-HL-6 skipped", "v1", "Pod", "metadata: {annotations: {resources.gardener.cloud/skip-health-check: 'true'}}\nstatus: {phase: Pending}", "", ""},
		{"MRP-4/BH-HL-7 skipped", "apps/v1", "Deployment", "metadata: {annotations: {resources.gardener.cloud/skip-health-check: 'true'}}\nstatus: {" + cond("Available", "True", "Progressing", "False") + "}", "", ""},
		{"MRH-9 skipped, not literally true", "v1", "Pod", "metadata: {annotations: {resources.gardener.cloud/skip-health-check: '1'}}\nstatus: {phase: Running}", "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			status := Options{}.Assess(fromYAML(t, tc.apiVersion, tc.kind, tc.rest))
			if status.Unhealthy != "" {
				unhealthy[tc.kind] = true
			}
			if status.Progressing != "" {
				progressing[tc.kind] = true
			}
			expect.Equal(t, status.Unhealthy, tc.unhealthy, "unhealthy")
			expect.Equal(t, status.Progressing, tc.progressing, "progressing")
		})
	}
	for name, tc := range map[string]struct {
		got  map[string]bool
		want string
	}{
		"BH-HL-3 kinds that are rolled out": {progressing, "Alertmanager Certificate DaemonSet Deployment Issuer Prometheus StatefulSet"},
		"BH-HL-4 kinds with a health": {unhealthy, "Alertmanager Certificate CustomResourceDefinition DaemonSet Deployment Issuer Job Pod Prometheus ReplicaSet " +
			"ReplicationController Service StatefulSet VerticalPodAutoscaler"},
	} {
		expect.Equal(t, strings.Join(slices.Sorted(maps.Keys(tc.got)), " "), tc.want, "%s", name)
	}
}

func TestDeploymentCountsPods(t *testing.T) {
	rolledOut := "status: {conditions: [{type: Available, status: 'True'}, {type: Progressing, status: 'True', reason: NewReplicaSetAvailable}]}"
	got := (Options{}).Assess(fromYAML(t, "apps/v1", "Deployment", "spec: {selector: {matchLabels: {app: d}}}\n"+rolledOut))
	expect.True(t, got.Pods == PodsUncounted && got.Wanted == 1, "MRP-10 unset replicas are one: got %+v", got)
	if got := (Options{}).Assess(fromYAML(t, "apps/v1", "Deployment", "spec: {replicas: 3, selector: {matchLabels: {app: d}}}\n"+rolledOut)); got.Wanted != 3 {
		t.Errorf("MRP-10: got %+v", got)
	}
}

func TestCountsForDeployment(t *testing.T) {
	condition := func(conditionType corev1.PodConditionType, status corev1.ConditionStatus, reason string) corev1.PodStatus {
		return corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: conditionType, Status: status, Reason: reason}}}
	}
	for name, tc := range map[string]struct {
		status corev1.PodStatus
		want   bool
	}{
		"MRP-11 running":                         {corev1.PodStatus{Phase: corev1.PodRunning}, true},
		"MRP-11 pending":                         {corev1.PodStatus{Phase: corev1.PodPending}, true},
		"MRP-11 succeeded":                       {corev1.PodStatus{Phase: corev1.PodSucceeded}, false},
		"MRP-11 failed":                          {corev1.PodStatus{Phase: corev1.PodFailed}, false},
		"MRP-11 evicted":                         {corev1.PodStatus{Reason: "Evicted"}, false},
		"MRP-11 node lost":                       {corev1.PodStatus{Reason: "NodeLost"}, false},
		"MRP-11 out of memory":                   {corev1.PodStatus{Reason: "OutOfmemory"}, false},
		"MRP-11 completed":                       {condition(corev1.PodReady, corev1.ConditionFalse, "PodCompleted"), false},
		"MRP-11 not ready":                       {condition(corev1.PodReady, corev1.ConditionFalse, "Other"), true},
		"MRP-11/completed, of another condition": {condition(corev1.PodScheduled, corev1.ConditionFalse, "PodCompleted"), true},
		"MRP-11/completed, and ready":            {condition(corev1.PodReady, corev1.ConditionTrue, "PodCompleted"), true},
		"MRP-11 disruption":                      {condition(corev1.DisruptionTarget, corev1.ConditionTrue, ""), false},
		"MRP-11 no disruption":                   {condition(corev1.DisruptionTarget, corev1.ConditionFalse, ""), true},
	} {
		t.Run(name, func(t *testing.T) {
			expect.Equal(t, CountsForDeployment(&tc.status), tc.want)
		})
	}
}

func TestConventionOfCustomResources(t *testing.T) {
	on := Options{CustomResources: true}
	for name, tc := range map[string]struct{ rest, unhealthy, progressing string }{
		"nothing said":  {"", "", ""},
		"ready":         {"status: {" + cond("Ready", "True") + "}", "", ""},
		"not ready":     {"status: {" + cond("Ready", "False") + "}", `condition "Ready" has invalid status False (expected True) due to R: M`, ""},
		"stalled":       {"status: {" + cond("Stalled", "True") + "}", `condition "Stalled" has invalid status True (expected False) due to R: M`, ""},
		"reconciling":   {"status: {" + cond("Reconciling", "True") + "}", "", "M"},
		"an old status": {"metadata: {generation: 2}\nstatus: {observedGeneration: 1}", "observed generation outdated (1/2)", "observed generation outdated (1/2)"},
	} {
		t.Run(name, func(t *testing.T) {
			object := fromYAML(t, "example.org/v1", "Widget", tc.rest)
			got := on.Assess(object)
			expect.True(t, got.Unhealthy == tc.unhealthy && got.Progressing == tc.progressing, "got %+v", got)
			expect.Equal(t, (Options{}).Assess(object), (Status{}), "switched off")
		})
	}
	for group, want := range map[string]bool{"": false, "batch": false, "networking.k8s.io": false, "apiregistration.k8s.io": false,
		"example.org": true, "gateway.networking.k8s.io": true, "snapshot.storage.k8s.io": true} {
		expect.Equal(t, on.NeedsWholeObject(schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Other"}), want, "MRH-8: more than the metadata of group %q is needed", group)
	}
}

// MRH-8, MRP-2: which kinds are judged by more than their metadata, and of which a roll-out is told.
func TestKindsWithRules(t *testing.T) {
	deployment := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	for name, tc := range map[string]struct {
		kind              schema.GroupVersionKind
		options           Options
		whole, progresses bool
	}{
		"MRP-2/a Deployment":                             {deployment, Options{}, true, true},
		"MRP-2/a Deployment in another version":          {schema.GroupVersionKind{Group: "apps", Version: "v1beta1", Kind: "Deployment"}, Options{}, true, true},
		"MRH-8/a Pod":                                    {schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, Options{}, true, false},
		"MRH-8/a ConfigMap":                              {schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Options{CustomResources: true}, false, false},
		"MRH-8/a custom resource":                        {schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Widget"}, Options{CustomResources: true}, true, true},
		"MRH-8/a custom resource, switched off":          {schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Widget"}, Options{}, false, false},
		"MRH-20/a definition has a rule but no roll-out": {schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}, Options{}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			expect.Equal(t, tc.options.NeedsWholeObject(tc.kind), tc.whole, "more than the metadata is needed")
			expect.Equal(t, tc.options.Progresses(tc.kind), tc.progresses, "a roll-out is told of")
		})
	}
	outdated := fromYAML(t, "apps/v1", "Deployment", "metadata: {generation: 2}\nstatus: {observedGeneration: 1}")
	if got := (Options{}).Assess(outdated); got.CountsPods() {
		t.Errorf("MRP-10: the Pods of a Deployment that is being rolled out need not be counted: %+v", got)
	}
	statefulSet := fromYAML(t, "apps/v1", "StatefulSet", "status: {readyReplicas: 1, updatedReplicas: 1}")
	got := (Options{}).Assess(statefulSet)
	expect.False(t, got.CountsPods(), "MRP-12: the Pods of a StatefulSet are not counted: %+v", got)
}
