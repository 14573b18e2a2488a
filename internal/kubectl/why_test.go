package kubectl

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-project/espalier/internal/managedresource/inspect"
	"github.com/espalier-project/espalier/test/golden"
	"github.com/espalier-project/espalier/test/must"
)

var now = time.Date(2026, 11, 24, 18, 0, 0, 0, time.UTC)

func minutesAgo(minutes int) *metav1.Time {
	at := metav1.NewTime(now.Add(-time.Duration(minutes) * time.Minute))
	return &at
}

// fullReport has something to say in each part.
func fullReport() *inspect.Report {
	kubectl, ours := inspect.Writer{Manager: "kubectl-edit", Operation: "Update", Time: minutesAgo(1)}, inspect.Writer{Manager: "resource-manager", Operation: "Update", Time: minutesAgo(90), Ours: true}
	gardenlet := inspect.Writer{Manager: "gardenlet", Operation: "Update", Time: minutesAgo(120)}
	r := &inspect.Report{
		APIVersion: "apps/v1", Kind: "Deployment", Namespace: "kube-system", Name: "dns", Created: minutesAgo(60 * 24 * 3), State: inspect.Differs,
		Says:     "it differs from its manifest in 12 fields",
		Owner:    &inspect.Owner{Namespace: "shoot--a--b", Name: "dns", Class: "resources", Proof: inspect.ByOrigin, Conditions: []string{"ResourcesApplied=True (ApplySucceeded)"}, By: &gardenlet, Deleting: true},
		Manifest: &inspect.Manifest{Secret: "shoot--a--b/dns", Key: "all.yaml.br", Document: 3, By: &gardenlet},
		Differences: []inspect.Difference{
			{Path: "spec.replicas", Live: "3", Wanted: "2", By: &kubectl}, {Path: "spec.template.spec.containers[dns].image", Live: `"dns:2"`, Wanted: `"dns:1"`, By: &kubectl},
			{Path: "metadata.labels.app", Wanted: `"dns"`},
		},
		Health:   "unhealthy: condition \"Available\" has invalid status False\nnext line \x1b[31m",
		Writers:  []inspect.Writer{kubectl, {Manager: "kube-controller-manager", Subresource: "status", Time: minutesAgo(1)}, ours},
		Repairs:  []inspect.Occurrence{{Time: *minutesAgo(5), Reason: "ObjectChanged", Text: `was changed by "kubectl-edit" at spec.replicas; it was repaired`, By: "kubectl-edit"}},
		Fights:   []inspect.Occurrence{{Time: *minutesAgo(5), Reason: "ObjectChanged", Text: "is changed repeatedly"}},
		Deleted:  []inspect.Occurrence{{Time: *minutesAgo(5), Reason: "ObjectsWritten", Text: "a run of ManagedResource shoot--a--b/dns deleted it, because no manifest has the object"}},
		Deletion: inspect.Deletion{Since: minutesAgo(10), Holds: []string{"finalizer example.com/hold (holder)"}},
		Ignored:  []inspect.Ignored{{What: "spec.replicas", Where: "in the manifest", Annotation: "resources.gardener.cloud/preserve-replicas", Value: "true", By: "gardenlet", Since: minutesAgo(120)}},
		Edits:    []inspect.Edit{{Of: "a field of its manifest", Path: "spec.paused"}, {Of: "a label of your own", Path: "metadata.labels.example.com/mine", Stays: true}, {Of: "an annotation of your own", Path: "metadata.annotations.example.com/mine", StaysIfHeld: true}},
		Lasting:  []string{"change document 3 of key all.yaml.br in Secret shoot--a--b/dns"}, NotKnown: []string{"Events were not read"}, Faults: []string{"the object is described twice"},
	}
	for _, name := range strings.Split("abcdefghi", "") {
		r.Differences = append(r.Differences, inspect.Difference{Path: "metadata.annotations." + name, Live: `"x"`})
	}
	return r
}

// CLI-10: reports are printed part by part, colours only where they are wanted, and nothing in them moves the cursor of a terminal.
func TestPrintWhy(t *testing.T) {
	nobody := &inspect.Report{APIVersion: "v1", Kind: "Node", Name: "one", State: inspect.Unmanaged, Says: "no ManagedResource has it", EditsSay: "an edit stays"}
	for file, tc := range map[string]struct {
		report *inspect.Report
		style  style
		format format
	}{
		"why.txt":          {fullReport(), style{}, asText},
		"why-wide.txt":     {fullReport(), style{}, asWide},
		"why-coloured.txt": {fullReport(), style{colours: true}, asText},
		"why.yaml":         {fullReport(), style{}, asYAML},
		"why-nobody.txt":   {nobody, style{}, asText},
		"why-name.txt":     {fullReport(), style{}, asName},
	} {
		t.Run("CLI-10/"+file, func(t *testing.T) {
			var out strings.Builder
			must.Succeed(t, printWhy(&out, tc.style, tc.format, tc.report, now))
			golden.Compare(t, "testdata/"+file, out.String())
		})
	}
}

// TestWhyManagedResource: CLI-55: a ManagedResource is read from the source, and answers with its conditions.
func TestWhyManagedResource(t *testing.T) {
	const object = `{"kind": "ManagedResource", "apiVersion": "resources.gardener.cloud/v1alpha1", "metadata": {"name": "x", "namespace": "n", "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z"},
		"spec": {"secretRefs": []}, "status": {"observedGeneration": 1, "conditions": [
		{"type": "ResourcesApplied", "status": "True", "reason": "ApplySucceeded", "message": "All resources are applied.", "lastTransitionTime": "2026-01-01T00:00:00Z", "lastUpdateTime": "2026-01-01T00:00:00Z"},
		{"type": "ResourcesHealthy", "status": "STATUS", "reason": "R", "message": "M", "lastTransitionTime": "2026-01-01T00:00:00Z", "lastUpdateTime": "2026-01-01T00:00:00Z"}]}}`
	target := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("CLI-55: the target is asked for %s", r.URL) }))
	defer target.Close()
	for status, want := range map[string]int{"True": 0, "False": 1} {
		objects := map[string]string{
			"/apis/resources.gardener.cloud/v1alpha1/namespaces/n/managedresources/x": strings.Replace(object, "STATUS", status, 1),
			"/apis/resources.gardener.cloud/v1alpha1/managedresources":                `{"kind": "ManagedResourceList", "apiVersion": "resources.gardener.cloud/v1alpha1", "metadata": {}, "items": []}`,
		}
		for _, arguments := range []string{"why mr x", "why ManagedResource/x"} {
			code, out, _ := answering(t, objects, append(strings.Fields(arguments), "-n", "n", "--target-server", target.URL)...)
			if code != want || !strings.Contains(out, "\nConditions      ResourcesApplied=True (ApplySucceeded), since ") || !strings.Contains(out, "\n                ResourcesHealthy="+status+" (R), since ") || !strings.Contains(out, ": M\n") {
				t.Errorf("CLI-55/%s: exit code %d:\n%s", arguments, code, out)
			}
		}
	}
}
