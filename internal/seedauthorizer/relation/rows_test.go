package relation

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-project/espalier/internal/externalapi/wellknown"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/gen/builders"
)

// TestRows shows for each row of the table which edges an object has by it. The other rows' edges do not matter here.
func TestRows(t *testing.T) {
	secret, identity := builders.Ref("Secret", "garden/x"), builders.Ref("WorkloadIdentity", "garden/x")
	// all are references to one of each kind that is followed somewhere, and to another one.
	all := []builders.Reference{builders.Ref("Secret", "garden/r-Secret"), builders.Ref("ConfigMap", "garden/r-ConfigMap"), builders.Ref("WorkloadIdentity", "garden/r-WorkloadIdentity"), builders.Ref("Other", "garden/r-Other")}
	resources := []any{refers(all[0]), refers(all[1]), refers(all[2]), refers(all[3])}
	shoot := func() *builders.Object { return builders.Shoot("ns", "s") }
	seed := func() *builders.Object { return builders.Seed("a") }
	bucket := func() *builders.Object { return builders.BackupBucket("b") }
	managed := func(mode string) *builders.Object {
		return builders.ManagedSeed("garden", "m", "s").Bootstrap(mode).SeedSpec("provider.type", "local")
	}
	gardenlet := renewing(builders.Gardenlet("garden", "a").Pulls("p", "c").SeedSpec("backup.secretRef", builders.At("garden/x")))
	for name, c := range map[string]struct {
		watch  *Watch
		object *builders.Object
		want   []string
	}{
		"GE-1/Secret":                                   {backupBuckets, bucket().With("spec.credentialsRef", secret), []string{"Secret:garden/x -> BackupBucket:b"}},
		"GE-1/WorkloadIdentity":                         {backupBuckets, bucket().With("spec.credentialsRef", identity), []string{"WorkloadIdentity:garden/x -> BackupBucket:b"}},
		"GE-1/B-8, another kind":                        {backupBuckets, bucket().With("spec.credentialsRef", builders.Ref("ConfigMap", "garden/x")), nil},
		"GE-1/D-8, of old":                              {backupBuckets, bucket().With("spec.secretRef", builders.At("garden/x")), []string{"Secret:garden/x -> BackupBucket:b"}},
		"GE-2/the seed of a bucket":                     {backupBuckets, bucket().OnSeed("a"), []string{"BackupBucket:b -> Seed:a"}},
		"GE-3/the generated Secret of a bucket":         {backupBuckets, bucket().With("status.generatedSecretRef", builders.At("garden/g")), []string{"Secret:garden/g -> BackupBucket:b"}},
		"GE-4/the shoot of a bucket":                    {backupBuckets, bucket().With("spec.shootRef", builders.At("ns/s")), []string{"BackupBucket:b -> Shoot:ns/s"}},
		"GE-5, GE-6/an entry of a bucket":               {backupEntries, builders.BackupEntry("ns", "e", "b").OnSeed("a"), []string{"BackupBucket:b -> BackupEntry:ns/e", "BackupEntry:ns/e -> Seed:a"}},
		"GE-7/the seed that an entry is still on":       {backupEntries, builders.BackupEntry("ns", "e", "").StillOnSeed("a"), []string{"BackupEntry:ns/e -> Seed:a"}},
		"GE-8/the first Shoot that owns an entry":       {backupEntries, builders.BackupEntry("ns", "e", "").OwnedBy("Shoot", "s").OwnedBy("Shoot", "t"), []string{"BackupEntry:ns/e -> Shoot:ns/s"}},
		"GE-9/the seed of a Bastion":                    {bastions, builders.Bastion("ns", "b").OnSeed("a"), []string{"Bastion:ns/b -> Seed:a"}},
		"GE-10/a request of a gardenlet":                {certificateSigningRequests, builders.CertificateRequest("csr", wellknown.SeedUserPrefix+"a", wellknown.SeedsGroup, clientUsages), []string{"CertificateSigningRequest:csr -> Seed:a"}},
		"GE-12/the pull Secrets of a chart":             {controllerDeployments, builders.ControllerDeployment("d").Pulls("p", "c"), []string{"Secret:garden/p -> ControllerDeployment:d", "Secret:garden/c -> ControllerDeployment:d"}},
		"GE-13/the resources of a deployment":           {controllerDeployments, builders.ControllerDeployment("d").With("resources", resources), []string{"Secret:garden/r-Secret -> ControllerDeployment:d", "ConfigMap:garden/r-ConfigMap -> ControllerDeployment:d"}},
		"GE-14 to GE-17/references of an installation":  {controllerInstallations, installation(), []string{"ControllerRegistration:r -> ControllerInstallation:i", "ControllerInstallation:i -> Seed:a", "ControllerDeployment:d -> ControllerInstallation:i", "ControllerInstallation:i -> Shoot:garden/s"}},
		"GE-15/no seed":                                 {controllerInstallations, builders.ControllerInstallation("i", "r"), []string{"ControllerRegistration:r -> ControllerInstallation:i"}},
		"GE-16, GE-17/no others":                        {controllerInstallations, builders.ControllerInstallation("i", "r").With("spec.seedRef.name", "a"), []string{"ControllerRegistration:r -> ControllerInstallation:i", "ControllerInstallation:i -> Seed:a"}},
		"GE-18/BH-SA-32":                                {credentialsBindings, builders.CredentialsBinding("ns", "c", identity), []string{"WorkloadIdentity:garden/x -> CredentialsBinding:ns/c"}},
		"GE-19/the Secret of a SecretBinding":           {secretBindings, builders.SecretBinding("ns", "c", "other/x"), []string{"Secret:other/x -> SecretBinding:ns/c"}},
		"GE-20, GE-21/a Gardenlet with backup":          {gardenlets, gardenlet, []string{"Gardenlet:garden/a -> Seed:a", "Secret:garden/x -> Gardenlet:garden/a"}},
		"GE-22/the bootstrap token of a Gardenlet":      {gardenlets, gardenlet, []string{"Secret:kube-system/" + wellknown.BootstrapTokenSecret("garden", "a") + " -> Gardenlet:garden/a"}},
		"GE-23/the pull Secrets of a Gardenlet":         {gardenlets, gardenlet, []string{"Secret:garden/p -> Gardenlet:garden/a", "Secret:garden/c -> Gardenlet:garden/a"}},
		"GE-24, GE-25/a ManagedSeed":                    {managedSeeds, managed("None"), []string{"ManagedSeed:garden/m -> Shoot:garden/s", "Seed:m -> ManagedSeed:garden/m"}},
		"GE-27/the Seed of a ManagedSeed":               {managedSeeds, managed("None"), []string{"ManagedSeed:garden/m -> Seed:m"}},
		"GE-26/the backup credentials of a ManagedSeed": {managedSeeds, managed("None").SeedSpec("backup.credentialsRef", secret), []string{"Secret:garden/x -> ManagedSeed:garden/m"}},
		"GE-28/the resources of a ManagedSeed":          {managedSeeds, managed("None").SeedSpec("resources", resources), []string{"Secret:garden/r-Secret -> Seed:m", "ConfigMap:garden/r-ConfigMap -> Seed:m", "WorkloadIdentity:garden/r-WorkloadIdentity -> Seed:m"}},
		"GE-29/bootstrap by a token":                    {managedSeeds, managed("BootstrapToken"), []string{"Secret:kube-system/" + wellknown.BootstrapTokenSecret("garden", "m") + " -> ManagedSeed:garden/m"}},
		"GE-30, GE-31/bootstrap by a ServiceAccount":    {managedSeeds, managed("ServiceAccount"), []string{"ServiceAccount:garden/gardenlet-bootstrap-m -> ManagedSeed:garden/m", "ClusterRoleBinding:gardener.cloud:system:seed-bootstrapper:garden:gardenlet-bootstrap-m -> ManagedSeed:garden/m"}},
		"GE-32/the Namespace of a Project":              {projects, builders.Project("p", "garden-p"), []string{"Project:p -> Namespace:garden-p"}},
		"GE-33/its token":                               {serviceAccounts, builders.ServiceAccount("ns", "gardenlet-bootstrap-x", "t"), []string{"Secret:ns/t -> ServiceAccount:ns/gardenlet-bootstrap-x"}},
		"GE-34, GE-35/Namespace and Lease of a Seed":    {seeds, seed(), []string{"Namespace:seed-a -> Seed:a", "Lease:gardener-system-seed-lease/a -> Seed:a"}},
		"GE-36/the identity of the garden":              {seeds, seed(), []string{"ConfigMap:kube-system/cluster-identity -> Seed:a"}},
		"GE-37/the backup credentials of a Seed":        {seeds, seed().With("spec.backup.credentialsRef", identity), []string{"WorkloadIdentity:garden/x -> Seed:a"}},
		"GE-38/the DNS credentials of a Seed":           {seeds, seed().With("spec.dns.provider.credentialsRef", secret), []string{"Secret:garden/x -> Seed:a"}},
		"GE-38/D-8, of old":                             {seeds, seed().With("spec.dns.provider.secretRef", builders.At("garden/x")), []string{"Secret:garden/x -> Seed:a"}},
		"GE-39/the credentials of the internal domain":  {seeds, seed().With("spec.dns.internal.credentialsRef", secret), []string{"Secret:garden/x -> Seed:a"}},
		"GE-40/the credentials of default domains":      {seeds, seed().Add("spec.dns.defaults", map[string]any{"credentialsRef": secret}, map[string]any{"credentialsRef": builders.Ref("WorkloadIdentity", "garden/z")}), []string{"Secret:garden/x -> Seed:a", "WorkloadIdentity:garden/z -> Seed:a"}},
		"GE-41/the resources of a Seed":                 {seeds, seed().Resource(all...), []string{"Secret:garden/r-Secret -> Seed:a", "ConfigMap:garden/r-ConfigMap -> Seed:a", "WorkloadIdentity:garden/r-WorkloadIdentity -> Seed:a"}},
		"GE-41a/of old":                                 {seeds, seed().With("spec.secretRef", builders.At("garden/kubeconfig")), []string{"Secret:garden/kubeconfig -> Seed:a"}},
		"GE-42/the Namespace of a Shoot":                {shoots, shoot(), []string{"Namespace:ns -> Shoot:ns/s"}},
		"GE-43/the bindings of a Shoot":                 {shoots, shoot().SecretBinding("b").CredentialsBinding("c"), []string{"SecretBinding:ns/b -> Shoot:ns/s", "CredentialsBinding:ns/c -> Shoot:ns/s"}},
		"GE-44/CloudProfile":                            {shoots, shoot().CloudProfile("p").With("spec.cloudProfileName", "q"), []string{"CloudProfile:p -> Shoot:ns/s"}},
		"GE-44/namespaced":                              {shoots, shoot().CloudProfile("p").With("spec.cloudProfile.kind", "NamespacedCloudProfile").With("spec.cloudProfileName", "q"), []string{"NamespacedCloudProfile:ns/p -> Shoot:ns/s"}},
		"GE-44/by name":                                 {shoots, shoot().With("spec.cloudProfileName", "q"), []string{"CloudProfile:q -> Shoot:ns/s"}},
		"GE-44/B-8, another kind":                       {shoots, shoot().CloudProfile("p").With("spec.cloudProfile.kind", "Other").With("spec.cloudProfileName", "q"), nil},
		"GE-45/the resources of a Shoot":                {shoots, shoot().Resource(all...), []string{"Secret:ns/r-Secret -> Shoot:ns/s", "ConfigMap:ns/r-ConfigMap -> Shoot:ns/s", "WorkloadIdentity:ns/r-WorkloadIdentity -> Shoot:ns/s"}},
		"GE-46/the seed of a Shoot":                     {shoots, shoot().OnSeed("a"), []string{"Shoot:ns/s -> Seed:a"}},
		"GE-47/the seed that a Shoot is still on":       {shoots, shoot().StillOnSeed("b"), []string{"Shoot:ns/s -> Seed:b"}},
		"GE-48/the ExposureClass of a Shoot":            {shoots, shoot().With("spec.exposureClassName", "e"), []string{"ExposureClass:e -> Shoot:ns/s"}},
		"GE-49/the audit policy of a Shoot":             {shoots, shoot().AuditPolicy("x"), []string{"ConfigMap:ns/x -> Shoot:ns/s"}},
		"GE-50/the authentication of a Shoot":           {shoots, shoot().Authentication("x"), []string{"ConfigMap:ns/x -> Shoot:ns/s"}},
		"GE-51/the authorization of a Shoot":            {shoots, shoot().Authorization("x").Authorizer("any", "z"), []string{"ConfigMap:ns/x -> Shoot:ns/s", "Secret:ns/z -> Shoot:ns/s"}},
		"GE-52/the DNS credentials of a Shoot":          {shoots, shoot().DNSProvider(builders.Ref("WorkloadIdentity", "x")).Add("spec.dns.providers", map[string]any{"secretName": "z"}), []string{"WorkloadIdentity:ns/x -> Shoot:ns/s", "Secret:ns/z -> Shoot:ns/s"}},
		"GE-53/the Secrets of a Shoot":                  {shoots, shoot(), []string{"Secret:ns/s.ca-cluster -> Shoot:ns/s", "Secret:ns/s.ssh-keypair -> Shoot:ns/s", "Secret:ns/s.ssh-keypair.old -> Shoot:ns/s", "Secret:ns/s.monitoring -> Shoot:ns/s"}},
		"GE-54, GE-55/InternalSecret, ConfigMaps":       {shoots, shoot(), []string{"InternalSecret:ns/s.ca-client -> Shoot:ns/s", "ConfigMap:ns/s.ca-cluster -> Shoot:ns/s", "ConfigMap:ns/s.ca-kubelet -> Shoot:ns/s"}},
		"GE-56/the state of a Shoot":                    {shoots, shoot(), []string{"ShootState:ns/s -> Shoot:ns/s"}},
		"GE-57/the key of a managed issuer":             {shoots, shoot().UID("u").Annotated(wellknown.Issuer, wellknown.ManagedIssuer), []string{"Secret:gardener-system-shoot-issuer/p--u -> Shoot:ns/s"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGarden(t)
			g.SetNamespace(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", Labels: map[string]string{wellknown.Project: "p"}}})
			g.set(seeds, builders.Seed("a"))
			if c.watch == managedSeeds {
				g.Delete(seeds, "", "a")
			}
			_, edges, _ := c.watch.Contribute(seen(t, c.watch, c.object), g.Facts())
			var got []string
			for _, e := range edges {
				got = append(got, Schema.String(e.From)+" -> "+Schema.String(e.To))
			}
			for _, want := range c.want {
				expect.True(t, slices.Contains(got, want), "there is no %s among %q", want, got)
			}
			if c.want == nil {
				for _, edge := range got {
					expect.True(t, !strings.Contains(edge, "garden/x") && !strings.Contains(edge, "CloudProfile"),
						"there is %s", edge)
				}
			}
		})
	}
}

// refers is an entry of a list of resources.
func refers(to builders.Reference) map[string]any {
	return map[string]any{"name": "x", "resourceRef": to}
}

// TestKinds is BH-GR-11: a Quota is no vertex.
func TestKinds(t *testing.T) {
	expect.False(t, expect.OK(KindNamed("Quota")), "BH-GR-11: there are Quotas in the graph")
}

// TestWriters: of each link it is said who could make it, and of no other.
func TestWriters(t *testing.T) {
	known := map[string]bool{}
	for _, table := range []Table{Watches, SelfHosted} {
		for _, w := range table {
			for i := range w.Rows {
				known[w.Rows[i].ID] = true
				expect.True(t, (Link{Row: &w.Rows[i], Watch: w}).Writer() != "", "%s: nobody writes it", w.Rows[i].ID)
			}
		}
	}
	for id := range writersOfRows {
		expect.True(t, known[id], "%s is no row", id)
	}
}
