package restriction

import (
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/gen/builders"
)

func init() {
	clients["shoot-gardenlet/garden"] = authenticationv1.UserInfo{Username: "gardener.cloud:system:shoot:garden:s", Groups: []string{"gardener.cloud:system:shoots"}}
	clients["gardenadm/garden"] = authenticationv1.UserInfo{Username: "gardener.cloud:gardenadm:shoot:garden:s", Groups: []string{"gardener.cloud:system:shoots"}}
	apiGroups["credentialsbindings"] = "security.gardener.cloud"
}

// TestShootReferences: what the clients of the self-hosted shoot garden/s name in their own objects they reach already (T3-4). A ManagedSeed
// makes it the seed s, so that its extensions are judged as those of the seed, too (SH-23).
func TestShootReferences(t *testing.T) {
	bucket := func() *builders.Object {
		return builders.BackupBucket("b").With("spec.shootRef", builders.At("garden/s"))
	}
	shoot := func() *builders.Object {
		return builders.Shoot("garden", "s").Resource(ref("own")).With("spec.provider.workers", pool(ref("backup")))
	}
	managed := func() *builders.Object { return builders.ManagedSeed("garden", "s", "s").Bootstrap("BootstrapToken") }
	seed := func() *builders.Object { return builders.Seed("s").Resource(ref("of-seed")) }
	installation := func(deployment string) *builders.Object {
		return builders.ControllerInstallation("i", "r").With("spec.shootRef", builders.At("garden/s")).With("spec.deploymentRef.name", deployment)
	}
	entry := func(bucket string) *builders.Object {
		return builders.BackupEntry("garden", "e", bucket).With("spec.shootRef", builders.At("garden/s"))
	}
	binding := func(namespace string) *builders.Object {
		return builders.CredentialsBinding("garden", "c", builders.Ref("Secret", namespace+"/x"))
	}
	g := garden{
		"shoots garden/s":           text(shoot()),
		"managedseeds garden/s":     text(managed()),
		"seeds s":                   text(seed()),
		"backupbuckets b":           text(bucket()),
		"backupbuckets victim":      on("victim"),
		"controllerinstallations i": text(installation("d")),
	}
	const foreign = refused + "Secret:garden/internal-domain, which does not lead to shoot garden/s"
	const reconcile, secret = "gardener.cloud/operation", "internal-domain"
	for name, c := range map[string]struct {
		question    string
		old, object *builders.Object
		want        string
		reads       int
	}{
		"SHG-6/credentials of its backup":         {"shoot-gardenlet/garden CREATE backupbuckets b", nil, bucket().With(credentials, ref("backup")), "allowed", 1},
		"SHG-6/what it reaches":                   {"shoot-gardenlet/garden CREATE backupbuckets b", nil, bucket().With(credentials, ref("own")), "allowed", 0},
		"SHG-6/any Secret of the namespace":       {"shoot-gardenlet/garden CREATE backupbuckets b", nil, bucket().With(credentials, ref(secret)), foreign, 1},
		"SHG-6/a Secret elsewhere":                {"shoot-gardenlet/garden CREATE backupbuckets b", nil, bucket().With(credentials, builders.Ref("Secret", "n/x")), refused + "Secret:n/x, which does not lead to shoot garden/s", 1},
		"SHG-6/by an extension":                   {"shoot-extension CREATE backupbuckets b", nil, bucket().With(credentials, ref(secret)), foreign, 1},
		"SHG-6/changed":                           {"shoot-gardenlet/garden UPDATE backupbuckets b", bucket(), bucket().With(credentials, ref(secret)), foreign, 1},
		"SHG-6/as before":                         {"shoot-gardenlet/garden UPDATE backupbuckets b", bucket().With(credentials, ref("old")), bucket().With(credentials, ref("old")).Annotated(reconcile, "reconcile"), "allowed", 0},
		"SHG-7/the generated Secret":              {"shoot-gardenlet/garden UPDATE backupbuckets b", bucket(), bucket().With(generated, builders.At("garden/generated-bucket-b")), "allowed", 0},
		"SHG-7/another Secret":                    {"shoot-gardenlet/garden UPDATE backupbuckets b", bucket(), bucket().With(generated, builders.At("kube-system/x")), refused + "Secret:kube-system/x, which does not lead to shoot garden/s", 0},
		"GE-4/a bucket is given away":             {"shoot-gardenlet/garden UPDATE backupbuckets b", bucket(), bucket().With("spec.shootRef", builders.At("garden/t")), "403 object would belong to Shoot:garden/t, which is not shoot garden/s", 0},
		"RES-35/another's bucket":                 {"shoot-gardenlet/garden UPDATE backupentries garden/e", entry("b"), entry("victim"), "403 object does not belong to shoot garden/s", 1},
		"RES-35/own bucket":                       {"shoot-gardenlet/garden UPDATE backupentries garden/e", entry("victim"), entry("b"), "allowed", 1},
		"RES-35/unchanged":                        {"shoot-gardenlet/garden UPDATE backupentries garden/e", entry("victim"), entry("victim").Annotated("a", "b"), "allowed", 0},
		"RES-35/it moves to a seed":               {"shoot-extension UPDATE backupentries garden/e", entry("victim"), entry("victim").OnSeed("s"), "403 object does not belong to shoot garden/s", 1},
		"RES-35/an entry of a seed":               {"shoot-extension UPDATE backupentries garden/e", builders.BackupEntry("garden", "e", "victim").OnSeed("s"), entry("victim"), "403 object does not belong to shoot garden/s", 1},
		"GE-16/another deployment":                {"shoot-gardenlet/garden UPDATE controllerinstallations i", installation("d"), installation("z"), refused + "ControllerDeployment:z, which does not lead to shoot garden/s", 0},
		"GE-17/an installation is given away":     {"shoot-gardenlet/garden UPDATE controllerinstallations i", installation("d"), installation("d").With("spec.seedRef.name", "victim"), "403 object would belong to Seed:victim, which is not shoot garden/s", 0},
		"GE-26/by its ManagedSeed":                {"shoot-gardenlet/garden UPDATE managedseeds garden/s", managed(), managed().SeedSpec("backup.credentialsRef", ref(secret)), foreign, 1},
		"GE-28/by its ManagedSeed":                {"shoot-gardenlet/garden UPDATE managedseeds garden/s", managed(), managed().SeedSpec("resources", []any{refers(ref(secret))}), foreign, 1},
		"GE-28/its ManagedSeed is annotated":      {"shoot-gardenlet/garden UPDATE managedseeds garden/s", managed(), managed().Annotated(reconcile, "reconcile"), "allowed", 1},
		"GE-45/by its Shoot":                      {"shoot-gardenlet/garden UPDATE shoots garden/s", shoot(), shoot().Resource(ref("own"), ref(secret)), foreign, 0},
		"T3-4/GE-45 by gardenadm":                 {"gardenadm/garden UPDATE shoots garden/s", shoot(), shoot().Resource(ref("own"), ref(secret)), foreign, 0},
		"GE-45/its Shoot is annotated":            {"shoot-gardenlet/garden UPDATE shoots garden/s", shoot(), shoot().Annotated(reconcile, "reconcile"), "allowed", 0},
		"GE-47/its status names a seed":           {"shoot-gardenlet/garden UPDATE shoots garden/s", shoot(), shoot().StillOnSeed("s"), "403 object would belong to Seed:s, which is not shoot garden/s", 0},
		"GE-47/an extension's status, too":        {"shoot-extension UPDATE shoots garden/s", shoot(), shoot().StillOnSeed("s"), "403 object would belong to Seed:s, which is not shoot garden/s", 0},
		"GE-46/gardenadm names a seed":            {"gardenadm/garden UPDATE shoots garden/s", shoot(), shoot().OnSeed("s"), "403 object would belong to Seed:s, which is not shoot garden/s", 0},
		"RES-37/other backup credentials":         {"shoot-gardenlet/garden UPDATE shoots garden/s", shoot(), shoot().With("spec.provider.workers", pool(ref(secret))), foreign, 0},
		"GE-21/its Gardenlet is annotated":        {"shoot-gardenlet/garden UPDATE gardenlets garden/self-hosted-shoot-s", builders.Gardenlet("garden", "self-hosted-shoot-s"), builders.Gardenlet("garden", "self-hosted-shoot-s").Annotated(reconcile, "reconcile"), "allowed", 0},
		"SH-22/a binding of gardenadm":            {"gardenadm/garden CREATE credentialsbindings garden/c", nil, binding("garden"), "allowed", 0},
		"SH-22/credentials elsewhere":             {"gardenadm/garden CREATE credentialsbindings garden/c", nil, binding("other"), "403 object does not belong to shoot garden/s", 0},
		"SH-22/a binding elsewhere":               {"gardenadm/garden CREATE secretbindings other/c", nil, builders.SecretBinding("other", "c", "other/x"), "403 object does not belong to shoot garden/s", 0},
		"SH-22/a Secret elsewhere":                {"gardenadm/garden CREATE secretbindings garden/c", nil, builders.SecretBinding("garden", "c", "other/x"), "403 object does not belong to shoot garden/s", 0},
		"SH-23/an extension makes another Seed":   {"shoot-extension CREATE seeds victim", nil, builders.Seed("victim"), `403 object does not belong to seed "s"`, 0},
		"SH-23/an extension changes its Seed":     {"shoot-extension UPDATE seeds s", seed(), seed().Annotated("a", "b"), "allowed", 0},
		"SH-23/a gardenlet of the shoot does not": {"shoot-gardenlet/garden UPDATE seeds s", seed(), seed().Annotated("a", "b"), `400 unexpected operation: "UPDATE"`, 0},
		"SH-23/what the seed only reads":          {"shoot-extension UPDATE shoots garden/s", shoot(), shoot().Resource(ref("own"), ref("of-seed")), refused + "Secret:garden/of-seed, which is only read by shoot garden/s", 0},
		"SH-23/what the seed reaches":             {"shoot-extension UPDATE seeds s", seed(), seed().Resource(ref("of-seed"), ref("own")), "allowed", 0},
		"SH-23/a bucket of shoot and seed":        {"shoot-extension CREATE backupbuckets b", nil, bucket().OnSeed("s"), "403 object would belong to Seed:s, which is not shoot garden/s", 0},
		"SH-23/a bucket of another seed":          {"shoot-extension DELETE backupbuckets victim", nil, builders.BackupBucket("victim"), "403 cannot delete unrelated BackupBucket", 1},
		"SH-23/the shoot's own bucket":            {"shoot-extension DELETE backupbuckets b", nil, bucket(), "allowed", 0},
		"SH-17/the Seed of its ManagedSeed":       {"shoot-gardenlet/garden DELETE seeds s", nil, seed(), "allowed", 0},
		"SH-1/its own bucket":                     {"shoot-gardenlet/garden DELETE backupbuckets b", nil, bucket(), "allowed", 0},
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
