package process

import (
	"strings"
	"testing"

	"github.com/espalier-project/espalier/internal/dryrun"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// CLI-8: a write is one line, with what it is for and the paths that change.
func TestTakeoverReport(t *testing.T) {
	report := takeoverReport{TokensTakenForAccepted: 2, Writes: []dryrun.Write{
		{Cluster: "source", Verb: "patch", Group: "resources.gardener.cloud", Resource: "managedresources", Subresource: "status", Namespace: "n", Name: "m", Controller: "health", Fields: []string{"status.conditions"}},
		{Cluster: "target", Verb: "update", Resource: "configmaps", Namespace: "k", Name: "c", Controller: "managedresource", For: "n/m"},
		{Cluster: "target", Verb: "create", Resource: "namespaces", Name: "x"},
	}}
	for name, tc := range map[string]struct {
		report   takeoverReport
		format   string
		complete bool
		want     string
	}{
		"CLI-8 text": {report, "", true, `source: patch managedresources.resources.gardener.cloud/status n/m (health): status.conditions
target: update configmaps k/c (managedresource n/m): changes nothing
target: create namespaces x
3 writes.
Tokens that were taken for accepted, as to ask the API server is a write: 2.
`},
		"CLI-8 nothing":     {takeoverReport{}, "", true, "No writes.\n"},
		"CLI-8 ended early": {takeoverReport{}, "", false, "0 writes until the pass ended early.\n"},
		"CLI-8 yaml":        {takeoverReport{Writes: []dryrun.Write{}}, "yaml", true, "writes: []\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			must.Succeed(t, tc.report.print(&out, OutputFormat(tc.format), tc.complete))
			expect.DeepEqual(t, out.String(), tc.want)
		})
	}
}
