package relation

import (
	"cmp"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-project/espalier/internal/externalapi/wellknown"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/gen/builders"
)

const clientUsages = "client auth, key encipherment, digital signature"

// TestWatches_LeaveNothingBehind is GR-2: what each kind of object adds, and that nothing is left of it.
func TestWatches_LeaveNothingBehind(t *testing.T) {
	for name, c := range map[string]struct {
		watch  *Watch
		object *builders.Object
		// seed is there before, if any.
		seed *builders.Object
		// want are vertices and edges; left is what is still there without the object, nothing if it is empty.
		want, left string
	}{
		"Seed":                       {watch: seeds, object: seedA(), want: "10 / 9"},
		"Seed/no backup, no DNS":     {watch: seeds, object: builders.Seed("a").Resource(builders.Ref("Secret", "res")), want: "5 / 4"},
		"Seed/of old":                {watch: seeds, object: builders.Seed("a").With("spec.secretRef", builders.At("garden/kubeconfig")).With("spec.backup.secretRef", builders.At("garden/b")).With("spec.dns.provider.secretRef", builders.At("garden/c")), want: "7 / 6"},
		"Shoot":                      {watch: shoots, object: web(), want: "24 / 23"},
		"Shoot/without a binding":    {watch: shoots, object: web().Without("spec.secretBindingName"), want: "23 / 22"},
		"Shoot/exposure class":       {watch: shoots, object: web().With("spec.exposureClassName", "internet"), want: "25 / 24"},
		"Shoot/of old":               {watch: shoots, object: builders.Shoot("garden-dev", "web").With("spec.cloudProfileName", "cp").Add("spec.dns.providers", map[string]any{"secretName": "dns"}), want: "12 / 11"},
		"Project":                    {watch: projects, object: builders.Project("dev", "garden-dev"), want: "2 / 1"},
		"Project/without namespace":  {watch: projects, object: builders.Project("dev", ""), want: "0 / 0"},
		"BackupBucket":               {watch: backupBuckets, object: bucket(), want: "4 / 3"},
		"BackupBucket/of old":        {watch: backupBuckets, object: builders.BackupBucket("b").With("spec.secretRef", builders.At("garden/x")), want: "2 / 1"},
		"BackupBucket/of a shoot":    {watch: backupBuckets, object: builders.BackupBucket("b").With("spec.shootRef", builders.Ref("Shoot", "garden/s")), want: "2 / 1"},
		"BackupEntry":                {watch: backupEntries, object: entry(), want: "4 / 3"},
		"BackupEntry/in migration":   {watch: backupEntries, object: entry().StillOnSeed("b"), want: "5 / 4"},
		"Bastion":                    {watch: bastions, object: builders.Bastion("garden-dev", "b").OnSeed("a"), want: "2 / 1"},
		"SecretBinding":              {watch: secretBindings, object: builders.SecretBinding("garden-dev", "sb", "other/s"), want: "2 / 1"},
		"CredentialsBinding":         {watch: credentialsBindings, object: builders.CredentialsBinding("garden-dev", "cb", builders.Ref("Secret", "other/s")), want: "2 / 1"},
		"ControllerInstallation":     {watch: controllerInstallations, object: installation(), want: "5 / 4"},
		"ControllerDeployment":       {watch: controllerDeployments, object: builders.ControllerDeployment("d").Pulls("p", "c"), want: "3 / 2"},
		"ControllerDeployment/GE-12": {watch: controllerDeployments, object: builders.ControllerDeployment("d").With("helm.rawChart", "x"), want: "0 / 0"},
		"ControllerDeployment/B-9": {
			watch: controllerDeployments, want: "3 / 2",
			object: builders.ControllerDeployment("d").Add("resources", refers(builders.Ref("ConfigMap", "c")), refers(builders.Ref("Secret", "s")), refers(builders.Ref("Secret", "t").Version("v2"))),
		},
		"ManagedSeed/no Seed":        {watch: managedSeeds, object: child("BootstrapToken"), want: "6 / 6"},
		"ManagedSeed/Seed, valid":    {watch: managedSeeds, object: child("BootstrapToken"), seed: childSeed("2026-11-21T13:00:00Z"), want: "8 / 8", left: "4 / 3"},
		"ManagedSeed/ServiceAccount": {watch: managedSeeds, object: child("ServiceAccount"), want: "7 / 7"},
		"ManagedSeed/no shoot, B-8":  {watch: managedSeeds, object: builders.ManagedSeed("garden", "child", ""), want: "2 / 2"},
		"ManagedSeed/broken, B-8":    {watch: managedSeeds, object: builders.ManagedSeed("garden", "child", "s").Bootstrap("BootstrapToken").With("spec.gardenlet.config", map[string]any{"apiVersion": "v1", "kind": "x"}), want: "3 / 3"},
		"Gardenlet":                  {watch: gardenlets, object: gardenletA(), want: "5 / 4"},
		"Gardenlet/renews":           {watch: gardenlets, object: renewing(gardenletA()), seed: builders.Seed("a"), want: "9 / 8", left: "4 / 3"},
		"Gardenlet/broken, B-12":     {watch: gardenlets, object: builders.Gardenlet("garden", "a").With("spec.config.kind", 5).With("spec.deployment.helm.ociRepository.pullSecretRef.name", "p"), want: "3 / 2"},
		"Gardenlet/self-hosted":      {watch: gardenlets, object: builders.Gardenlet("garden-dev", "self-hosted-shoot-x"), want: "1 / 0"},
		"ServiceAccount":             {watch: serviceAccounts, object: bootstrapping("x", "a", "b"), want: "3 / 2"},
		"ServiceAccount/B-10":        {watch: serviceAccounts, object: builders.ServiceAccount("garden", "other", "a", "b"), want: "0 / 0"},
		"CSR":                        {watch: certificateSigningRequests, object: builders.CertificateRequest("csr", wellknown.SeedUserPrefix+"a", wellknown.SeedsGroup, clientUsages), want: "2 / 1"},
		"CSR/wrong usages":           {watch: certificateSigningRequests, object: builders.CertificateRequest("csr", wellknown.SeedUserPrefix+"a", wellknown.SeedsGroup, "server auth"), want: "0 / 0"},
		"CSR/B-4, no seed":           {watch: certificateSigningRequests, object: builders.CertificateRequest("csr", wellknown.SeedUserPrefix, wellknown.SeedsGroup, clientUsages), want: "0 / 0"},
	} {
		t.Run("GR-2/"+name, func(t *testing.T) {
			g := newGarden(t)
			if c.watch == shoots {
				g.SetNamespace(projectNamespace)
			}
			if c.seed != nil {
				g.set(seeds, c.seed)
			}
			g.set(c.watch, c.object)
			g.wantSize(c.want)
			before := len(g.updates)
			total := g.total()
			g.set(c.watch, c.object)
			g.wantSize(c.want)
			expect.True(t, g.total() == total && len(g.updates) == before,
				"OBS-21: an update that changes nothing is counted: %v", g.updates)
			owner := c.watch.Owner(seen(t, c.watch, c.object))
			g.Delete(c.watch, owner.Namespace, owner.Name)
			g.wantSize(cmp.Or(c.left, "0 / 0"))
		})
	}
}

func (g *garden) total() (n int) {
	for _, count := range g.updates {
		n += count
	}
	return n
}

var projectNamespace = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "garden-dev", Labels: map[string]string{wellknown.Project: "dev"}}}

func TestShoot_LeadsToBothSeeds(t *testing.T) {
	g := newGarden(t)
	g.SetNamespace(projectNamespace)
	g.set(shoots, web())
	for _, from := range []string{
		"Shoot:garden-dev/web", "CloudProfile:cp", "SecretBinding:garden-dev/sb", "CredentialsBinding:garden-dev/cb", "Namespace:garden-dev",
		"Secret:garden-dev/res-secret", "ConfigMap:garden-dev/res-config", "WorkloadIdentity:garden-dev/res-identity",
		"Secret:garden-dev/dns1", "WorkloadIdentity:garden-dev/dns2", "ConfigMap:garden-dev/audit", "ConfigMap:garden-dev/authn",
		"ConfigMap:garden-dev/authz", "Secret:garden-dev/authz-kubeconfig", "ShootState:garden-dev/web", "Secret:gardener-system-shoot-issuer/dev--1234",
		"Secret:garden-dev/web.ca-cluster", "Secret:garden-dev/web.ssh-keypair", "Secret:garden-dev/web.ssh-keypair.old", "Secret:garden-dev/web.monitoring",
		"InternalSecret:garden-dev/web.ca-client", "ConfigMap:garden-dev/web.ca-cluster", "ConfigMap:garden-dev/web.ca-kubelet",
	} {
		g.wantPath(from, "Seed:a", true)
		g.wantPath(from, "Seed:b", false)
	}
	g.set(shoots, web().StillOnSeed("b"))
	g.wantPathBy("C20: both seeds of a migration count", "CloudProfile:cp", "Seed:a", true)
	g.wantPathBy("C20: both seeds of a migration count", "CloudProfile:cp", "Seed:b", true)
	g.set(shoots, web().OnSeed("c").CloudProfile("ncp").With("spec.cloudProfile.kind", "NamespacedCloudProfile").With("spec.cloudProfileName", "cp"))
	for _, seed := range []string{"Seed:a", "Seed:b"} {
		g.wantPathBy("GE-46: the old paths are gone", "Shoot:garden-dev/web", seed, false)
	}
	g.wantPathBy("GE-44: the profile that is named now", "NamespacedCloudProfile:garden-dev/ncp", "Seed:c", true)
	g.wantPathBy("GE-44: the profile that was named before", "CloudProfile:cp", "Seed:c", false)

	issuer := "Secret:gardener-system-shoot-issuer/dev--1234"
	g.set(shoots, web().Annotated(wellknown.Issuer, "other"))
	g.wantPathBy("GE-57: without the annotation", issuer, "Seed:a", false)
	g.DeleteNamespace("garden-dev")
	g.set(shoots, web())
	g.wantPathBy("GE-57: without the label of a project", issuer, "Seed:a", false)
	g.wantPath("CloudProfile:cp", "Seed:a", true)
	g.SetNamespace(projectNamespace) // B-13's trigger: the label arrives after the Shoot.
	g.wantPath(issuer, "Seed:a", true)
	g.wantSize("24 / 23")
	g.RetainNamespaces(func(string) bool { return false })
	g.wantSize("23 / 22")
	g.Delete(shoots, "garden-dev", "web")
	g.SetNamespace(projectNamespace)
	g.wantSize("0 / 0")
}

func TestSharedObjects_StayWhileReferredTo(t *testing.T) {
	g := newGarden(t)
	onA := builders.Shoot("garden-dev", "web").OnSeed("a").SecretBinding("sb").Resource(builders.Ref("Secret", "shared"))
	binding := builders.SecretBinding("garden-dev", "sb", "other/s")
	g.set(shoots, onA)
	g.set(secretBindings, binding)
	g.wantPath("Secret:other/s", "Seed:a", true)
	g.Delete(secretBindings, "garden-dev", "sb")
	g.wantPath("SecretBinding:garden-dev/sb", "Seed:a", true)
	g.wantPath("Secret:other/s", "Seed:a", false)
	g.set(secretBindings, binding)
	g.wantPathBy("B-13: without an event of the Shoot", "Secret:other/s", "Seed:a", true)

	g.set(seeds, builders.Seed("a"))
	g.Delete(seeds, "", "a")
	g.wantPathBy("B-13: the Shoot still says so", "Shoot:garden-dev/web", "Seed:a", true)
	g.wantPath("Lease:gardener-system-seed-lease/a", "Seed:a", false)

	g.set(backupBuckets, builders.BackupBucket("b").OnSeed("a").With("spec.secretRef", builders.At("garden-dev/shared")))
	g.set(shoots, builders.Shoot("garden-dev", "web").OnSeed("z"))
	g.wantPathBy("GR-5: the BackupBucket still refers to it", "Secret:garden-dev/shared", "Seed:a", true)
	g.wantPath("Secret:garden-dev/shared", "Seed:z", false)
}

func TestCredentials_FollowTheirKind(t *testing.T) {
	g := newGarden(t)
	g.set(shoots, builders.Shoot("garden-dev", "web").OnSeed("a").CredentialsBinding("cb"))
	kinds := []string{"Secret", "WorkloadIdentity", "InternalSecret"}
	for _, kind := range kinds {
		g.set(credentialsBindings, builders.CredentialsBinding("garden-dev", "cb", builders.Ref(kind, "other/c")))
		for _, other := range kinds {
			g.wantPathBy("GE-18: each kind of credentials after each other", other+":other/c", "Seed:a", other == kind)
		}
	}
	g.set(credentialsBindings, builders.CredentialsBinding("garden-dev", "cb", builders.Ref("Secret", "other/c").Version("v7"))) // Of a version that nobody knows (B-8).
	g.wantPath("Secret:other/c", "Seed:a", false)
	g.wantPath("CredentialsBinding:garden-dev/cb", "Seed:a", true)
}

func TestBackupEntry_LeadsToBothSeeds(t *testing.T) {
	g := newGarden(t)
	g.set(backupEntries, entry())
	g.wantPath("BackupBucket:b", "Seed:a", true)
	g.wantPath("BackupBucket:b", "Shoot:garden-dev/web", false) // Only Seeds are sinks.
	g.set(backupEntries, builders.BackupEntry("garden-dev", "e", "c").OnSeed("a").StillOnSeed("s"))
	g.wantPathBy("GE-6: the bucket of before", "BackupBucket:b", "Seed:a", false)
	g.wantPathBy("GE-6: the bucket of now", "BackupBucket:c", "Seed:a", true)
	g.wantPathBy("GE-6: the seed of the status", "BackupEntry:garden-dev/e", "Seed:s", true)
	g.wantSize("4 / 3")
}

func TestManagedSeed_LeadsToParent(t *testing.T) {
	g := newGarden(t)
	g.set(shoots, builders.Shoot("garden", "child-shoot").OnSeed("parent"))
	g.set(managedSeeds, child("BootstrapToken"))
	g.set(seeds, childSeed("2026-11-21T13:00:00Z"))
	g.set(shoots, builders.Shoot("garden-dev", "web").OnSeed("child"))
	g.wantPath("Seed:child", "Seed:parent", true) // The parent reaches the Seed itself, round the circle (BH-SA-28), …
	g.wantPath("ManagedSeed:garden/child", "Seed:parent", true)
	g.wantPath("ManagedSeed:garden/child", "Seed:child", true)
	g.wantPath("Secret:garden/child-backup", "Seed:parent", true)
	g.wantPath("Secret:garden/child-resource", "Seed:child", true)
	for _, of := range []string{"Shoot:garden-dev/web", "Secret:garden-dev/web.ca-cluster", "Namespace:seed-child", "Lease:gardener-system-seed-lease/child", "Secret:garden/child-resource"} {
		g.wantPath(of, "Seed:child", true)
		g.wantPath(of, "Seed:parent", false) // … and nothing of what is on it (B-15).
	}
	g.Delete(managedSeeds, "garden", "child")
	g.wantPath("Seed:child", "Seed:parent", false)
	g.wantPathBy("B-14: nothing is left of a ManagedSeed that is gone", "Secret:garden/child-resource", "Seed:child", false)
}

func TestBootstrapping_EndsWithTheCertificate(t *testing.T) {
	const (
		token   = "Secret:kube-system/bootstrap-token-"
		account = "ServiceAccount:garden/gardenlet-bootstrap-child"
		role    = "ClusterRoleBinding:gardener.cloud:system:seed-bootstrapper:garden:gardenlet-bootstrap-child"
	)
	tokenOf := token + wellknown.BootstrapTokenID("garden", "child")
	g := newGarden(t)
	has := func(rule, name string, want bool) {
		t.Helper()
		expect.Equal(t, g.Graph.Has(vertex(t, name)), want, "%s: %s is there", rule, name)
	}
	g.set(managedSeeds, child("BootstrapToken"))
	has("B-11, ManagedSeed: no Seed", tokenOf, true)
	g.set(seeds, builders.Seed("child"))
	has("B-11, ManagedSeed: a Seed that says nothing of its certificate", tokenOf, false)
	g.set(seeds, childSeed("2026-11-21T11:00:00Z"))
	has("B-11, ManagedSeed: expired", tokenOf, true)
	g.set(seeds, childSeed("2026-11-21T13:00:00Z"))
	has("B-11, ManagedSeed: valid", tokenOf, false)
	next := g.Expire()
	expect.True(t, next.Equal(now.Add(3600e9)), "B-11: the next certificate expires at %v", next)
	g.clock.SetTime(now.Add(3601e9))
	if next := g.Expire(); !next.IsZero() {
		t.Errorf("B-11: the next certificate expires at %v, want none", next)
	}
	has("B-11, ManagedSeed: time has passed", tokenOf, true)
	g.set(seeds, childSeed("2026-11-21T23:00:00Z"))
	has("B-11, ManagedSeed: renewed", tokenOf, false)
	g.Delete(seeds, "", "child")
	has("B-11, ManagedSeed: the Seed is gone", tokenOf, true)
	g.set(seeds, childSeed("2026-11-21T23:00:00Z"))
	g.set(managedSeeds, renewing(child("BootstrapToken")))
	has("B-11, ManagedSeed: renew-kubeconfig", tokenOf, true)
	g.set(managedSeeds, renewing(child("ServiceAccount")))
	has("B-11, ManagedSeed: mode ServiceAccount", tokenOf, false)
	has("B-11, ManagedSeed: mode ServiceAccount", account, true)
	has("B-11, ManagedSeed: mode ServiceAccount", role, true)

	gardenletToken := token + wellknown.BootstrapTokenID("garden", "a")
	g.set(gardenlets, renewing(gardenletA()))
	has("B-11, Gardenlet: no Seed", gardenletToken, false)
	g.set(seeds, builders.Seed("a"))
	has("B-11, Gardenlet: a Seed", gardenletToken, true)
	g.set(gardenlets, gardenletA())
	has("B-11, Gardenlet: no annotation", gardenletToken, false)
	g.set(seeds, expiring("a", "2026-11-21T01:00:00Z"))
	has("B-11, Gardenlet: expired", gardenletToken, true)
}

func TestRetain_DropsTheRest(t *testing.T) {
	g := newGarden(t)
	g.set(projects, builders.Project("one", "garden-one"))
	g.set(projects, builders.Project("two", "garden-two"))
	g.Retain(projects, func(string, string) bool { return false })
	for w, objects := range samples() { // Deletions that were missed.
		for _, o := range objects {
			g.set(w, o)
		}
		g.Retain(w, func(string, string) bool { return false })
		expect.Equal(t, g.size(), "0 / 0", "GR-5: %s: are left", Schema.Names[w.Kind])
	}
	for _, w := range Watches {
		g.Delete(w, "n", "nobody")
	}
	g.wantSize("0 / 0")
}

func TestServiceAccount_LosesItsEdges(t *testing.T) {
	g := newGarden(t)
	g.set(serviceAccounts, bootstrapping("x", "a"))
	g.set(serviceAccounts, bootstrapping("x"))
	expect.Equal(t, g.size(), "0 / 0", "B-10: without Secrets it needs no vertex, and")
}
