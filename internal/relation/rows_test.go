package relation

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-project/espalier/internal/foreign/names"
)

// TestRows shows for each row of the table which edges an object has by it. The other rows' edges do not matter here.
func TestRows(t *testing.T) {
	usages := "client auth, key encipherment, digital signature"
	ref := func(kind, name string) string {
		api := "v1"
		if kind == "WorkloadIdentity" {
			api = "security.gardener.cloud/v1alpha1"
		}
		return "{apiVersion: " + api + ", kind: " + kind + ", namespace: garden, name: " + name + "}"
	}
	resources := func(kinds ...string) string {
		var items []string
		for _, kind := range kinds {
			items = append(items, "{name: x, resourceRef: "+ref(kind, "r-"+kind)+"}")
		}
		return "[" + strings.Join(items, ", ") + "]"
	}
	shoot := func(spec string) string { return "{metadata: {namespace: ns, name: s}, spec: {" + spec + "}}" }
	api := func(text string) string { return shoot("kubernetes: {kubeAPIServer: {" + text + "}}") }
	seed := func(spec string) string { return "{metadata: {name: a}, spec: {" + spec + "}}" }
	managed := func(mode, config string) string {
		return "{metadata: {namespace: garden, name: m}, spec: {shoot: {name: s}, gardenlet: {bootstrap: " + mode + ", config: {apiVersion: gardenlet.config.gardener.cloud/v1alpha1, kind: GardenletConfiguration, seedConfig: {spec: {" + config + "}}}}}}"
	}
	const gardenletOfA = "{metadata: {namespace: garden, name: a, annotations: {gardener.cloud/operation: renew-kubeconfig}}, spec: {config: {apiVersion: gardenlet.config.gardener.cloud/v1alpha1, kind: GardenletConfiguration, seedConfig: {spec: {backup: {secretRef: {namespace: garden, name: x}}}}}, deployment: {helm: {ociRepository: {pullSecretRef: {name: p}, caBundleSecretRef: {name: c}}}}}}"
	for name, c := range map[string]struct {
		watch *Watch
		text  string
		want  []string
	}{
		"GE-1/Secret":             {backupBuckets, "{metadata: {name: b}, spec: {credentialsRef: " + ref("Secret", "x") + "}}", []string{"Secret:garden/x -> BackupBucket:b"}},
		"GE-1/WorkloadIdentity":   {backupBuckets, "{metadata: {name: b}, spec: {credentialsRef: " + ref("WorkloadIdentity", "x") + "}}", []string{"WorkloadIdentity:garden/x -> BackupBucket:b"}},
		"GE-1/B-8, another kind":  {backupBuckets, "{metadata: {name: b}, spec: {credentialsRef: " + ref("ConfigMap", "x") + "}}", nil},
		"GE-1/D-8, of old":        {backupBuckets, "{metadata: {name: b}, spec: {secretRef: {namespace: garden, name: x}}}", []string{"Secret:garden/x -> BackupBucket:b"}},
		"GE-2":                    {backupBuckets, "{metadata: {name: b}, spec: {seedName: a}}", []string{"BackupBucket:b -> Seed:a"}},
		"GE-3":                    {backupBuckets, "{metadata: {name: b}, status: {generatedSecretRef: {namespace: garden, name: g}}}", []string{"Secret:garden/g -> BackupBucket:b"}},
		"GE-4":                    {backupBuckets, "{metadata: {name: b}, spec: {shootRef: {namespace: ns, name: s}}}", []string{"BackupBucket:b -> Shoot:ns/s"}},
		"GE-5, GE-6":              {backupEntries, "{metadata: {namespace: ns, name: e}, spec: {bucketName: b, seedName: a}}", []string{"BackupBucket:b -> BackupEntry:ns/e", "BackupEntry:ns/e -> Seed:a"}},
		"GE-7":                    {backupEntries, "{metadata: {namespace: ns, name: e}, status: {seedName: a}}", []string{"BackupEntry:ns/e -> Seed:a"}},
		"GE-8":                    {backupEntries, "{metadata: {namespace: ns, name: e, ownerReferences: [{kind: Shoot, name: s}, {kind: Shoot, name: t}]}}", []string{"BackupEntry:ns/e -> Shoot:ns/s"}},
		"GE-9":                    {bastions, "{metadata: {namespace: ns, name: b}, spec: {seedName: a}}", []string{"Bastion:ns/b -> Seed:a"}},
		"GE-10":                   {certificateSigningRequests, certificateRequest(t, names.SeedUserPrefix+"a", names.SeedsGroup, usages), []string{"CertificateSigningRequest:csr -> Seed:a"}},
		"GE-12":                   {controllerDeployments, "{metadata: {name: d}, helm: {ociRepository: {pullSecretRef: {name: p}, caBundleSecretRef: {name: c}}}}", []string{"Secret:garden/p -> ControllerDeployment:d", "Secret:garden/c -> ControllerDeployment:d"}},
		"GE-13":                   {controllerDeployments, "{metadata: {name: d}, resources: " + resources("Secret", "ConfigMap", "WorkloadIdentity") + "}", []string{"Secret:garden/r-Secret -> ControllerDeployment:d", "ConfigMap:garden/r-ConfigMap -> ControllerDeployment:d"}},
		"GE-14 to GE-17":          {controllerInstallations, installationText, []string{"ControllerRegistration:r -> ControllerInstallation:i", "ControllerInstallation:i -> Seed:a", "ControllerDeployment:d -> ControllerInstallation:i", "ControllerInstallation:i -> Shoot:garden/s"}},
		"GE-15/no seed":           {controllerInstallations, "{metadata: {name: i}, spec: {registrationRef: {name: r}}}", []string{"ControllerRegistration:r -> ControllerInstallation:i"}},
		"GE-16, GE-17/no others":  {controllerInstallations, "{metadata: {name: i}, spec: {registrationRef: {name: r}, seedRef: {name: a}}}", []string{"ControllerRegistration:r -> ControllerInstallation:i", "ControllerInstallation:i -> Seed:a"}},
		"GE-18/BH-SA-32":          {credentialsBindings, "{metadata: {namespace: ns, name: c}, credentialsRef: " + ref("WorkloadIdentity", "x") + "}", []string{"WorkloadIdentity:garden/x -> CredentialsBinding:ns/c"}},
		"GE-19":                   {secretBindings, "{metadata: {namespace: ns, name: c}, secretRef: {namespace: other, name: x}}", []string{"Secret:other/x -> SecretBinding:ns/c"}},
		"GE-20, GE-21":            {gardenlets, gardenletOfA, []string{"Gardenlet:garden/a -> Seed:a", "Secret:garden/x -> Gardenlet:garden/a"}},
		"GE-22":                   {gardenlets, gardenletOfA, []string{"Secret:kube-system/" + names.BootstrapTokenSecret("garden", "a") + " -> Gardenlet:garden/a"}},
		"GE-23":                   {gardenlets, gardenletOfA, []string{"Secret:garden/p -> Gardenlet:garden/a", "Secret:garden/c -> Gardenlet:garden/a"}},
		"GE-24, GE-25, GE-27":     {managedSeeds, managed("None", ""), []string{"ManagedSeed:garden/m -> Shoot:garden/s", "Seed:m -> ManagedSeed:garden/m", "ManagedSeed:garden/m -> Seed:m"}},
		"GE-26":                   {managedSeeds, managed("None", "backup: {credentialsRef: "+ref("Secret", "x")+"}"), []string{"Secret:garden/x -> ManagedSeed:garden/m"}},
		"GE-28":                   {managedSeeds, managed("None", "resources: "+resources("Secret", "ConfigMap", "WorkloadIdentity")), []string{"Secret:garden/r-Secret -> Seed:m", "ConfigMap:garden/r-ConfigMap -> Seed:m", "WorkloadIdentity:garden/r-WorkloadIdentity -> Seed:m"}},
		"GE-29":                   {managedSeeds, managed("BootstrapToken", ""), []string{"Secret:kube-system/" + names.BootstrapTokenSecret("garden", "m") + " -> ManagedSeed:garden/m"}},
		"GE-30, GE-31":            {managedSeeds, managed("ServiceAccount", ""), []string{"ServiceAccount:garden/gardenlet-bootstrap-m -> ManagedSeed:garden/m", "ClusterRoleBinding:gardener.cloud:system:seed-bootstrapper:garden:gardenlet-bootstrap-m -> ManagedSeed:garden/m"}},
		"GE-32":                   {projects, "{metadata: {name: p}, spec: {namespace: garden-p}}", []string{"Project:p -> Namespace:garden-p"}},
		"GE-33":                   {serviceAccounts, "{metadata: {namespace: ns, name: gardenlet-bootstrap-x}, secrets: [{name: t}]}", []string{"Secret:ns/t -> ServiceAccount:ns/gardenlet-bootstrap-x"}},
		"GE-34, GE-35, GE-36":     {seeds, seed(""), []string{"Namespace:seed-a -> Seed:a", "Lease:gardener-system-seed-lease/a -> Seed:a", "ConfigMap:kube-system/cluster-identity -> Seed:a"}},
		"GE-37":                   {seeds, seed("backup: {credentialsRef: " + ref("WorkloadIdentity", "x") + "}"), []string{"WorkloadIdentity:garden/x -> Seed:a"}},
		"GE-38":                   {seeds, seed("dns: {provider: {credentialsRef: " + ref("Secret", "x") + "}}"), []string{"Secret:garden/x -> Seed:a"}},
		"GE-38/D-8, of old":       {seeds, seed("dns: {provider: {secretRef: {namespace: garden, name: x}}}"), []string{"Secret:garden/x -> Seed:a"}},
		"GE-39":                   {seeds, seed("dns: {internal: {credentialsRef: " + ref("Secret", "x") + "}}"), []string{"Secret:garden/x -> Seed:a"}},
		"GE-40":                   {seeds, seed("dns: {defaults: [{credentialsRef: " + ref("Secret", "x") + "}, {credentialsRef: " + ref("WorkloadIdentity", "z") + "}]}"), []string{"Secret:garden/x -> Seed:a", "WorkloadIdentity:garden/z -> Seed:a"}},
		"GE-41":                   {seeds, seed("resources: " + resources("Secret", "ConfigMap", "WorkloadIdentity")), []string{"Secret:garden/r-Secret -> Seed:a", "ConfigMap:garden/r-ConfigMap -> Seed:a", "WorkloadIdentity:garden/r-WorkloadIdentity -> Seed:a"}},
		"GE-41a/of old":           {seeds, seed("secretRef: {namespace: garden, name: kubeconfig}"), []string{"Secret:garden/kubeconfig -> Seed:a"}},
		"GE-42":                   {shoots, shoot(""), []string{"Namespace:ns -> Shoot:ns/s"}},
		"GE-43":                   {shoots, shoot("secretBindingName: b, credentialsBindingName: c"), []string{"SecretBinding:ns/b -> Shoot:ns/s", "CredentialsBinding:ns/c -> Shoot:ns/s"}},
		"GE-44/CloudProfile":      {shoots, shoot("cloudProfile: {name: p}, cloudProfileName: q"), []string{"CloudProfile:p -> Shoot:ns/s"}},
		"GE-44/namespaced":        {shoots, shoot("cloudProfile: {kind: NamespacedCloudProfile, name: p}, cloudProfileName: q"), []string{"NamespacedCloudProfile:ns/p -> Shoot:ns/s"}},
		"GE-44/by name":           {shoots, shoot("cloudProfileName: q"), []string{"CloudProfile:q -> Shoot:ns/s"}},
		"GE-44/B-8, another kind": {shoots, shoot("cloudProfile: {kind: Other, name: p}, cloudProfileName: q"), nil},
		"GE-45":                   {shoots, shoot("resources: " + resources("Secret", "ConfigMap", "WorkloadIdentity", "Other")), []string{"Secret:ns/r-Secret -> Shoot:ns/s", "ConfigMap:ns/r-ConfigMap -> Shoot:ns/s", "WorkloadIdentity:ns/r-WorkloadIdentity -> Shoot:ns/s"}},
		"GE-46":                   {shoots, shoot("seedName: a"), []string{"Shoot:ns/s -> Seed:a"}},
		"GE-47":                   {shoots, "{metadata: {namespace: ns, name: s}, status: {seedName: b}}", []string{"Shoot:ns/s -> Seed:b"}},
		"GE-48":                   {shoots, shoot("exposureClassName: e"), []string{"ExposureClass:e -> Shoot:ns/s"}},
		"GE-49":                   {shoots, api("auditConfig: {auditPolicy: {configMapRef: {name: x}}}"), []string{"ConfigMap:ns/x -> Shoot:ns/s"}},
		"GE-50":                   {shoots, api("structuredAuthentication: {configMapName: x}"), []string{"ConfigMap:ns/x -> Shoot:ns/s"}},
		"GE-51":                   {shoots, api("structuredAuthorization: {configMapName: x, kubeconfigs: [{secretName: z}]}"), []string{"ConfigMap:ns/x -> Shoot:ns/s", "Secret:ns/z -> Shoot:ns/s"}},
		"GE-52":                   {shoots, shoot("dns: {providers: [{credentialsRef: " + ref("WorkloadIdentity", "x") + "}, {secretName: z}]}"), []string{"WorkloadIdentity:ns/x -> Shoot:ns/s", "Secret:ns/z -> Shoot:ns/s"}},
		"GE-53":                   {shoots, shoot(""), []string{"Secret:ns/s.ca-cluster -> Shoot:ns/s", "Secret:ns/s.ssh-keypair -> Shoot:ns/s", "Secret:ns/s.ssh-keypair.old -> Shoot:ns/s", "Secret:ns/s.monitoring -> Shoot:ns/s"}},
		"GE-54, GE-55, GE-56":     {shoots, shoot(""), []string{"InternalSecret:ns/s.ca-client -> Shoot:ns/s", "ConfigMap:ns/s.ca-cluster -> Shoot:ns/s", "ConfigMap:ns/s.ca-kubelet -> Shoot:ns/s", "ShootState:ns/s -> Shoot:ns/s"}},
		"GE-57":                   {shoots, "{metadata: {namespace: ns, name: s, uid: u, annotations: {authentication.gardener.cloud/issuer: managed}}}", []string{"Secret:gardener-system-shoot-issuer/p--u -> Shoot:ns/s"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGarden(t)
			g.SetNamespace(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", Labels: map[string]string{names.Project: "p"}}})
			g.set(seeds, "{metadata: {name: a}}")
			if c.watch == managedSeeds {
				g.Delete(seeds, "", "a")
			}
			_, edges, _ := c.watch.Contribute(decode(t, c.watch, c.text), g.Facts())
			var got []string
			for _, e := range edges {
				got = append(got, Schema.String(e.From)+" -> "+Schema.String(e.To))
			}
			for _, want := range c.want {
				if !slices.Contains(got, want) {
					t.Errorf("there is no %s among %q", want, got)
				}
			}
			if c.want == nil {
				for _, edge := range got {
					if strings.Contains(edge, "garden/x") || strings.Contains(edge, "CloudProfile") {
						t.Errorf("there is %s", edge)
					}
				}
			}
		})
	}
}

// TestKinds is BH-GR-11: a Quota is no vertex.
func TestKinds(t *testing.T) {
	if _, known := KindNamed("Quota"); known {
		t.Error("BH-GR-11: there are Quotas in the graph")
	}
}
