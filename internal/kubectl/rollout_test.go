package kubectl

import (
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/rollout"
	"github.com/espalier-project/espalier/test/env/kubeconfig"
)

// former and changed are revisions: the content that is applied, and the one that waits.
var former, changed = strings.Repeat("a", 64), strings.Repeat("b", 64)

// groupMember is a ManagedResource of the group x: its content is let go and unhealthy, or waits.
func groupMember(name string, waits bool) map[string]any {
	condition := func(kind, status, message string) map[string]any {
		return map[string]any{"type": kind, "status": status, "reason": "R", "message": message, "lastTransitionTime": "2026-01-01T00:00:02Z", "lastUpdateTime": "2026-01-01T00:00:02Z"}
	}
	conditions := []any{condition("ResourcesApplied", "True", "m"), condition("ResourcesHealthy", "False", "the Pod does not start")}
	if waits {
		conditions = []any{condition("ResourcesApplied", "True", "m"), condition("ResourcesHealthy", "True", "m"), condition("RolloutHeld", "True", "Revision "+changed+" (now "+former+") waits")}
	}
	return map[string]any{
		"apiVersion": "resources.gardener.cloud/v1alpha1", "kind": "ManagedResource",
		"metadata": map[string]any{"namespace": name, "name": "m", "annotations": map[string]any{
			resourcesv1alpha1.AnnotationRolloutGroup:   "x",
			resourcesv1alpha1.AnnotationRolloutApplied: `{"revision":"` + former + `","time":"2026-01-01T00:00:01Z"}`,
		}},
		"status": map[string]any{"secretsDataChecksum": former, "conditions": conditions},
	}
}

// CLI-31: status tells what resource-manager decides, resume and abort name members with their content.
func TestRollout(t *testing.T) {
	failed, waiting := rollout.TokenOf(types.NamespacedName{Namespace: "n1", Name: "m"}, rollout.Revision(former)), rollout.TokenOf(types.NamespacedName{Namespace: "n2", Name: "m"}, rollout.Revision(changed))
	for name, tc := range map[string]struct {
		word    string
		output  format
		data    map[string]any
		resumed string
		out     []string
		after   map[string]any
		err     string
		found   bool
	}{
		"CLI-31/status":         {word: "status", out: []string{"Roll-out group n/x is halted", "n1/m of wave 1 failed with revision " + former + ": ResourcesHealthy is False, R: the Pod does not start"}, found: true},
		"CLI-31/status as JSON": {word: "status", output: asJSON, out: []string{`"halted": true`, `"managedResource": "n2/m"`, changed + " (now"}, found: true},
		"CLI-31/status of one that was resumed": {
			word: "status", resumed: string(failed + "," + waiting), out: []string{"Roll-out group n/x goes on"},
		},
		"ROL-10/status of one that did not take its turn": {
			word: "status", resumed: string(failed), out: []string{"is halted", "n2/m of wave 2 failed with revision " + changed + ": it did not take its turn within 10m0s"}, found: true,
		},
		"CLI-31/resume": {word: "resume", out: []string{"Roll-out group n/x goes on in spite of 1 members that failed\n"}, after: map[string]any{resourcesv1alpha1.AnnotationRolloutResumed: string(failed)}},
		"CLI-31/abort":  {word: "abort", out: []string{"Roll-out group n/x does not apply what 1 members wait for\n"}, after: map[string]any{resourcesv1alpha1.AnnotationRolloutAborted: string(waiting)}},
		"CLI-31/fault":  {word: "resume", data: map[string]any{"waves": "x"}, err: "ConfigMap n/x: key waves"},
	} {
		t.Run(name, func(t *testing.T) {
			cm := named("v1", "ConfigMap", map[string]any{})
			cm["metadata"].(map[string]any)["labels"] = map[string]any{resourcesv1alpha1.LabelRolloutGroup: ""}
			if tc.resumed != "" {
				cm["metadata"].(map[string]any)["annotations"].(map[string]any)[resourcesv1alpha1.AnnotationRolloutResumed] = tc.resumed
			}
			if cm["data"] = map[string]any{"waves": "[{namespaces: [n1]}]"}; tc.data != nil {
				cm["data"] = tc.data
			}
			store := &annotated{objects: map[string]map[string]any{
				"/api/v1/namespaces/n/configmaps/x": cm,
				"/apis/resources.gardener.cloud/v1alpha1/managedresources": {
					"apiVersion": "resources.gardener.cloud/v1alpha1", "kind": "ManagedResourceList", "metadata": map[string]any{},
					"items": []any{groupMember("n1", false), groupMember("n2", true)},
				},
			}}
			server := httptest.NewServer(store)
			defer server.Close()
			flags, out := &rolloutFlags{output: tc.output}, &strings.Builder{}
			flags.parse(t, "-n", "n", "--kubeconfig", kubeconfig.File(t, server.URL))
			err := flags.run(t.Context(), tc.word, "x", out)
			switch {
			case tc.found != errors.Is(err, somethingFound):
				t.Fatalf("it ends with %v", err)
			case !tc.found && (err == nil) != (tc.err == ""), tc.err != "" && !strings.Contains(err.Error(), tc.err):
				t.Fatal(err)
			}
			for _, want := range tc.out {
				if !strings.Contains(out.String(), want) {
					t.Errorf("it prints %s, want %q", out, want)
				}
			}
			if (tc.after != nil) != (store.patches == 1) {
				t.Errorf("it sent %d patches", store.patches)
			}
			for key, want := range tc.after {
				if got := cm["metadata"].(map[string]any)["annotations"].(map[string]any)[key]; got != want {
					t.Errorf("%s is %v, want %v", key, got, want)
				}
			}
		})
	}
}
