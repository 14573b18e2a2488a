package rules

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
	"github.com/espalier-project/espalier/test/golden"
)

// legend is the head of the matrix.
const legend = `# A is allowed, and - is no opinion. X/Y is X under readScope All, and Y under Related.
# own objects lead to the client's seed, foreign ones to another one, absent ones do not exist, and without an object there is no name.
`

// TestMatrix_IsAsReviewed compares every resource × subresource × object × client × verb with a table that was reviewed against the contract, so
// that a change of a rule shows all that it changes. Its notation is in its head.
func TestMatrix_IsAsReviewed(t *testing.T) {
	var out strings.Builder
	out.WriteString(legend)
	verbList := append(slices.Clone(verbNames), "foo")
	fmt.Fprintf(&out, "%-9s %-45s %-8s %s\n", "client", "resource", "object", strings.Join(verbList, " "))
	for _, r := range seeds.rules {
		for _, client := range []string{"gardenlet", "extension", "other"} {
			for _, subresource := range append([]string{""}, append(slices.Clone(r.subresources), "foo")...) {
				for _, object := range []string{"own", "foreign", "absent", ""} {
					fmt.Fprintf(&out, "%-9s %-45s %-8s", client, strings.Trim(r.group+"/"+r.resource+"/"+subresource, "/"), object)
					for _, verb := range verbList {
						all, related := cell(r, client, verb, subresource, object, true), cell(r, client, verb, subresource, object, false)
						if all != related {
							all += "/" + related
						}
						fmt.Fprintf(&out, " %*s", -len(verb), all)
					}
					out.WriteString("\n")
				}
			}
		}
	}
	golden.Compare(t, "testdata/matrix.txt", strings.ReplaceAll(out.String(), " \n", "\n"))
}

// cell asks for an object that the garden has (own and foreign, both in the graph) or has not.
func cell(r *rule, client, verb, subresource, object string, readAll bool) string {
	a := newAuthorizer()
	a.ReadAll = readAll
	namespace, name := "n", object
	switch r.resource {
	case "gardenlets":
		namespace = "garden"
	case "seeds":
		namespace, name = "", map[string]string{"own": "seed", "foreign": "other"}[object]
		if object == "absent" {
			name = object
		}
	case "namespaces", "cloudprofiles", "backupbuckets", "projects", "exposureclasses", "controllerdeployments", "controllerinstallations",
		"controllerregistrations", "clusterrolebindings", "certificatesigningrequests":
		namespace = ""
	}
	if !r.free {
		own, foreign := graph.Vertex{Kind: r.kind, Namespace: namespace, Name: "own"}, graph.Vertex{Kind: r.kind, Namespace: namespace, Name: "foreign"}
		if r.kind == relation.Seed {
			a.Graph.Set(relation.SeedVertex("seed"), nil)
			a.Graph.Set(relation.SeedVertex("other"), nil)
		} else {
			lead(a, own.Kind, own.Namespace, own.Name, "seed")
			lead(a, foreign.Kind, foreign.Namespace, foreign.Name, "other")
		}
	}
	decision := decided(a, authorizer.AttributesRecord{
		User: clients[client], Verb: verb, APIGroup: r.group, Resource: r.resource, Subresource: subresource, Namespace: namespace, Name: name, ResourceRequest: true,
	})
	if decision == "allowed" {
		return "A"
	}
	return "-"
}
