// Package commandline tests the command lines of the servers and of the client: their verbs, and that they link nothing of each other.
package commandline

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-project/espalier/internal/commandline/admissioncontroller"
	"github.com/espalier-project/espalier/internal/commandline/nodeagentauthorizer"
	"github.com/espalier-project/espalier/internal/commandline/resourcemanager"
	"github.com/espalier-project/espalier/internal/kubectl"
	"github.com/espalier-project/espalier/internal/process"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// TestVerbs: verbs about a configuration are the servers', and verbs about live objects the client's (CLI-60).
func TestVerbs(t *testing.T) {
	for _, tc := range []struct {
		command process.Command
		want    string
	}{
		{resourcemanager.Command(), "completion man rights takeover validate-config version webhooks"},
		{admissioncontroller.Command(), "completion dump man replay rights takeover validate-config version webhooks"},
		{nodeagentauthorizer.Command(), "completion man rights validate-config version"},
		{kubectl.Command(), "check completion confirm diff hold manifests release tree version why"},
	} {
		var got []string
		for _, page := range tc.command.Pages() {
			verb, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(page.Name, tc.command.Name), " "), " ")
			if verb != "" && !slices.Contains(got, verb) {
				got = append(got, verb)
			}
		}
		slices.Sort(got)
		expect.DeepEqual(t, got, strings.Fields(tc.want), "CLI-60: verbs of %s", tc.command.Name)
	}
}

// TestNoServerInTheClient: the client links no server, and no server links a verb of the client (CLI-60).
func TestNoServerInTheClient(t *testing.T) {
	const module = "github.com/espalier-project/espalier/"
	client, server := module+"internal/kubectl", []string{module + "internal/commandline/", module + "internal/executable/"}
	for _, executable := range []string{"cmd/resource-manager", "cmd/admission-controller", "cmd/node-agent-authorizer", "internal/client/kubectl-espalier"} {
		out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", module+executable).Output()
		must.Succeed(t, err)
		packages, isClient := strings.Fields(string(out)), strings.HasPrefix(executable, "internal/client/")
		expect.Equal(t, slices.Contains(packages, client), isClient, "CLI-60: %s links the verbs of the client", executable)
		got := slices.ContainsFunc(packages, func(p string) bool {
			return slices.ContainsFunc(server, func(s string) bool { return strings.HasPrefix(p, s) })
		})
		expect.True(t, got != isClient, "CLI-60: %s links a server: %t", executable, got)
	}
}
