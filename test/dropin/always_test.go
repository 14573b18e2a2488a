package dropin

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// configure merges a patch into the configuration of a hosted shoot that is deployed already.
func (a *audited) configure(t *testing.T, namespace string, patch object) {
	t.Helper()
	for _, manifest := range manifests(t, "shoot.yaml", map[string]string{"namespace": namespace, "prefix": ""}) {
		if text(manifest.Object, "data", "config.yaml") == "" {
			continue
		}
		there := a.live(t, "v1", "ConfigMap", namespace, manifest.GetName())
		config := object{}
		must.Succeed(t, yaml.Unmarshal([]byte(text(there.Object, "data", "config.yaml")), &config))
		content, err := yaml.Marshal(merge(config, patch))
		must.Succeed(t, err)
		must.Succeed(t, unstructured.SetNestedField(there.Object, string(content), "data", "config.yaml"))
		there.SetResourceVersion("")
		a.create(t, []*unstructured.Unstructured{there})
	}
}

// MRC-3c, DPL-25, GC-5, R11: with alwaysUpdate, as gardenlet has it, what the reference has left is written once more a round under profile
// contract, whatever it is like, and compared under profile gardener. As nothing differs, nothing changes by that: no conflict, no other version of
// anything, no condition that moves. A ConfigMap that is old enough goes if nobody needs it, and stays if a Deployment says that it does.
func TestTakeoverAlwaysUpdate(t *testing.T) {
	byProfile(t, takeOverAlwaysUpdate)
}

func takeOverAlwaysUpdate(t *testing.T, profile, defaults string) {
	source, target := get(t, seed), get(t, shoot)
	namespace, name := "shoot--dev--"+profile, "always-"+profile
	system := takeOver(t, source, target, namespace, name, "true")
	// The test waits neither ten minutes until they are old, nor half a day from one run of the collector to the next.
	source.configure(t, namespace, object{"controllers": object{"garbageCollector": object{"minimumAge": "0s", "syncPeriod": "15s"}}})
	before, beforeTarget := source.versions(t, namespace), target.versions(t, "kube-system")
	inSource := "system:serviceaccount:" + namespace + ":gardener-resource-manager"
	ofReleases := func(r *request) bool { return writes(r) && r.Object.Name == name }
	already := len(target.requests(t, inTarget, ofReleases))
	conflict := func(r *request) bool { return r.Response.Code == http.StatusConflict && r.Object.Resource != "leases" }
	conflictsBefore := len(target.requests(t, inTarget, conflict))

	p := source.startImage(t, namespace, "gardener-resource-manager", defaults)
	p.ready()
	source.leads(t, namespace, "")
	p.looked(map[string]int{"managedresource": 3, "health|health-progressing": 3, "token-requestor": 3, "garbage-collector": 1})
	after := source.versions(t, namespace)
	for key := range before {
		if profile == "contract" && strings.HasPrefix(key, "resources.gardener.cloud/") {
			after[key] = before[key] // T4-8: it has the conditions of kstatus now.
		}
	}
	expect.DeepEqual(t, after, before, "changed in the source")
	mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: system.name}}
	must.Succeed(t, source.client.Get(t.Context(), client.ObjectKeyFromObject(mr), mr))
	conditions := mr.Status.Conditions
	p.again(t, source, mr)
	expect.DeepEqual(t, mr.Status.Conditions, conditions, "MRS-4: the conditions moved")
	sent := target.requests(t, inTarget, ofReleases)
	if profile == "contract" && len(sent)-already < len(system.objects) {
		t.Errorf("MRC-3c: not all is written, but %v", sent[already:])
	}
	if profile == "gardener" {
		p.watched(source, target, mr)
	}
	eventually(t, patience, func() error {
		err := target.client.Get(t.Context(), client.ObjectKeyFromObject(generation(leftOver(name))), &corev1.ConfigMap{})
		if err == nil {
			return fmt.Errorf("GC-5: %s is still there", leftOver(name))
		}
		return client.IgnoreNotFound(err)
	})
	delete(beforeTarget, "v1/ConfigMap/"+leftOver(name))
	expect.DeepEqual(t, target.versions(t, "kube-system"), beforeTarget, "changed in the target")
	expect.Empty(t, append(source.requests(t, inSource, conflict), target.requests(t, inTarget, conflict)[conflictsBefore:]...),
		"conflicts")
	p.stop()
}
