package restriction

import (
	"fmt"
	"testing"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/gen/builders"
)

const (
	credentials = "spec.credentialsRef"
	generated   = "status.generatedSecretRef"
	refused     = "403 object refers to "
)

func ref(name string) builders.Reference { return builders.Ref("Secret", "garden/"+name) }

// updated answers an update, or a creation if there is no old object.
func updated(t *testing.T, g garden, checked bool, question string, old, object *builders.Object) (string, int) {
	t.Helper()
	reader := &counting{garden: g}
	h := &Handler{Reader: reader, Graph: graphOf(t, g), Shoots: shootsOf(t, g), Checked: checked, Clock: clocktesting.NewFakePassiveClock(now), Log: logr.Discard()}
	decide := h.Decide
	if bySelfHostedShoot(question) {
		decide = SelfHosted{h}.Decide
	}
	r := ask(t, question, text(object))
	if old != nil {
		r.OldObject.Raw = old.JSON()
	}
	response := respond(decide, r)
	reads := len(reader.read)
	if response.Allowed {
		neverAllowedUnreadable(t, decide, r)
		return "allowed", reads
	}
	return fmt.Sprintf("%d %s", response.Result.Code, response.Result.Message), len(reader.read)
}

// neverAllowedUnreadable checks that an update of which the object, or the object before, cannot be read is refused if it would be refused with
// another content.
func neverAllowedUnreadable(t *testing.T, decide decide, r *admissionv1.AdmissionRequest) {
	t.Helper()
	for what, raw := range map[string]*[]byte{"the object": &r.Object.Raw, "the object before": &r.OldObject.Raw} {
		was := *raw
		*raw = []byte("{}")
		if !respond(decide, r).Allowed {
			*raw = []byte("{]")
			got := respond(decide, r)
			expect.True(t, !got.Allowed && got.Result.Code >= 400, "RES-6: %s cannot be read: got %+v", what, got)
		}
		*raw = was
	}
}

// TestReferences: a client names in its own objects only what it reaches anyway (T3-4), in every mode, but for the objects with which a
// gardenlet registers itself.
func TestReferences(t *testing.T) {
	bucket := func() *builders.Object { return builders.BackupBucket("b").OnSeed("seed") }
	seed := func() *builders.Object { return builders.Seed("seed") }
	shoot := func() *builders.Object { return builders.Shoot("garden", "s").OnSeed("seed").Resource(ref("own")) }
	gardenlet := builders.Gardenlet("garden", "seed")
	managed := func() *builders.Object { return builders.ManagedSeed("garden", "m", "s").Bootstrap("BootstrapToken") }
	account := func(secrets ...string) *builders.Object {
		return builders.ServiceAccount("garden", "gardenlet-bootstrap-m", secrets...)
	}
	installation := func(deployment string) *builders.Object {
		return builders.ControllerInstallation("i", "r").With("spec.seedRef.name", "seed").With("spec.deploymentRef.name", deployment)
	}
	g := garden{
		"seeds seed":                text(seed().With("spec.backup.credentialsRef", ref("own")).Resource(ref("read-only"))),
		"seeds other":               text(builders.Seed("other").With("spec.backup.credentialsRef", ref("foreign"))),
		"shoots garden/s":           text(shoot()),
		"shoots garden/t":           text(builders.Shoot("garden", "t").OnSeed("other").Resource(ref("foreign"))),
		"managedseeds garden/m":     text(managed()),
		"controllerinstallations i": text(installation("d")),
	}
	const anyMode, onlyChecked = false, true
	foreign := refused + `Secret:garden/foreign, which does not lead to seed "seed"`
	for name, c := range map[string]struct {
		checked     bool
		question    string
		old, object *builders.Object
		want        string
	}{
		"GE-1/own":                                {anyMode, "gardenlet CREATE backupbuckets b", nil, bucket().With(credentials, ref("own")), "allowed"},
		"T3-4/GE-1 foreign":                       {anyMode, "gardenlet CREATE backupbuckets b", nil, bucket().With(credentials, ref("foreign")), foreign},
		"GE-1/nobody's":                           {anyMode, "gardenlet UPDATE backupbuckets b", bucket(), bucket().With("spec.secretRef", builders.At("garden/foreign")), foreign},
		"GE-1/as before":                          {anyMode, "gardenlet UPDATE backupbuckets b", bucket().With(credentials, ref("foreign")), bucket().With(credentials, ref("foreign")).Annotated("a", "b"), "allowed"},
		"GE-1/RES-11 comes first":                 {anyMode, "gardenlet CREATE backupbuckets b", nil, bucket().OnSeed("other").With(credentials, ref("own")), belongs},
		"GE-3/the generated Secret":               {anyMode, "gardenlet UPDATE backupbuckets b", bucket(), bucket().With(generated, builders.At("garden/generated-bucket-b")), "allowed"},
		"GE-3/another":                            {anyMode, "gardenlet UPDATE backupbuckets b", bucket(), bucket().With(generated, builders.At("garden/generated-bucket-c")), refused + `Secret:garden/generated-bucket-c, which does not lead to seed "seed"`},
		"GE-3/one that is read only":              {anyMode, "extension UPDATE backupbuckets b", bucket(), bucket().With(generated, builders.At("garden/own")), refused + `Secret:garden/own, which is only read by seed "seed"`},
		"GE-4/a bucket of seed and shoot":         {anyMode, "gardenlet CREATE backupbuckets b", nil, bucket().With("spec.shootRef", builders.At("garden/t")), `403 object would belong to Shoot:garden/t, which is not seed "seed"`},
		"GE-4/a bucket is given away":             {anyMode, "gardenlet UPDATE backupbuckets b", bucket(), builders.BackupBucket("b").With("spec.shootRef", builders.At("garden/t")), `403 object would belong to Shoot:garden/t, which is not seed "seed"`},
		"GE-14/another registration":              {anyMode, "gardenlet UPDATE controllerinstallations i", installation("d"), installation("d").With("spec.registrationRef.name", "z"), refused + `ControllerRegistration:z, which does not lead to seed "seed"`},
		"GE-15/an installation is given away":     {anyMode, "gardenlet UPDATE controllerinstallations i", installation("d"), installation("d").With("spec.seedRef.name", "other"), `403 object would belong to Seed:other, which is not seed "seed"`},
		"GE-16/another deployment":                {anyMode, "gardenlet UPDATE controllerinstallations i", installation("d"), installation("z"), refused + `ControllerDeployment:z, which does not lead to seed "seed"`},
		"GE-16/a finalizer":                       {anyMode, "gardenlet UPDATE controllerinstallations i", installation("d"), installation("d").Annotated("a", "b"), "allowed"},
		"GE-17/an installation of a shoot":        {anyMode, "gardenlet UPDATE controllerinstallations i", installation("d"), installation("d").With("spec.shootRef", builders.At("garden/s")), `403 object would belong to Shoot:garden/s, which is not seed "seed"`},
		"GE-21/own, created":                      {onlyChecked, "gardenlet CREATE gardenlets garden/seed", nil, gardenlet.But().SeedSpec("backup.credentialsRef", ref("own")), "allowed"},
		"GE-21/foreign, created":                  {onlyChecked, "gardenlet CREATE gardenlets garden/seed", nil, gardenlet.But().SeedSpec("backup.credentialsRef", ref("foreign")), foreign},
		"GE-21/own, changed":                      {anyMode, "gardenlet UPDATE gardenlets garden/seed", gardenlet, gardenlet.But().SeedSpec("backup.credentialsRef", ref("own")), "allowed"},
		"GE-21/foreign, changed":                  {anyMode, "gardenlet UPDATE gardenlets garden/seed", gardenlet, gardenlet.But().SeedSpec("backup.credentialsRef", ref("foreign")), foreign},
		"GE-23/foreign":                           {anyMode, "gardenlet UPDATE gardenlets garden/seed", gardenlet, gardenlet.But().Pulls("foreign", ""), foreign},
		"GE-24/a ManagedSeed is given away":       {anyMode, "gardenlet UPDATE managedseeds garden/m", managed(), builders.ManagedSeed("garden", "m", "t").Bootstrap("BootstrapToken"), `403 object would belong to Shoot:garden/t, which is not seed "seed"`},
		"GE-26/foreign":                           {anyMode, "gardenlet UPDATE managedseeds garden/m", managed(), managed().SeedSpec("backup.credentialsRef", ref("foreign")), foreign},
		"GE-26/as before":                         {anyMode, "gardenlet UPDATE managedseeds garden/m", managed().SeedSpec("backup.credentialsRef", ref("foreign")), managed().SeedSpec("backup.credentialsRef", ref("foreign")).Annotated("a", "b"), "allowed"},
		"GE-28/foreign":                           {anyMode, "gardenlet UPDATE managedseeds garden/m", managed(), managed().SeedSpec("resources", []any{refers(ref("foreign"))}), foreign},
		"GE-29/its annotation":                    {anyMode, "gardenlet UPDATE managedseeds garden/m", managed(), managed().Annotated("gardener.cloud/operation", "renew-kubeconfig"), "allowed"},
		"GE-33/a Secret of a ServiceAccount":      {anyMode, "gardenlet UPDATE serviceaccounts garden/gardenlet-bootstrap-m", account(), account("foreign"), foreign},
		"GE-33/one that is created with it":       {anyMode, "gardenlet CREATE serviceaccounts garden/gardenlet-bootstrap-m", nil, account("foreign"), foreign},
		"GE-33/another ServiceAccount":            {anyMode, "gardenlet UPDATE serviceaccounts seed-seed/x", builders.ServiceAccount("seed-seed", "x"), builders.ServiceAccount("seed-seed", "x", "token"), "allowed"},
		"GE-38/foreign":                           {onlyChecked, "gardenlet UPDATE seeds seed", seed(), seed().With("spec.dns.provider.credentialsRef", ref("foreign")), foreign},
		"GE-41/WorkloadIdentity":                  {onlyChecked, "gardenlet UPDATE seeds seed", seed(), seed().Resource(builders.Ref("WorkloadIdentity", "x")), refused + `WorkloadIdentity:garden/x, which does not lead to seed "seed"`},
		"GE-45/what the seed only reads":          {anyMode, "gardenlet UPDATE shoots garden/s", shoot(), shoot().Resource(ref("read-only")), refused + `Secret:garden/read-only, which is only read by seed "seed"`},
		"GE-43/another binding":                   {anyMode, "gardenlet UPDATE shoots garden/s", shoot(), shoot().CredentialsBinding("z"), refused + `CredentialsBinding:garden/z, which does not lead to seed "seed"`},
		"GE-45/another resource":                  {anyMode, "gardenlet UPDATE shoots garden/s", shoot(), shoot().Resource(ref("foreign")), foreign},
		"GE-45/the SSH key of another shoot":      {anyMode, "extension UPDATE shoots garden/s", shoot(), shoot().Resource(ref("t.ssh-keypair")), refused + `Secret:garden/t.ssh-keypair, which does not lead to seed "seed"`},
		"GE-45/what gardenlets write":             {anyMode, "gardenlet UPDATE shoots garden/s", shoot(), shoot().Annotated("a", "b").With("spec.networking.nodes", "10.0.0.0/8"), "allowed"},
		"GE-52/DNS":                               {anyMode, "gardenlet UPDATE shoots garden/s", shoot(), shoot().DNSProvider(builders.Ref("Secret", "foreign")), foreign},
		"RES-37/backup credentials of a pool":     {anyMode, "gardenlet UPDATE shoots garden/s", shoot(), shoot().With("spec.provider.workers", pool(ref("foreign"))), foreign},
		"RES-37/an old object that is unreadable": {anyMode, "gardenlet UPDATE shoots garden/s", builders.Shoot("garden", "s").With("spec.resources", "x"), shoot(), "500 the current object cannot be read: json: cannot unmarshal string into Go struct field ShootSpec.spec.resources of type []partialmeta.NamedResource"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, checked := range []bool{false, true} {
				if c.checked && !checked {
					expect.Equal(t, expect.First(updated(t, g, checked, c.question, c.old, c.object)), "allowed",
						"with references Trusted")
					continue
				}
				expect.Equal(t, expect.First(updated(t, g, checked, c.question, c.old, c.object)), c.want,
					"checked %v", checked)
			}
		})
	}
}

// pool is the list of workers of a self-hosted shoot that backs up with some credentials.
func pool(backup builders.Reference) []any {
	return []any{map[string]any{"name": "cp", "controlPlane": map[string]any{"backup": map[string]any{"credentialsRef": backup}}}}
}

func refers(to builders.Reference) map[string]any {
	return map[string]any{"name": "x", "resourceRef": to}
}

// A BackupBucket names the backup credentials of the own Seed or Shoot, which are read when the graph does not show them.
func TestOwnBackup_NeedsAPath(t *testing.T) {
	bucket := func(name string) *builders.Object {
		return builders.BackupBucket("b").OnSeed("seed").With(credentials, ref(name))
	}
	h := &Handler{
		Reader: garden{"seeds seed": text(builders.Seed("seed").With("spec.backup.credentialsRef", ref("new")))},
		Graph:  graphOf(t, garden{"seeds seed": text(builders.Seed("seed"))}), Clock: clocktesting.NewFakePassiveClock(now), Log: logr.Discard(),
	}
	for name, want := range map[string]bool{"new": true, "other": false} {
		got := respond(h.Decide, ask(t, "gardenlet CREATE backupbuckets b", text(bucket(name))))
		expect.Equal(t, got.Allowed, want, "RES-37: credentials %s: got %+v", name, got.Result)
	}
	h.Reader = garden{"seeds seed": "error"}
	got := respond(h.Decide, ask(t, "gardenlet CREATE backupbuckets b", text(bucket("new"))))
	expect.Equal(t, got.Result.Code, 500, "RES-37: the Seed cannot be read: got %+v", got.Result)
}

// TestUpdates: changes of what belongs to others or would are refused (RES-35, RES-36), in every mode.
func TestUpdates(t *testing.T) {
	entry := func(bucket string) *builders.Object { return builders.BackupEntry("n", "e", bucket).OnSeed("seed") }
	g := garden{
		"backupbuckets own": on("seed"), "backupbuckets foreign": on("other"), "backupbuckets broken": "error",
		"managedseeds garden/m": "{spec: {shoot: {name: s}}}", "shoots garden/s": on("seed"),
	}
	const bootstrapper = "gardener.cloud:system:seed-bootstrapper:garden:gardenlet-bootstrap-m"
	binding := func(account string) *builders.Object {
		return builders.New("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "", bootstrapper).
			Add("subjects", map[string]any{"kind": "ServiceAccount", "namespace": "garden", "name": account}).
			With("roleRef", map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "gardener.cloud:system:seed-bootstrapper"})
	}
	const account = "gardenlet-bootstrap-m"
	for name, c := range map[string]struct {
		question    string
		old, object *builders.Object
		want        string
		reads       int
	}{
		"RES-35/GE-5, the same bucket":           {"gardenlet UPDATE backupentries n/e", entry("foreign"), entry("foreign").Annotated("a", "b"), "allowed", 0},
		"RES-35/GE-5, another's bucket":          {"gardenlet UPDATE backupentries n/e", entry("own"), entry("foreign"), belongs, 1},
		"RES-35/GE-5, by an extension":           {"extension UPDATE backupentries n/e", entry("own"), entry("foreign"), belongs, 1},
		"RES-35/GE-5, back from a move":          {"gardenlet UPDATE backupentries n/e", entry("foreign"), entry("own"), "allowed", 1},
		"RES-35/GE-5, no bucket":                 {"gardenlet UPDATE backupentries n/e", entry("own"), entry("none"), `403 backupbuckets.core.gardener.cloud "none" not found`, 1},
		"RES-35/GE-5, an unreadable bucket":      {"gardenlet UPDATE backupentries n/e", entry("own"), entry("broken"), "500 fake-err", 1},
		"RES-35/GE-6, it moves to another seed":  {"gardenlet UPDATE backupentries n/e", entry("own"), entry("own").OnSeed("other"), "allowed", 0},
		"RES-36/the same subject":                {"gardenlet UPDATE clusterrolebindings " + bootstrapper, binding(account), binding(account).Annotated("a", "b"), "allowed", 3},
		"RES-36/another subject":                 {"gardenlet UPDATE clusterrolebindings " + bootstrapper, binding(account), binding("default"), "403 can only bind ServiceAccount garden/gardenlet-bootstrap-m", 0},
		"RES-36/an extension":                    {"extension UPDATE clusterrolebindings " + bootstrapper, binding(account), binding("default"), "403 extension client may not create ClusterRoleBindings", 0},
		"RES-35/self-hosted, another's bucket":   {"shoot-gardenlet UPDATE backupentries n/e", entry("own"), entry("foreign"), "403 object does not belong to shoot n/s", 1},
		"RES-36/self-hosted, no ClusterRole":     {"shoot-gardenlet UPDATE clusterrolebindings " + bootstrapper, binding(account), binding("default"), `400 unexpected resource: "clusterrolebindings.rbac.authorization.k8s.io"`, 0},
		"RES-35/self-hosted, finalizers, labels": {"shoot-gardenlet UPDATE backupentries n/e", entry("own"), entry("own").Annotated("a", "b"), "allowed", 0},
	} {
		t.Run(name, func(t *testing.T) {
			for _, checked := range []bool{false, true} {
				got, reads := updated(t, g, checked, c.question, c.old, c.object)
				expect.True(t, got == c.want && reads == c.reads,
					"checked %v: got %s after %d reads, want %s after %d", checked, got, reads, c.want, c.reads)
			}
		})
	}
}
