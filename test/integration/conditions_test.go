package integration

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/test/env/harness"
	"github.com/espalier-project/espalier/test/expect"
)

// TestPrinterColumns: what kubectl get mr shows.
func TestPrinterColumns(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	clientset, err := kubernetes.NewForConfig(landscape.SeedREST)
	f.must(err)
	raw, err := clientset.RESTClient().Get().AbsPath("/apis/resources.gardener.cloud/v1alpha1/namespaces", f.ns, "managedresources").
		SetHeader("Accept", "application/json;as=Table;g=meta.k8s.io;v=v1").DoRaw(f.ctx)
	f.must(err)
	kinds, err := clientset.Discovery().ServerResourcesForGroupVersion("resources.gardener.cloud/v1alpha1")
	f.must(err)
	served := map[string]metav1.APIResource{}
	for _, kind := range kinds.APIResources {
		served[kind.Name] = kind
	}
	if got := served["managedresources"]; got.Kind != "ManagedResource" || got.SingularName != "managedresource" || !got.Namespaced || fmt.Sprint(got.ShortNames) != "[mr]" {
		t.Errorf("MRA-1/HLP-31: got %+v", got)
	}
	if _, found := served["managedresources/status"]; !found || len(served) != 2 {
		t.Errorf("MRA-2: want the subresource status alone, got %v", served)
	}
	table := &metav1.Table{}
	f.must(json.Unmarshal(raw, table))
	var names []string
	for _, column := range table.ColumnDefinitions {
		names = append(names, fmt.Sprintf("%s %d", column.Name, column.Priority))
	}
	if diff := cmp.Diff([]string{"Name 0", "Class 0", "Applied 0", "Healthy 0", "Progressing 0", "Age 0"}, names[:min(6, len(names))]); diff != "" {
		t.Error("MRA-3", diff)
	}
	if diff := cmp.Diff([]string{"Message 0", "Apply Message 1", "Health Message 1", "Progress Message 1", "Checksum 1"}, names[min(6, len(names)):]); diff != "" {
		t.Error("MRA-12", diff)
	}
}

// MRS-9: how the conditions move when the content changes.
func TestTransitions(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.managed("mr", configMap("cm", "data: {a: b}\n"))
	before := f.settled("mr")
	watching, err := client.NewWithWatch(landscape.SeedREST, client.Options{Scheme: harness.Scheme()})
	f.must(err)
	w, err := watching.Watch(f.ctx, &resourcesv1alpha1.ManagedResourceList{}, client.InNamespace(f.ns))
	f.must(err)
	defer w.Stop()
	f.secret("mr", map[string]string{"data.yaml": configMap("cm", "data: {a: c}\n")})
	seen := ""
	for event := range w.ResultChan() {
		mr, ok := event.Object.(*resourcesv1alpha1.ManagedResource)
		if !ok {
			continue
		}
		applied, _ := harness.Condition(mr, resourcesv1alpha1.ResourcesApplied)
		healthy, _ := harness.Condition(mr, resourcesv1alpha1.ResourcesHealthy)
		progressing, _ := harness.Condition(mr, resourcesv1alpha1.ResourcesProgressing)
		if strings.HasPrefix(applied, "Progressing") && (healthy != "Unknown/ChecksPending" || progressing != "Unknown/ChecksPending") {
			t.Errorf("MRS-5/HLP-24: while being applied health is %s, %s", healthy, progressing)
		}
		if !strings.HasSuffix(seen, applied+" ") {
			seen += applied + " "
		}
		if harness.Settled(mr) == nil && *mr.Status.SecretsDataChecksum != *before.Status.SecretsDataChecksum {
			break
		}
	}
	expect.Equal(t, seen, "True/ApplySucceeded Progressing/ApplyProgressing True/ApplySucceeded ", "MR-9")
	expect.Equal(t, nested(f.get("v1", "ConfigMap", "cm"), "data", "a"), "c", "BH-MR-2: the Secret was changed in place, and the object")
}

// MRH-2: a failure on unchanged content, and no health before anything was applied.
func TestFailureOnUnchangedContent(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	other := f.ns + "-other"
	f.must(f.shoot.Create(f.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: other}}))
	f.managed("mr", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm, namespace: "+other+"}\n")
	f.settled("mr")
	f.must(f.shoot.Delete(f.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: other}}))
	mr := f.applied("mr", "False/ApplyFailed", other)
	for conditionType, want := range map[resourcesv1alpha1.ConditionType]string{
		resourcesv1alpha1.ResourcesHealthy: "True/ResourcesHealthy", resourcesv1alpha1.ResourcesProgressing: "False/ResourcesRolledOut",
	} {
		expect.Equal(t, expect.First(harness.Condition(mr, conditionType)), want, "MRS-6: %s", conditionType)
	}

	f.managed("never", "apiVersion: unknown.io/v1\nkind: Foo\nmetadata: {name: x}\n")
	mr = f.applied("never", "False/ApplyFailed")
	expect.Equal(t, expect.First(harness.Condition(mr, resourcesv1alpha1.ResourcesHealthy)), "Unknown/ChecksPending",
		"MRH-2: ResourcesHealthy")
	expect.Equal(t, mr.Status.ObservedGeneration, 0, "MRS-6: observedGeneration")
	transition := func() string {
		mr := f.mr("never")
		for _, c := range mr.Status.Conditions {
			if c.Type == resourcesv1alpha1.ResourcesApplied {
				return c.LastTransitionTime.String() + string(c.Status)
			}
		}
		return ""
	}
	first := transition()
	f.stays(1500*time.Millisecond, func() error { // Some retries happen in that time.
		if now := transition(); now != first {
			return fmt.Errorf("MRB-19: the condition moved from %s to %s", first, now)
		}
		return nil
	})
}

// MRX-13: what a cloud provider says about a Service that does not go.
func TestEventsOfAPendingService(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.managed("mr", "apiVersion: v1\nkind: Service\nmetadata: {name: s, namespace: $NS, finalizers: [example.org/hold]}\nspec: {selector: {a: b}, ports: [{port: 1}]}\n")
	f.settled("mr")
	service := f.get("v1", "Service", "s")
	for i := range 6 {
		f.must(f.shoot.Create(f.ctx, &corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{Namespace: f.ns, GenerateName: "e-"},
			InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Service", Namespace: f.ns, Name: "s", UID: service.GetUID()},
			Type:           corev1.EventTypeWarning, Reason: "R", Message: fmt.Sprint("message ", i), Source: corev1.EventSource{Component: "cloud"},
			FirstTimestamp: metav1.NewTime(time.Now().Add(time.Duration(i-10) * time.Minute)), LastTimestamp: metav1.NewTime(time.Now().Add(time.Duration(i-10) * time.Minute)),
		}))
	}
	f.must(f.seed.Delete(f.ctx, f.mr("mr")))
	mr := f.applied("mr", "Progressing/DeletionPending", "\n\n-> Events:\n* cloud reported 9m", "message 5")
	_, message := harness.Condition(mr, resourcesv1alpha1.ResourcesApplied)
	expect.True(t, strings.Count(message, "cloud reported") == 5 && !strings.Contains(message, "message 0"),
		"MRX-13: want the newest five: %s", message)
	f.patch(service, map[string]any{"metadata": map[string]any{"finalizers": nil}})
	f.mrGone("mr")
}

const prometheusCRD = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: prometheuses.monitoring.coreos.com}
spec:
  group: monitoring.coreos.com
  scope: Namespaced
  names: {kind: Prometheus, plural: prometheuses, singular: prometheus, listKind: PrometheusList}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// TestKindsThatComeLater: a kind with rules of health whose CRD comes after the start of the process.
func TestKindsThatComeLater(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.managed("crd", prometheusCRD)
	f.settled("crd")
	f.managed("mr", "apiVersion: monitoring.coreos.com/v1\nkind: Prometheus\nmetadata: {name: p, namespace: $NS}\nspec: {replicas: 1}\n")
	f.rule("MRB-28: the health of a kind that came later").condition("mr", resourcesv1alpha1.ResourcesHealthy, "False/PrometheusUnhealthy", `condition "Available" is missing`)
	f.rule("MRT-12: the roll-out of a kind that came later").condition("mr", resourcesv1alpha1.ResourcesProgressing, "True/PrometheusProgressing", `condition "Reconciled" is missing`)
	prometheus := f.get("monitoring.coreos.com/v1", "Prometheus", "p")
	condition := func(conditionType string) map[string]any {
		return map[string]any{"type": conditionType, "status": "True", "observedGeneration": prometheus.GetGeneration()}
	}
	f.must(f.shoot.Status().Patch(f.ctx, prometheus, harness.MergePatch(map[string]any{"status": map[string]any{
		"availableReplicas": 1, "updatedReplicas": 1, "conditions": []any{condition("Available"), condition("Reconciled")}}})))
	f.settled("mr")
	f.must(f.seed.Delete(f.ctx, f.mr("mr")))
	f.mrGone("mr")
}

// OBS-8, README: nothing of a Secret's content is in the log, whatever goes wrong.
func TestNoSecretContentInLogs(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const secret = "correct-horse-battery-staple"
	f.managed("mr", "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: $NS}\nstringData: {password: "+secret+"}\n---\n"+secret+": [\n")
	f.applied("mr", "False/DecodingFailed")
	f.exists("v1", "Secret", "s")
	expect.False(t, strings.Contains(running.Output(), secret), "OBS-8: the log shows the content of a Secret")
	if _, message := harness.Condition(f.mr("mr"), resourcesv1alpha1.ResourcesApplied); strings.Contains(message, secret) {
		t.Errorf("the condition shows the content of a Secret: %s", message)
	}
}

// Failures, recoveries and what a run wrote are recorded as Events, successes are not.
func TestEventsOfTransitions(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.must(f.seed.Create(f.ctx, harness.ManagedResource(f.ns, "mr", "later")))
	f.applied("mr", "False/CannotReadSecret")
	f.secret("later", map[string]string{"a": configMap("a")})
	f.settled("mr")
	f.eventually(func() error {
		events := &corev1.EventList{}
		if err := f.seed.List(f.ctx, events, client.InNamespace(f.ns)); err != nil {
			return err
		}
		seen := map[string]int{}
		for _, e := range events.Items {
			seen[e.Type+"/"+e.Reason]++
		}
		if diff := cmp.Diff(map[string]int{"Warning/CannotReadSecret": 1, "Normal/ApplySucceeded": 1, "Normal/ObjectsWritten": 1}, seen); diff != "" {
			return fmt.Errorf("events: %s", diff)
		}
		return nil
	})
}
