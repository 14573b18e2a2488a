package kubectl

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/inspect"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/golden"
	"github.com/espalier-project/espalier/test/must"
)

func configMap(value string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "web", "namespace": "default"}, "data": map[string]any{"colour": value},
	}}
}

// CLI-12: a note names what keeps the next run from its changes.
func TestNoteOfWaiting(t *testing.T) {
	for want, c := range map[string]resourcesv1alpha1.Condition{
		"confirmation": {Type: resourcesv1alpha1.ResourcesApplied, Status: resourcesv1alpha1.ConditionFalse, Reason: resourcesv1alpha1.ReasonDeletionHeld},
	} {
		mr := &resourcesv1alpha1.ManagedResource{Status: resourcesv1alpha1.ManagedResourceStatus{Conditions: []resourcesv1alpha1.Condition{c}}}
		if got := note(mr); !strings.HasSuffix(got, want+": the next run does not make these changes") && want != "confirmation" || !strings.Contains(got, want) {
			t.Errorf("CLI-12/%s: %q", want, got)
		}
	}
}

// CLI-12: changes are printed as kubectl diff prints them; what has no forms to compare is told beside them.
func TestPrintDiff(t *testing.T) {
	change := func(action inspect.Action, live, wanted *unstructured.Unstructured, why string) inspect.Change {
		return inspect.Change{Action: action, APIVersion: "v1", Kind: "ConfigMap", Namespace: "default", Name: "web", Why: why, Live: live, Wanted: wanted,
			Differences: []inspect.Difference{{Path: "data.colour", Live: `"blue"`, Wanted: `"red"`}}}
	}
	found := &differing{Notes: []string{"ManagedResource garden/web is being deleted"}, Changes: []inspect.Change{
		change(inspect.Delete, configMap("red"), nil, "no manifest describes it any more"), change(inspect.Create, nil, configMap("red"), ""),
		change(inspect.Update, configMap("blue"), configMap("red"), ""), change(inspect.Leave, nil, nil, "no manifest describes it any more, but it stays"),
		{Action: inspect.HandOver, APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "web", Why: "garden/other has it, too"},
	}}
	for file, tc := range map[string]struct {
		style  style
		format format
	}{
		"diff.txt": {style{}, asText}, "diff-coloured.txt": {style{colours: true}, asText}, "diff-name.txt": {style{}, asName}, "diff.json": {style{}, asJSON},
	} {
		t.Run("CLI-12/"+file, func(t *testing.T) {
			var out, notes strings.Builder
			must.Succeed(t, printDiff(&out, &notes, tc.style, tc.format, found))
			golden.Compare(t, "testdata/"+file, out.String()+"stderr:\n"+notes.String())
		})
	}
	for name, tc := range map[string]struct {
		found *differing
		want  string
	}{
		"CLI-12/nothing":          {&differing{}, ""},
		"CLI-12/something":        {found, "exit code 1"},
		"CLI-12/nothing written":  {&differing{Changes: []inspect.Change{{Action: inspect.Leave}}}, ""},
		"CLI-12/not known":        {&differing{Changes: found.Changes, Faults: []string{"x was not read"}}, "the answer is not complete: x was not read"},
		"CLI-12/only what is not": {&differing{Faults: []string{"a", "b"}}, "the answer is not complete: a; b"},
	} {
		got := ""
		if err := tc.found.exitCode(); err != nil {
			got = err.Error()
		}
		expect.Equal(t, got, tc.want, "%s", name)
	}
}

// CLI-13: a tree is a table whose first column is indented; classes are headed with -A.
func TestPrintTree(t *testing.T) {
	branches := []inspect.Branch{
		{Namespace: "garden", Name: "dns", Class: "resources", Level: inspect.Problem, State: "unhealthy (DeploymentUnhealthy): " + strings.Repeat("a long story ", 10), Created: *minutesAgo(600),
			Leaves: []inspect.Leaf{
				{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "kube-system", Name: "dns", Level: inspect.Problem, State: "unhealthy: no replicas", Created: minutesAgo(600)},
				{APIVersion: "v1", Kind: "ConfigMap", Namespace: "kube-system", Name: "dns", Level: inspect.Fine, State: "there", Created: minutesAgo(600), Drift: &inspect.Occurrence{Time: *minutesAgo(3), By: "kubectl-edit"}},
				{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "dns", Level: inspect.Underway, State: "being deleted, held by x/y"},
			}},
		{Namespace: "garden", Name: "web", Class: "seed", Level: inspect.Fine, State: "ignored", Created: *minutesAgo(3),
			Ignored: []inspect.Ignored{{Annotation: "resources.gardener.cloud/ignore", By: "kubectl-annotate"}}},
	}
	for file, p := range map[string]treePrinter{
		"tree.txt": {}, "tree-wide.txt": {format: asWide}, "tree-classes.txt": {byClass: true}, "tree-coloured.txt": {style: style{colours: true}}, "tree-name.txt": {format: asName}, "tree.yaml": {format: asYAML},
	} {
		t.Run("CLI-13/"+file, func(t *testing.T) {
			var out strings.Builder
			p.out = &out
			must.Succeed(t, p.print(branches, now))
			golden.Compare(t, "testdata/"+file, out.String())
		})
	}
}
