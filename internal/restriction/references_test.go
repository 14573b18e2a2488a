package restriction

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/yaml"
)

// TestReferences: with references Checked, a client names in its own objects only what it reaches anyway.
func TestReferences(t *testing.T) {
	ref := func(name string) string {
		return "{apiVersion: v1, kind: Secret, namespace: garden, name: " + name + "}"
	}
	config := func(backup string) string {
		return "{apiVersion: gardenlet.config.gardener.cloud/v1alpha1, kind: GardenletConfiguration, seedConfig: {spec: {backup: {credentialsRef: " + ref(backup) + "}}}}"
	}
	g := garden{"seeds seed": "{spec: {backup: {credentialsRef: " + ref("own") + "}}}", "seeds other": "{spec: {backup: {credentialsRef: " + ref("foreign") + "}}}"}
	refused := func(name string) string {
		return `403 object refers to Secret:garden/` + name + `, which does not lead to seed "seed"`
	}
	for name, c := range map[string]struct{ question, old, object, want string }{
		"GE-1, own":                  {"G CREATE backupbuckets b", "", "{spec: {seedName: seed, credentialsRef: " + ref("own") + "}}", "200 "},
		"GE-1, foreign":              {"G CREATE backupbuckets b", "", "{spec: {seedName: seed, credentialsRef: " + ref("foreign") + "}}", refused("foreign")},
		"GE-1, nobody's":             {"G UPDATE backupbuckets b", "{spec: {seedName: seed}}", "{spec: {seedName: seed, secretRef: {namespace: garden, name: nobody}}}", refused("nobody")},
		"GE-1, as before":            {"G UPDATE backupbuckets b", "{spec: {credentialsRef: " + ref("new") + "}}", "{spec: {seedName: seed, credentialsRef: " + ref("new") + "}}", "200 "},
		"RES-11 comes first":         {"G CREATE backupbuckets b", "", "{spec: {seedName: other, credentialsRef: " + ref("own") + "}}", belongs},
		"GE-3, the generated Secret": {"G UPDATE backupbuckets b", "{}", "{status: {generatedSecretRef: {namespace: garden, name: generated-bucket-b}}}", "200 "},
		"GE-3, another":              {"G UPDATE backupbuckets b", "{}", "{status: {generatedSecretRef: {namespace: garden, name: generated-bucket-c}}}", refused("generated-bucket-c")},
		"GE-21, own":                 {"G UPDATE gardenlets garden/seed", "{}", "{spec: {config: " + config("own") + "}}", "200 "},
		"GE-21, foreign":             {"G UPDATE gardenlets garden/seed", "{}", "{spec: {config: " + config("foreign") + "}}", refused("foreign")},
		"GE-26, foreign":             {"G UPDATE managedseeds garden/m", "{}", "{spec: {gardenlet: {bootstrap: BootstrapToken, config: " + config("foreign") + "}}}", refused("foreign")},
		"GE-29, by its name":         {"G UPDATE managedseeds garden/m", "{}", "{spec: {gardenlet: {bootstrap: BootstrapToken, config: " + config("own") + "}}}", "200 "},
		"GE-38, foreign":             {"G CREATE seeds seed", "", "{metadata: {name: seed}, spec: {dns: {provider: {credentialsRef: " + ref("foreign") + "}}}}", refused("foreign")},
		"GE-41, WorkloadIdentity": {"G UPDATE seeds seed", "{}", "{metadata: {name: seed}, spec: {resources: [{resourceRef: {apiVersion: security.gardener.cloud/v1alpha1, kind: WorkloadIdentity, name: x}}]}}",
			`403 object refers to WorkloadIdentity:garden/x, which does not lead to seed "seed"`},
	} {
		t.Run(name, func(t *testing.T) {
			reader := &counting{garden: garden{}}
			h := &Handler{Reader: reader, Graph: graphOf(t, g), Checked: true, Clock: clocktesting.NewFakePassiveClock(now), Log: logr.Discard()}
			r := ask(t, c.question, c.object)
			if c.old != "" {
				raw, err := yaml.YAMLToJSON([]byte(c.old))
				if err != nil {
					t.Fatal(err)
				}
				r.OldObject.Raw = raw
			}
			response := respond(h.Decide, r)
			if got := fmt.Sprintf("%d %s", response.Result.Code, response.Result.Message); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
			h.Checked = false
			if response := respond(h.Decide, r); strings.Contains(response.Result.Message, "refers to") {
				t.Errorf("with references Trusted: got %s", response.Result.Message)
			}
		})
	}
}
