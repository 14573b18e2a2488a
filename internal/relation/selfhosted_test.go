package relation

import (
	"slices"
	"strings"
	"testing"

	"github.com/espalier-project/espalier/internal/foreign/names"
	"github.com/espalier-project/espalier/internal/graph"
)

// TestSelfHosted shows the edges of the graph for self-hosted shoots, and that Shoots are its goals.
func TestSelfHosted(t *testing.T) {
	const usages = "client auth, key encipherment, digital signature"
	shootRef := "{spec: {bucketName: b, shootRef: {namespace: ns, name: s}}, metadata: {namespace: ns, name: x, ownerReferences: [{kind: Shoot, name: other}]}}"
	for name, c := range map[string]struct {
		kind graph.Kind
		text string
		want []string
	}{
		"GE-4":         {BackupBucket, shootRef, []string{"BackupBucket:x -> Shoot:ns/s"}},
		"SHG-1, GE-5":  {BackupEntry, shootRef, []string{"BackupBucket:b -> BackupEntry:ns/x", "BackupEntry:ns/x -> Shoot:ns/s"}},
		"SHG-2":        {Bastion, shootRef, []string{"Bastion:ns/x -> Shoot:ns/s"}},
		"GE-11":        {CertificateSigningRequest, certificateRequest(t, names.ShootUserPrefix+"ns:s", names.ShootsGroup, usages), []string{"CertificateSigningRequest:csr -> Shoot:ns/s"}},
		"GE-11/seeds":  {CertificateSigningRequest, certificateRequest(t, names.SeedUserPrefix+"a", names.SeedsGroup, usages), nil},
		"GE-17":        {ControllerInstallation, installationText, []string{"ControllerRegistration:r -> ControllerInstallation:i", "ControllerDeployment:d -> ControllerInstallation:i", "ControllerInstallation:i -> Shoot:garden/s"}},
		"SHG-3":        {Gardenlet, "{metadata: {namespace: ns, name: self-hosted-shoot-s}}", []string{"Gardenlet:ns/self-hosted-shoot-s -> Shoot:ns/s"}},
		"SHG-3/seeds":  {Gardenlet, "{metadata: {namespace: garden, name: a}}", nil},
		"SHG-4, GE-24": {ManagedSeed, "{metadata: {namespace: ns, name: m}, spec: {shoot: {name: s}, gardenlet: {bootstrap: BootstrapToken}}}", []string{"ManagedSeed:ns/m -> Shoot:ns/s", "Seed:m -> ManagedSeed:ns/m", "ManagedSeed:ns/m -> Seed:m", "Secret:kube-system/" + names.BootstrapTokenSecret("ns", "m") + " -> ManagedSeed:ns/m"}},
		"SHG-5":        {ServiceAccount, "{metadata: {namespace: ns, name: extension-shoot--s--e}, secrets: [{name: t}]}", []string{"ServiceAccount:ns/extension-shoot--s--e -> Shoot:ns/s"}},
		"SHG-3/it follows nothing that its gardenlet writes": {Gardenlet, "{metadata: {namespace: ns, name: self-hosted-shoot-s}, spec: {deployment: {helm: {ociRepository: {pullSecretRef: {name: p}, caBundleSecretRef: {name: c}}}}, config: {apiVersion: gardenlet.config.gardener.cloud/v1alpha1, kind: GardenletConfiguration, seedConfig: {spec: {backup: {secretRef: {namespace: garden, name: x}}}}}}}", []string{"Gardenlet:ns/self-hosted-shoot-s -> Shoot:ns/s"}},
		"SHG-5/others":                 {ServiceAccount, "{metadata: {namespace: ns, name: gardenlet-bootstrap-x}, secrets: [{name: t}]}", nil},
		"GE-42 to GE-52, and no names": {Shoot, "{metadata: {namespace: ns, name: s}, spec: {seedName: a, secretBindingName: b}}", []string{"Namespace:ns -> Shoot:ns/s", "SecretBinding:ns/b -> Shoot:ns/s"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := SelfHosted.Of(c.kind)
			_, edges, _ := w.Contribute(decode(t, w, c.text), nothing{})
			var got []string
			for _, e := range edges {
				got = append(got, Schema.String(e.From)+" -> "+Schema.String(e.To))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	for _, kind := range []graph.Kind{Seed, SecretBinding} {
		if SelfHosted.Of(kind) != nil {
			t.Errorf("6.2: %s is watched for self-hosted shoots", Schema.Names[kind])
		}
	}
	g := NewState(graph.New(SelfHostedSchema), newGarden(t).clock, nil)
	for _, object := range []struct {
		kind graph.Kind
		text string
	}{{Shoot, strings.ReplaceAll(shootText, "managed", "other")}, {CredentialsBinding, "{metadata: {namespace: garden-dev, name: cb}, credentialsRef: {apiVersion: v1, kind: Secret, namespace: garden-dev, name: creds}}"}} {
		w := SelfHosted.Of(object.kind)
		g.Set(w, decode(t, w, object.text))
	}
	shoot := vertex(t, "Shoot:garden-dev/web")
	for _, from := range []string{"Secret:garden-dev/creds", "ConfigMap:garden-dev/audit", "Shoot:garden-dev/web"} {
		if !g.Graph.Check(vertex(t, from), shoot).Reached {
			t.Errorf("%s does not lead to the Shoot", from)
		}
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
