package rules

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/espalier-project/espalier/internal/nodeagentauthorizer/agent"
	"github.com/espalier-project/espalier/test/golden"
)

// legend is the head of the matrix.
const legend = `# A is allowed, - is denied, and e is denied by an error.
# foo-machine has a Node and a Secret, bar-machine only a Secret, and of none-machine nobody knows.
# own objects belong to foo-machine, foreign ones to others, absent ones do not exist, and without an object there is no name.
`

// TestMatrix compares every resource × subresource × namespace × object × agent × verb with a table that was reviewed against the
// contract (9.7), in the notation of its head.
func TestMatrix(t *testing.T) {
	verbs := []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}
	objects := map[string]map[string]string{ // by resource: own, foreign, absent
		"certificatesigningrequests": {"own": "mine", "foreign": "theirs"}, "leases": {"own": "gardener-node-agent-foo-node", "foreign": "gardener-node-agent-other-node"},
		"nodes": {"own": "foo-node", "foreign": "other-node"}, "pods": {"own": "foo-pod", "foreign": "bar-pod"},
		"secrets": {"own": "foo-machine-secret", "foreign": "bar-machine-secret"},
	}
	view := fixture()
	view.pods["kube-system/foo-pod"], view.pods["kube-system/bar-pod"] = "foo-node", "bar-node"
	view.references["bar-machine-secret"] = []agent.Reference{}
	var out strings.Builder
	out.WriteString(legend)
	fmt.Fprintf(&out, "%-12s %-48s %-12s %-8s %s\n", "machine", "resource", "namespace", "object", strings.Join(verbs, " "))
	for _, r := range rules {
		namespaces := []string{"kube-system", "default"}
		if r.resource == "nodes" || r.resource == "certificatesigningrequests" {
			namespaces = []string{""}
		}
		for _, machine := range []string{"foo-machine", "bar-machine", "none-machine"} {
			for _, subresource := range append([]string{""}, append(slices.Clone(r.subresources), "foo")...) {
				for _, namespace := range namespaces {
					for _, object := range []string{"own", "foreign", "absent", ""} {
						name := objects[r.resource][object]
						if name == "" && object != "" {
							name = object
						}
						fmt.Fprintf(&out, "%-12s %-48s %-12s %-8s", machine, strings.Trim(r.group+"/"+r.resource+"/"+subresource, "/"), namespace, object)
						for _, verb := range verbs {
							a := &Authorizer{View: view, ByMachine: true, Log: logr.Discard()}
							decision, _, err := a.Authorize(context.Background(), authorizer.AttributesRecord{
								User: &user.DefaultInfo{Name: UserPrefix + machine, Groups: []string{AgentsGroup}}, Verb: verb, APIGroup: r.group, Resource: r.resource,
								Subresource: subresource, Namespace: namespace, Name: name, ResourceRequest: true,
							})
							cell := "-"
							switch {
							case err != nil:
								cell = "e"
							case decision == authorizer.DecisionAllow:
								cell = "A"
							}
							fmt.Fprintf(&out, " %*s", -len(verb), cell)
						}
						out.WriteString("\n")
					}
				}
			}
		}
	}
	var lines []string
	for _, line := range strings.Split(out.String(), "\n") {
		lines = append(lines, strings.TrimRight(line, " "))
	}
	golden.Compare(t, "testdata/matrix.txt", strings.Join(lines, "\n"))
}
