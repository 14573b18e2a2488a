package integration

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/test/expect"
)

func deployment(name, more string) string {
	return "---\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: " + name + "\n  namespace: $NS\n" + more +
		"spec:\n  replicas: 0\n  selector: {matchLabels: {app: " + name + "}}\n  template:\n    metadata: {labels: {app: " + name + "}}\n" +
		"    spec: {containers: [{name: main, image: registry.example.org/main:1, resources: {requests: {cpu: 1000m}}}]}\n"
}

func nested(object *unstructured.Unstructured, fields ...string) string {
	value, _, _ := unstructured.NestedFieldNoCopy(object.Object, fields...)
	return fmt.Sprint(value)
}

// MRL-2: injected labels reach pod templates and leave selectors alone.
func TestInjectLabels(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	statefulSet := "---\napiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: s, namespace: $NS}\nspec:\n  replicas: 0\n  serviceName: s\n" +
		"  selector: {matchLabels: {app: s}}\n  template: {metadata: {labels: {app: s}}, spec: {containers: [{name: main, image: i:1}]}}\n" +
		"  volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]\n"
	cronJob := "---\napiVersion: batch/v1\nkind: CronJob\nmetadata: {name: c, namespace: $NS}\nspec:\n  schedule: '@yearly'\n  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: i:1}]}}}}\n"
	f.managed("mr", deployment("d", "")+statefulSet+cronJob, func(mr *resourcesv1alpha1.ManagedResource) {
		mr.Spec.InjectLabels = map[string]string{"foo": "bar", resourcesv1alpha1.LabelManagedBy: "foo"}
	})
	f.applied("mr", "True/ApplySucceeded")
	want := map[string]string{"foo": "bar", resourcesv1alpha1.LabelManagedBy: "gardener"}
	d := f.get("apps/v1", "Deployment", "d")
	if diff := cmp.Diff(want, d.GetLabels()); diff != "" {
		t.Error("MRA-4c labels", diff)
	}
	template, _, _ := unstructured.NestedStringMap(d.Object, "spec", "template", "metadata", "labels")
	wantTemplate := maps.Clone(want)
	wantTemplate["app"] = "d"
	if diff := cmp.Diff(wantTemplate, template); diff != "" {
		t.Error("BH-MR-4 template", diff)
	}
	if got := nested(d, "spec", "selector"); got != "map[matchLabels:map[app:d]]" {
		t.Error("BH-MR-4 selector", got)
	}
	claims, _, _ := unstructured.NestedSlice(f.get("apps/v1", "StatefulSet", "s").Object, "spec", "volumeClaimTemplates")
	labels, _, _ := unstructured.NestedStringMap(claims[0].(map[string]any), "metadata", "labels")
	if diff := cmp.Diff(want, labels); diff != "" {
		t.Error("MRL-2 volumeClaimTemplates", diff)
	}
	if got := nested(f.get("batch/v1", "CronJob", "c"), "spec", "jobTemplate", "metadata"); got != "<nil>" && got != "map[]" && got != "map[creationTimestamp:<nil>]" { // The last one before Kubernetes 1.34.
		t.Error("MRL-2 CronJob", got)
	}
}

// MRL-7, MRL-16: whose labels, annotations and owners stay.
func TestLabelsAndAnnotations(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.managed("mr", configMap("cm", "  labels: {foo: bar, keep: me}\n  annotations: {a: b, reference.resources.gardener.cloud/secret-bar: bar}\n"))
	f.settled("mr")
	cm := f.get("v1", "ConfigMap", "cm")
	f.patch(cm, map[string]any{"metadata": map[string]any{
		"labels":          map[string]any{"theirs": "yes"},
		"annotations":     map[string]any{"theirs": "yes", "reference.resources.gardener.cloud/secret-foo": "foo"},
		"finalizers":      []any{"example.org/theirs"},
		"ownerReferences": []any{map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "x"}},
	}})
	f.eventually(func() error {
		cm := f.get("v1", "ConfigMap", "cm")
		if len(cm.GetOwnerReferences()) > 0 || cm.GetAnnotations()["reference.resources.gardener.cloud/secret-foo"] != "" {
			return fmt.Errorf("MRL-9/MRL-13: owners or references are still there: %v", cm.Object["metadata"])
		}
		return nil
	})
	cm = f.get("v1", "ConfigMap", "cm")
	if cm.GetLabels()["theirs"] != "yes" || cm.GetAnnotations()["theirs"] != "yes" || len(cm.GetFinalizers()) != 1 {
		t.Errorf("MRL-6/MRL-14: what is theirs must stay, got %v", cm.Object["metadata"])
	}

	f.secret("mr", map[string]string{"data.yaml": configMap("cm", "  labels: {keep: me}\n")})
	f.eventually(func() error {
		cm = f.get("v1", "ConfigMap", "cm")
		if _, found := cm.GetLabels()["foo"]; found {
			return fmt.Errorf("labels are %v", cm.GetLabels())
		}
		return nil
	})
	expect.Equal(t, cm.GetLabels()["theirs"], "yes", "MRL-6: a foreign label is gone")

	f.patchMR("mr", map[string]any{"spec": map[string]any{"forceOverwriteLabels": true, "forceOverwriteAnnotations": true}})
	f.eventually(func() error {
		cm = f.get("v1", "ConfigMap", "cm")
		if len(cm.GetLabels()) != 2 || len(cm.GetAnnotations()) != 2 {
			return fmt.Errorf("MRA-4d/MRA-4e: labels %v, annotations %v", cm.GetLabels(), cm.GetAnnotations())
		}
		return nil
	})
	f.patch(cm, map[string]any{"metadata": map[string]any{"finalizers": nil}})
}

// MRM-4: what others own of a workload stays.
func TestWorkloads(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	preserve := "  annotations: {resources.gardener.cloud/preserve-replicas: 'true', resources.gardener.cloud/preserve-resources: 'true'}\n"
	hpa := "---\napiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: scaled, namespace: $NS}\n" +
		"spec: {maxReplicas: 5, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: scaled}}\n"
	f.managed("mr", deployment("plain", "")+deployment("preserved", preserve)+deployment("scaled", "")+hpa)
	f.applied("mr", "True/ApplySucceeded")

	for _, name := range []string{"plain", "preserved", "scaled"} {
		f.patch(f.get("apps/v1", "Deployment", name), map[string]any{"spec": map[string]any{
			"replicas": 2,
			"template": map[string]any{
				"metadata": map[string]any{"annotations": map[string]any{"kubectl.kubernetes.io/restartedAt": "now"}},
				"spec":     map[string]any{"containers": []any{map[string]any{"name": "main", "image": "registry.example.org/main:1", "resources": map[string]any{"requests": map[string]any{"cpu": "2", "memory": "1Gi"}}}}},
			},
		}})
	}
	resources := func(name string) string {
		containers, _, _ := unstructured.NestedSlice(f.get("apps/v1", "Deployment", name).Object, "spec", "template", "spec", "containers")
		return fmt.Sprint(containers[0].(map[string]any)["resources"])
	}
	f.eventually(func() error {
		if got := nested(f.get("apps/v1", "Deployment", "plain"), "spec", "replicas") + resources("plain"); got != "0map[requests:map[cpu:1]]" {
			return fmt.Errorf("MRM-1/MRM-3 plain is %s", got)
		}
		if got := resources("scaled"); got != "map[requests:map[cpu:1]]" {
			return fmt.Errorf("MRM-3 scaled is %s", got)
		}
		return nil
	})
	expect.Equal(t, nested(f.get("apps/v1", "Deployment", "preserved"), "spec", "replicas")+resources("preserved"), "2map[requests:map[cpu:2 memory:1Gi]]", "BH-MR-27/BH-MR-28: preserved")
	expect.Equal(t, nested(f.get("apps/v1", "Deployment", "scaled"), "spec", "replicas"), "2", "BH-MR-29: scaled has")
	for _, name := range []string{"plain", "preserved", "scaled"} {
		expect.Equal(t, nested(f.get("apps/v1", "Deployment", name), "spec", "template", "metadata", "annotations", "kubectl.kubernetes.io/restartedAt"), "now", "MRM-2 restartedAt of %s", name)
	}
}

// TestScaledKinds: an autoscaler keeps the replicas of every kind that has some, while other drift is repaired.
func TestScaledKinds(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const definition = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: webs.scaled.example.org}\n" +
		"spec: {group: scaled.example.org, scope: Namespaced, names: {plural: webs, kind: Web}, versions: [{name: v1, served: true, storage: true, " +
		"subresources: {status: {}, scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}}, " +
		"schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}\n"
	f.managed("crd", definition)
	f.applied("crd", "True/ApplySucceeded")
	kinds := map[string]string{"ReplicaSet": "apps/v1", "ReplicationController": "v1", "Web": "scaled.example.org/v1"}
	text := ""
	for kind, apiVersion := range kinds {
		selector := map[string]string{"ReplicaSet": "matchLabels: {a: b}", "ReplicationController": "a: b"}[kind]
		text += "---\napiVersion: " + apiVersion + "\nkind: " + kind + "\nmetadata: {name: x, namespace: $NS, labels: {ours: 'yes'}}\n" +
			"spec: {replicas: 1, selector: {" + selector + "}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: 'i:1'}]}}}\n" +
			"---\napiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: " + strings.ToLower(kind) + ", namespace: $NS}\n" +
			"spec: {maxReplicas: 5, scaleTargetRef: {apiVersion: " + apiVersion + ", kind: " + kind + ", name: x}}\n"
	}
	f.managed("mr", text)
	f.applied("mr", "True/ApplySucceeded")
	for kind, apiVersion := range kinds {
		f.patch(f.get(apiVersion, kind, "x"), map[string]any{"metadata": map[string]any{"labels": map[string]any{"ours": "no"}}, "spec": map[string]any{"replicas": 3}})
	}
	for kind, apiVersion := range kinds {
		f.eventually(func() error {
			if got := f.get(apiVersion, kind, "x").GetLabels()["ours"]; got != "yes" {
				return fmt.Errorf("drift of the %s is not repaired: its label is %s", kind, got)
			}
			return nil
		})
		if got := nested(f.get(apiVersion, kind, "x"), "spec", "replicas"); got != "3" {
			t.Errorf("T4-7/MRM-17: the %s has %s replicas", kind, got)
		}
	}
}

// MRM-12: what the API server allocates stays.
func TestServicesAndServiceAccounts(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	service := func(ports string) string {
		return "---\napiVersion: v1\nkind: Service\nmetadata: {name: s, namespace: $NS}\nspec: {type: NodePort, selector: {a: b}, ports: " + ports + "}\n"
	}
	account := "---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: sa, namespace: $NS}\n"
	f.managed("mr", service("[{name: dns, port: 53, protocol: UDP}, {name: dns-tcp, port: 53}]")+account)
	f.settled("mr")
	s := f.get("v1", "Service", "s")
	ports := func(s *unstructured.Unstructured) map[string]string {
		list, _, _ := unstructured.NestedSlice(s.Object, "spec", "ports")
		result := map[string]string{}
		for _, item := range list {
			port := item.(map[string]any)
			result[fmt.Sprint(port["name"])] = fmt.Sprint(port["nodePort"])
		}
		return result
	}
	before := ports(s)
	f.patch(f.get("v1", "ServiceAccount", "sa"), map[string]any{"imagePullSecrets": []any{map[string]any{"name": "theirs"}}})
	f.secret("mr", map[string]string{"data.yaml": service("[{name: dns-tcp, port: 53, targetPort: 8053}, {name: dns, port: 53, protocol: UDP, targetPort: 8053}]") + account})
	f.eventually(func() error {
		if s = f.get("v1", "Service", "s"); s.GetResourceVersion() == "" || nested(s, "spec", "ports") == "" {
			return fmt.Errorf("no ports")
		}
		list, _, _ := unstructured.NestedSlice(s.Object, "spec", "ports")
		return expect.Holds(fmt.Sprint(list[0].(map[string]any)["targetPort"]) == "8053", "not updated yet")
	})
	if diff := cmp.Diff(before, ports(s)); diff != "" {
		t.Error("MRM-10/MRB-26", diff)
	}
	if got := nested(f.get("v1", "ServiceAccount", "sa"), "imagePullSecrets"); got != "[map[name:theirs]]" {
		t.Error("MRM-14", got)
	}
}

// MR-33: an update that is refused as invalid deletes and re-creates where that is allowed.
func TestInvalidUpdates(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	job := func(annotations, image string) string {
		return "---\napiVersion: batch/v1\nkind: Job\nmetadata: {name: j, namespace: $NS, annotations: {" + annotations + "}}\nspec: {suspend: true, template: {spec: {restartPolicy: Never, containers: [{name: main, image: '" + image + "'}], terminationGracePeriodSeconds: 1}}, completionMode: " + image + "}\n"
	}
	f.managed("job", job("", "NonIndexed")+configMap("immutable", "immutable: true\ndata: {a: b}\n"))
	f.applied("job", "True/ApplySucceeded")
	uid := f.get("batch/v1", "Job", "j").GetUID()
	immutable := f.get("v1", "ConfigMap", "immutable").GetUID()

	f.secret("job", map[string]string{"data.yaml": job("", "Indexed") + configMap("immutable", "immutable: true\ndata: {a: c}\n")})
	f.applied("job", "False/ApplyFailed", "batch/v1/Job/$NS/j", "is invalid")
	f.eventually(func() error {
		if cm := f.exists("v1", "ConfigMap", "immutable"); cm.GetUID() == immutable || nested(cm, "data", "a") != "c" {
			return fmt.Errorf("MR-33: not re-created yet")
		}
		return nil
	})
	expect.Equal(t, f.get("batch/v1", "Job", "j").GetUID(), uid, "MR-33: re-created without being asked to")
	f.secret("job", map[string]string{"data.yaml": job("resources.gardener.cloud/delete-on-invalid-update: 'true', resources.gardener.cloud/deletion-propagation-on-invalid-update: foo", "Indexed")})
	f.rule("MR-34: the message about an invalid policy").applied("job", "False/ApplyFailed", `"foo" is invalid, supported values: [Background Foreground Orphan]`)
	expect.Equal(t, f.get("batch/v1", "Job", "j").GetUID(), uid, "MR-34: deleted with an invalid policy")
	f.secret("job", map[string]string{"data.yaml": job("resources.gardener.cloud/delete-on-invalid-update: 'true', resources.gardener.cloud/deletion-propagation-on-invalid-update: Background", "Indexed")})
	f.applied("job", "True/ApplySucceeded")
	expect.True(t, f.get("batch/v1", "Job", "j").GetUID() != uid, "MR-33: not re-created")
}

// TestIgnoredObjects: objects that are let go of, and objects that are made once.
func TestIgnoredObjects(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	annotated := func(name, key, value string) string {
		return configMap(name, "  annotations: {resources.gardener.cloud/"+key+": '"+value+"'}\ndata: {a: b}\n")
	}
	f.managed("mr", configMap("released", "data: {a: b}\n")+annotated("never", "mode", "Ignore")+annotated("once", "ignore", "T")+annotated("normal", "ignore", "yes"))
	f.applied("mr", "True/ApplySucceeded")
	f.patchMR("mr", map[string]any{"metadata": map[string]any{"annotations": map[string]any{"x": "y"}}})
	f.secret("mr", map[string]string{"data.yaml": annotated("released", "mode", "Ignore") + annotated("once", "ignore", "T") + annotated("normal", "ignore", "yes")})
	f.eventually(func() error {
		if annotations := f.get("v1", "ConfigMap", "released").GetAnnotations(); len(annotations) != 0 {
			return fmt.Errorf("MR-11: origin and description go, annotations are %v", annotations)
		}
		return nil
	})
	expect.Equal(t, f.get("v1", "ConfigMap", "released").GetLabels()[resourcesv1alpha1.LabelManagedBy], "gardener", "MRO-2: managed-by must stay")
	mr := f.settled("mr")
	expect.Equal(t, len(mr.Status.Resources), 2, "BH-MR-8 inventory: got %v", mr.Status.Resources)
	once := f.get("v1", "ConfigMap", "once")
	expect.DeepEqual(t, once.GetLabels(), map[string]string{resourcesv1alpha1.LabelManagedBy: "gardener"}, "MR-30: labels")
	keys := slices.Sorted(maps.Keys(once.GetAnnotations()))
	expect.DeepEqual(t, keys, []string{"resources.gardener.cloud/ignore", resourcesv1alpha1.AnnotationOrigin}, "MR-30: annotations")
	for _, name := range []string{"once", "normal"} {
		f.patch(f.get("v1", "ConfigMap", name), map[string]any{"data": map[string]any{"a": "changed"}})
	}
	f.eventually(func() error {
		if got := nested(f.get("v1", "ConfigMap", "normal"), "data", "a"); got != "b" {
			return fmt.Errorf("MR-30 normal is %s", got)
		}
		return nil
	})
	expect.Equal(t, nested(f.get("v1", "ConfigMap", "once"), "data", "a"), "changed", "MR-30: an ignored object was changed")
	f.must(f.shoot.Delete(f.ctx, once))
	f.exists("v1", "ConfigMap", "once")
	f.secret("mr", map[string]string{"data.yaml": configMap("other")})
	f.gone("v1", "ConfigMap", "once")
	f.get("v1", "ConfigMap", "released")
}
