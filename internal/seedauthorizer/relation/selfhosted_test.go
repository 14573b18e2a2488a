package relation

import (
	"testing"

	"github.com/espalier-project/espalier/internal/externalapi/wellknown"
	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/gen/builders"
)

const bucketCredentials, bucketGenerated = "spec.credentialsRef", "status.generatedSecretRef"

// TestSelfHosted shows the edges of the graph for self-hosted shoots, and that Shoots are its goals.
func TestSelfHosted(t *testing.T) {
	of := func(o *builders.Object) *builders.Object { return o.With("spec.shootRef", builders.At("ns/s")) }
	const gardenlet = "self-hosted-shoot-s"
	for name, c := range map[string]struct {
		kind   graph.Kind
		object *builders.Object
		want   []string
	}{
		"GE-4/the shoot of a bucket": {BackupBucket, of(builders.BackupBucket("x")), []string{"BackupBucket:x -> Shoot:ns/s"}},
		"SHG-6/credentials in the shoot's namespace": {
			BackupBucket, of(builders.BackupBucket("x")).With(bucketCredentials, builders.Ref("Secret", "ns/c")), []string{"BackupBucket:x -> Shoot:ns/s", "Secret:ns/c -> BackupBucket:x"},
		},
		"SHG-6/credentials of old": {
			BackupBucket, of(builders.BackupBucket("x")).With("spec.secretRef", builders.At("ns/c")), []string{"BackupBucket:x -> Shoot:ns/s", "Secret:ns/c -> BackupBucket:x"},
		},
		"SHG-6/credentials elsewhere": {
			BackupBucket, of(builders.BackupBucket("x")).With(bucketCredentials, builders.Ref("Secret", "garden/internal-domain")), []string{"BackupBucket:x -> Shoot:ns/s"},
		},
		"SHG-6/credentials elsewhere, of old": {
			BackupBucket, of(builders.BackupBucket("x")).With("spec.secretRef", builders.At("garden/internal-domain")), []string{"BackupBucket:x -> Shoot:ns/s"},
		},
		"SHG-6/of a seed": {
			BackupBucket, builders.BackupBucket("x").OnSeed("a").With(bucketCredentials, builders.Ref("Secret", "garden/c")), nil,
		},
		"SHG-7/the generated Secret": {
			BackupBucket, of(builders.BackupBucket("x")).With(bucketGenerated, builders.At("garden/generated-bucket-x")), []string{"BackupBucket:x -> Shoot:ns/s", "Secret:garden/generated-bucket-x -> BackupBucket:x"},
		},
		"SHG-7/that of another bucket": {
			BackupBucket, of(builders.BackupBucket("x")).With(bucketGenerated, builders.At("garden/generated-bucket-y")), []string{"BackupBucket:x -> Shoot:ns/s"},
		},
		"SHG-7/elsewhere": {
			BackupBucket, of(builders.BackupBucket("x")).With(bucketGenerated, builders.At("kube-system/generated-bucket-x")), []string{"BackupBucket:x -> Shoot:ns/s"},
		},
		"SHG-1, GE-5/an entry of a bucket":         {BackupEntry, of(builders.BackupEntry("ns", "x", "b").OwnedBy("Shoot", "other")), []string{"BackupBucket:b -> BackupEntry:ns/x", "BackupEntry:ns/x -> Shoot:ns/s"}},
		"SHG-2/the shoot of a Bastion":             {Bastion, of(builders.Bastion("ns", "x")), []string{"Bastion:ns/x -> Shoot:ns/s"}},
		"GE-11/a request of a gardenlet":           {CertificateSigningRequest, builders.CertificateRequest("csr", wellknown.ShootUserPrefix+"ns:s", wellknown.ShootsGroup, clientUsages), []string{"CertificateSigningRequest:csr -> Shoot:ns/s"}},
		"GE-11/seeds":                              {CertificateSigningRequest, builders.CertificateRequest("csr", wellknown.SeedUserPrefix+"a", wellknown.SeedsGroup, clientUsages), nil},
		"GE-17/the shoot of an installation":       {ControllerInstallation, installation(), []string{"ControllerRegistration:r -> ControllerInstallation:i", "ControllerDeployment:d -> ControllerInstallation:i", "ControllerInstallation:i -> Shoot:garden/s"}},
		"SHG-3/the Gardenlet of the shoot":         {Gardenlet, builders.Gardenlet("ns", gardenlet), []string{"Gardenlet:ns/self-hosted-shoot-s -> Shoot:ns/s"}},
		"SHG-3/seeds":                              {Gardenlet, builders.Gardenlet("garden", "a"), nil},
		"SHG-4, GE-24/a ManagedSeed of the shoot":  {ManagedSeed, builders.ManagedSeed("ns", "m", "s").Bootstrap("BootstrapToken"), []string{"ManagedSeed:ns/m -> Shoot:ns/s", "Seed:m -> ManagedSeed:ns/m", "ManagedSeed:ns/m -> Seed:m", "Secret:kube-system/" + wellknown.BootstrapTokenSecret("ns", "m") + " -> ManagedSeed:ns/m"}},
		"SHG-5/the ServiceAccount of an extension": {ServiceAccount, builders.ServiceAccount("garden-n", "extension-shoot--s--e", "t"), []string{"ServiceAccount:garden-n/extension-shoot--s--e -> Shoot:garden-n/s"}},
		"SHG-5/no namespace of a project":          {ServiceAccount, builders.ServiceAccount("ns", "extension-shoot--s--e"), nil},
		"SHG-3/it follows nothing that its gardenlet writes": {
			Gardenlet, builders.Gardenlet("ns", gardenlet).Pulls("p", "c").SeedSpec("backup.secretRef", builders.At("garden/x")), []string{"Gardenlet:ns/self-hosted-shoot-s -> Shoot:ns/s"},
		},
		"SHG-5/others":                  {ServiceAccount, builders.ServiceAccount("ns", "gardenlet-bootstrap-x", "t"), nil},
		"GE-42 to GE-52, and no names":  {Shoot, builders.Shoot("ns", "s").OnSeed("a").SecretBinding("b").SelfHosted(), []string{"Namespace:ns -> Shoot:ns/s", "SecretBinding:ns/b -> Shoot:ns/s"}},
		"T4-1, SHG-8/an ordinary Shoot": {Shoot, builders.Shoot("ns", "s").OnSeed("a").SecretBinding("b").Add("spec.provider.workers", map[string]any{}), nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := SelfHosted.Of(c.kind)
			_, edges, _ := w.Contribute(seen(t, w, c.object), nothing{})
			var got []string
			for _, e := range edges {
				got = append(got, Schema.String(e.From)+" -> "+Schema.String(e.To))
			}
			expect.DeepEqual(t, got, c.want)
		})
	}
	for _, kind := range []graph.Kind{Seed, SecretBinding} {
		expect.True(t, SelfHosted.Of(kind) == nil, "6.2: %s is watched for self-hosted shoots", Schema.Names[kind])
	}
	g := NewState(graph.New(SelfHostedSchema), newGarden(t).clock, nil)
	for kind, o := range map[graph.Kind]*builders.Object{
		Shoot: web().Annotated(wellknown.Issuer, "other").SelfHosted(), CredentialsBinding: builders.CredentialsBinding("garden-dev", "cb", builders.Ref("Secret", "garden-dev/creds")),
	} {
		w := SelfHosted.Of(kind)
		g.Set(w, seen(t, w, o))
	}
	shoot := vertex(t, "Shoot:garden-dev/web")
	for _, from := range []string{"Secret:garden-dev/creds", "ConfigMap:garden-dev/audit", "Shoot:garden-dev/web"} {
		expect.True(t, g.Graph.Check(vertex(t, from), shoot).Reached, "%s does not lead to the Shoot", from)
	}
}

// TestSelfHostedRanks is TestRanks for the other table.
func TestSelfHostedRanks(t *testing.T) {
	for _, w := range SelfHosted {
		for _, r := range w.Rows {
			for _, from := range r.From {
				for _, to := range r.To {
					if r.Class != graph.Direct && Schema.Ranks[from] >= Schema.Ranks[to] {
						t.Errorf("%s: %s does not rank below %s", r.ID, Schema.Names[from], Schema.Names[to])
					}
				}
			}
		}
	}
}
