package restriction

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/espalier-project/espalier/test/builders"
)

// TestReferences: with references Checked, a client names in its own objects only what it reaches anyway.
func TestReferences(t *testing.T) {
	ref := func(name string) builders.Reference { return builders.Ref("Secret", "garden/"+name) }
	bucket := func() *builders.Object { return builders.BackupBucket("b").OnSeed("seed") }
	seed := func() *builders.Object { return builders.Seed("seed") }
	gardenlet := builders.Gardenlet("garden", "seed")
	managed := func(backup string) *builders.Object {
		return builders.ManagedSeed("garden", "m", "").Bootstrap("BootstrapToken").SeedSpec("backup.credentialsRef", ref(backup))
	}
	const credentials = "spec.credentialsRef"
	g := garden{"seeds seed": text(seed().With("spec.backup.credentialsRef", ref("own"))), "seeds other": text(builders.Seed("other").With("spec.backup.credentialsRef", ref("foreign")))}
	refused := func(name string) string {
		return `403 object refers to Secret:garden/` + name + `, which does not lead to seed "seed"`
	}
	for name, c := range map[string]struct {
		question    string
		old, object *builders.Object
		want        string
	}{
		"GE-1, own":                  {"G CREATE backupbuckets b", nil, bucket().With(credentials, ref("own")), "200 "},
		"GE-1, foreign":              {"G CREATE backupbuckets b", nil, bucket().With(credentials, ref("foreign")), refused("foreign")},
		"GE-1, nobody's":             {"G UPDATE backupbuckets b", bucket(), bucket().With("spec.secretRef", builders.At("garden/nobody")), refused("nobody")},
		"GE-1, as before":            {"G UPDATE backupbuckets b", bucket().With(credentials, ref("new")), bucket().With(credentials, ref("new")), "200 "},
		"RES-11 comes first":         {"G CREATE backupbuckets b", nil, bucket().OnSeed("other").With(credentials, ref("own")), belongs},
		"GE-3, the generated Secret": {"G UPDATE backupbuckets b", bucket(), bucket().With("status.generatedSecretRef", builders.At("garden/generated-bucket-b")), "200 "},
		"GE-3, another":              {"G UPDATE backupbuckets b", bucket(), bucket().With("status.generatedSecretRef", builders.At("garden/generated-bucket-c")), refused("generated-bucket-c")},
		"GE-21, own":                 {"G UPDATE gardenlets garden/seed", gardenlet, gardenlet.But().SeedSpec("backup.credentialsRef", ref("own")), "200 "},
		"GE-21, foreign":             {"G UPDATE gardenlets garden/seed", gardenlet, gardenlet.But().SeedSpec("backup.credentialsRef", ref("foreign")), refused("foreign")},
		"GE-26, foreign":             {"G UPDATE managedseeds garden/m", builders.ManagedSeed("garden", "m", ""), managed("foreign"), refused("foreign")},
		"GE-29, by its name":         {"G UPDATE managedseeds garden/m", builders.ManagedSeed("garden", "m", ""), managed("own"), "200 "},
		"GE-38, foreign":             {"G CREATE seeds seed", nil, seed().With("spec.dns.provider.credentialsRef", ref("foreign")), refused("foreign")},
		"GE-41, WorkloadIdentity": {
			"G UPDATE seeds seed", seed(), seed().Resource(builders.Ref("WorkloadIdentity", "x")), `403 object refers to WorkloadIdentity:garden/x, which does not lead to seed "seed"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			reader := &counting{garden: garden{}}
			h := &Handler{Reader: reader, Graph: graphOf(t, g), Checked: true, Clock: clocktesting.NewFakePassiveClock(now), Log: logr.Discard()}
			r := ask(t, c.question, text(c.object))
			if c.old != nil {
				r.OldObject.Raw = c.old.JSON()
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
