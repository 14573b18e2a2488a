package relation

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-project/espalier/internal/foreign/names"
)

func certificateRequest(t *testing.T, user, organization, usages string) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: user, Organization: []string{organization}}}, key)
	if err != nil {
		t.Fatal(err)
	}
	request := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
	return fmt.Sprintf("metadata: {name: csr}\nspec: {usages: [%s], request: %s}", usages, base64.StdEncoding.EncodeToString(request))
}

// TestSizes is CT-G-1: what each kind of object adds, and that nothing is left of it.
func TestSizes(t *testing.T) {
	token := map[string]string{"mode": "BootstrapToken"}
	for name, c := range map[string]struct {
		watch        *Watch
		text, before string
		beforeWatch  *Watch
		want, after  string
	}{
		"Seed":    {watch: seeds, text: seedText, want: "10 / 9"},
		"Seed/no": {watch: seeds, text: "{metadata: {name: a}, spec: {resources: [{resourceRef: {apiVersion: v1, kind: Secret, name: res}}]}}", want: "5 / 4"},
		"Seed/of old": {watch: seeds, want: "7 / 6",
			text: "{metadata: {name: a}, spec: {secretRef: {namespace: garden, name: kubeconfig}, backup: {secretRef: {namespace: garden, name: b}}, dns: {provider: {secretRef: {namespace: garden, name: c}}}}}"},
		"Shoot":                        {watch: shoots, text: shootText, want: "24 / 23"},
		"Shoot/without a binding":      {watch: shoots, text: strings.Replace(shootText, "  secretBindingName: sb\n", "", 1), want: "23 / 22"},
		"Shoot/exposure class":         {watch: shoots, text: shootText + "  exposureClassName: internet\n", want: "25 / 24"},
		"Shoot/of old":                 {watch: shoots, text: "{metadata: {namespace: garden-dev, name: web}, spec: {cloudProfileName: cp, dns: {providers: [{secretName: dns}]}}}", want: "12 / 11"},
		"Project":                      {watch: projects, text: "{metadata: {name: dev}, spec: {namespace: garden-dev}}", want: "2 / 1"},
		"Project/without namespace":    {watch: projects, text: "{metadata: {name: dev}}", want: "0 / 0"},
		"BackupBucket":                 {watch: backupBuckets, text: bucketText, want: "4 / 3"},
		"BackupBucket/of old":          {watch: backupBuckets, text: "{metadata: {name: b}, spec: {secretRef: {namespace: garden, name: x}}}", want: "2 / 1"},
		"BackupBucket/of a shoot":      {watch: backupBuckets, text: "{metadata: {name: b}, spec: {shootRef: {apiVersion: core.gardener.cloud/v1beta1, kind: Shoot, namespace: garden, name: s}}}", want: "2 / 1"},
		"BackupEntry":                  {watch: backupEntries, text: entryText, want: "4 / 3"},
		"BackupEntry/in migration":     {watch: backupEntries, text: entryText + "status: {seedName: b}\n", want: "5 / 4"},
		"Bastion":                      {watch: bastions, text: "{metadata: {namespace: garden-dev, name: b}, spec: {seedName: a}}", want: "2 / 1"},
		"SecretBinding":                {watch: secretBindings, text: "{metadata: {namespace: garden-dev, name: sb}, secretRef: {namespace: other, name: s}}", want: "2 / 1"},
		"CredentialsBinding":           {watch: credentialsBindings, text: "{metadata: {namespace: garden-dev, name: cb}, credentialsRef: {apiVersion: v1, kind: Secret, namespace: other, name: s}}", want: "2 / 1"},
		"ControllerInstallation":       {watch: controllerInstallations, text: installationText, want: "5 / 4"},
		"ControllerDeployment":         {watch: controllerDeployments, text: "{metadata: {name: d}, helm: {ociRepository: {pullSecretRef: {name: p}, caBundleSecretRef: {name: c}}}}", want: "3 / 2"},
		"ControllerDeployment/CT-G-17": {watch: controllerDeployments, text: "{metadata: {name: d}, helm: {rawChart: x}}", want: "0 / 0"},
		"ControllerDeployment/B-9": {watch: controllerDeployments, want: "3 / 2",
			text: "{metadata: {name: d}, resources: [{resourceRef: {apiVersion: v1, kind: ConfigMap, name: c}}, {resourceRef: {apiVersion: v1, kind: Secret, name: s}}, {resourceRef: {apiVersion: v2, kind: Secret, name: t}}]}"},
		"ManagedSeed/no Seed":         {watch: managedSeeds, text: render(t, managedSeedText, token), want: "6 / 6"},
		"ManagedSeed/Seed, valid":     {watch: managedSeeds, text: render(t, managedSeedText, token), beforeWatch: seeds, before: childSeed("2026-11-21T13:00:00Z"), want: "8 / 8", after: "4 / 3"},
		"ManagedSeed/ServiceAccount":  {watch: managedSeeds, text: render(t, managedSeedText, map[string]string{"mode": "ServiceAccount"}), want: "7 / 7"},
		"ManagedSeed/no shoot, B-8":   {watch: managedSeeds, text: "{metadata: {namespace: garden, name: child}}", want: "2 / 2"},
		"ManagedSeed/broken, CT-G-14": {watch: managedSeeds, text: "{metadata: {namespace: garden, name: child}, spec: {shoot: {name: s}, gardenlet: {bootstrap: BootstrapToken, config: {apiVersion: v1, kind: x}}}}", want: "3 / 3"},
		"Gardenlet":                   {watch: gardenlets, text: render(t, gardenletText, nil), want: "5 / 4"},
		"Gardenlet/renews":            {watch: gardenlets, text: render(t, gardenletText, map[string]string{"annotations": "gardener.cloud/operation: renew-kubeconfig"}), beforeWatch: seeds, before: "{metadata: {name: a}}", want: "9 / 8", after: "4 / 3"},
		"Gardenlet/broken, B-12":      {watch: gardenlets, text: "{metadata: {namespace: garden, name: a}, spec: {config: {kind: 5}, deployment: {helm: {ociRepository: {pullSecretRef: {name: p}}}}}}", want: "3 / 2"},
		"Gardenlet/self-hosted":       {watch: gardenlets, text: "{metadata: {namespace: garden-dev, name: self-hosted-shoot-x}}", want: "1 / 0"},
		"ServiceAccount":              {watch: serviceAccounts, text: "{metadata: {namespace: garden, name: gardenlet-bootstrap-x}, secrets: [{name: a}, {name: b}]}", want: "3 / 2"},
		"ServiceAccount/CT-G-16":      {watch: serviceAccounts, text: "{metadata: {namespace: garden, name: other}, secrets: [{name: a}, {name: b}]}", want: "0 / 0"},
		"CSR":                         {watch: certificateSigningRequests, text: certificateRequest(t, names.SeedUserPrefix+"a", names.SeedsGroup, "client auth, key encipherment, digital signature"), want: "2 / 1"},
		"CSR/wrong usages":            {watch: certificateSigningRequests, text: certificateRequest(t, names.SeedUserPrefix+"a", names.SeedsGroup, "server auth"), want: "0 / 0"},
		"CSR/B-4, no seed":            {watch: certificateSigningRequests, text: certificateRequest(t, names.SeedUserPrefix, names.SeedsGroup, "client auth, key encipherment, digital signature"), want: "0 / 0"},
	} {
		t.Run("CT-G-1/"+name, func(t *testing.T) {
			g := newGarden(t)
			if c.watch == shoots {
				g.SetNamespace(projectNamespace)
			}
			if c.beforeWatch != nil {
				g.set(c.beforeWatch, c.before)
			}
			g.set(c.watch, c.text)
			g.wantSize(c.want)
			before := len(g.updates)
			total := g.total()
			g.set(c.watch, c.text)
			g.wantSize(c.want)
			if g.total() != total || len(g.updates) != before {
				t.Errorf("CT-G-22: an update that changes nothing is counted: %v", g.updates)
			}
			owner := c.watch.Owner(decode(t, c.watch, c.text))
			g.Delete(c.watch, owner.Namespace, owner.Name)
			if c.after == "" {
				c.after = "0 / 0"
			}
			g.wantSize(c.after)
		})
	}
}

func (g *garden) total() (n int) {
	for _, count := range g.updates {
		n += count
	}
	return n
}

const (
	bucketText       = "{metadata: {name: b}, spec: {seedName: a, credentialsRef: {apiVersion: v1, kind: Secret, namespace: garden, name: creds}}, status: {generatedSecretRef: {namespace: garden, name: generated-bucket-b}}}"
	entryText        = "metadata: {namespace: garden-dev, name: e, ownerReferences: [{apiVersion: x, kind: Other, name: o, uid: u}, {apiVersion: core.gardener.cloud/v1beta1, kind: Shoot, name: web, uid: u}]}\nspec: {seedName: a, bucketName: b}\n"
	installationText = "{metadata: {name: i}, spec: {registrationRef: {name: r}, deploymentRef: {name: d}, seedRef: {name: a}, shootRef: {namespace: garden, name: s}}}"
)

var projectNamespace = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "garden-dev", Labels: map[string]string{names.Project: "dev"}}}

func childSeed(expires string) string {
	return "{metadata: {name: child}, status: {clientCertificateExpirationTimestamp: " + expires + "}}"
}

func TestPathsOfShoots(t *testing.T) {
	g := newGarden(t)
	g.SetNamespace(projectNamespace)
	g.set(shoots, shootText)
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
	migrating := strings.Replace(shootText, "spec:", "status: {seedName: b}\nspec:", 1)
	g.set(shoots, migrating)
	g.wantPath("CloudProfile:cp", "Seed:a", true) // Both seeds of a migration count (C20, CT-G-3).
	g.wantPath("CloudProfile:cp", "Seed:b", true)
	g.set(shoots, strings.NewReplacer("seedName: a", "seedName: c", "cloudProfile: {name: cp}", "cloudProfile: {kind: NamespacedCloudProfile, name: ncp}\n  cloudProfileName: cp").Replace(shootText))
	for _, seed := range []string{"Seed:a", "Seed:b"} {
		g.wantPath("Shoot:garden-dev/web", seed, false)
	}
	g.wantPath("NamespacedCloudProfile:garden-dev/ncp", "Seed:c", true) // The profile that is named now (CT-G-4).
	g.wantPath("CloudProfile:cp", "Seed:c", false)

	// CT-G-9: annotation and label decide about the issuer's Secret.
	issuer := "Secret:gardener-system-shoot-issuer/dev--1234"
	g.set(shoots, strings.Replace(shootText, "managed", "other", 1))
	g.wantPath(issuer, "Seed:a", false)
	g.DeleteNamespace("garden-dev")
	g.set(shoots, shootText)
	g.wantPath(issuer, "Seed:a", false)
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

func TestSharedObjects(t *testing.T) {
	g := newGarden(t)
	shoot := func(binding string) string {
		return "{metadata: {namespace: garden-dev, name: web}, spec: {seedName: a, secretBindingName: " + binding + ", resources: [{resourceRef: {apiVersion: v1, kind: Secret, name: shared}}]}}"
	}
	binding := "{metadata: {namespace: garden-dev, name: sb}, secretRef: {namespace: other, name: s}}"
	g.set(shoots, shoot("sb"))
	g.set(secretBindings, binding)
	g.wantPath("Secret:other/s", "Seed:a", true)
	g.Delete(secretBindings, "garden-dev", "sb")
	g.wantPath("SecretBinding:garden-dev/sb", "Seed:a", true)
	g.wantPath("Secret:other/s", "Seed:a", false)
	g.set(secretBindings, binding)
	g.wantPath("Secret:other/s", "Seed:a", true) // CT-G-5, B-13: without an event of the Shoot.

	g.set(seeds, "{metadata: {name: a}}")
	g.Delete(seeds, "", "a")
	g.wantPath("Shoot:garden-dev/web", "Seed:a", true) // CT-G-21: what the Shoot says is still so.
	g.wantPath("Lease:gardener-system-seed-lease/a", "Seed:a", false)

	g.set(backupBuckets, "{metadata: {name: b}, spec: {seedName: a, secretRef: {namespace: garden-dev, name: shared}}}")
	g.set(shoots, "{metadata: {namespace: garden-dev, name: web}, spec: {seedName: z}}")
	g.wantPath("Secret:garden-dev/shared", "Seed:a", true) // The other one refers to it still (CT-G-6).
	g.wantPath("Secret:garden-dev/shared", "Seed:z", false)
}

func TestCredentialsSwitch(t *testing.T) {
	g := newGarden(t)
	text := func(apiVersion, kind string) string {
		return "{metadata: {namespace: garden-dev, name: cb}, credentialsRef: {apiVersion: " + apiVersion + ", kind: " + kind + ", namespace: other, name: c}}"
	}
	g.set(shoots, "{metadata: {namespace: garden-dev, name: web}, spec: {seedName: a, credentialsBindingName: cb}}")
	all := map[string]string{"Secret": "v1", "WorkloadIdentity": "security.gardener.cloud/v1alpha1", "InternalSecret": "core.gardener.cloud/v1beta1"}
	for kind, apiVersion := range all { // Each kind of credentials after each other (CT-G-8).
		g.set(credentialsBindings, text(apiVersion, kind))
		for other := range all {
			g.wantPath(other+":other/c", "Seed:a", other == kind)
		}
	}
	g.set(credentialsBindings, text("v7", "Secret")) // Of a version that nobody knows (CT-G-14).
	g.wantPath("Secret:other/c", "Seed:a", false)
	g.wantPath("CredentialsBinding:garden-dev/cb", "Seed:a", true)
}

func TestBackupEntries(t *testing.T) {
	g := newGarden(t)
	g.set(backupEntries, entryText)
	g.wantPath("BackupBucket:b", "Seed:a", true)
	g.wantPath("BackupBucket:b", "Shoot:garden-dev/web", false) // Only Seeds are sinks.
	g.set(backupEntries, "{metadata: {namespace: garden-dev, name: e}, spec: {seedName: a, bucketName: c}, status: {seedName: s}}")
	g.wantPath("BackupBucket:b", "Seed:a", false) // The entry has another bucket (CT-G-7).
	g.wantPath("BackupBucket:c", "Seed:a", true)
	g.wantPath("BackupEntry:garden-dev/e", "Seed:s", true)
	g.wantSize("4 / 3")
}

func TestParentGardenlet(t *testing.T) {
	g := newGarden(t)
	g.set(shoots, "{metadata: {namespace: garden, name: child-shoot}, spec: {seedName: parent}}")
	g.set(managedSeeds, render(t, managedSeedText, map[string]string{"mode": "BootstrapToken"}))
	g.set(seeds, childSeed("2026-11-21T13:00:00Z"))
	g.set(shoots, "{metadata: {namespace: garden-dev, name: web}, spec: {seedName: child}}")
	g.wantPath("Seed:child", "Seed:parent", true) // The parent reaches the Seed itself, round the circle (CT-G-19, CT-G-20, BH-SA-28), …
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
	g.wantPath("Secret:garden/child-resource", "Seed:child", false) // Nothing is left of a ManagedSeed that is gone (CT-G-13, B-14).
}

func TestBootstrapping(t *testing.T) {
	const (
		token   = "Secret:kube-system/bootstrap-token-"
		account = "ServiceAccount:garden/gardenlet-bootstrap-child"
		role    = "ClusterRoleBinding:gardener.cloud:system:seed-bootstrapper:garden:gardenlet-bootstrap-child"
	)
	tokenOf := token + names.BootstrapTokenID("garden", "child")
	managed := func(mode, annotations string) string {
		return render(t, managedSeedText, map[string]string{"mode": mode, "annotations": annotations})
	}
	g := newGarden(t)
	has := func(rule, name string, want bool) {
		t.Helper()
		if got := g.Graph.Has(vertex(t, name)); got != want {
			t.Errorf("%s: %s is there: %v, want %v", rule, name, got, want)
		}
	}
	g.set(managedSeeds, managed("BootstrapToken", ""))
	has("CT-G-10, no Seed", tokenOf, true)
	g.set(seeds, "{metadata: {name: child}}")
	has("CT-G-11, a Seed that says nothing of its certificate", tokenOf, false)
	g.set(seeds, childSeed("2026-11-21T11:00:00Z"))
	has("CT-G-11, expired", tokenOf, true)
	g.set(seeds, childSeed("2026-11-21T13:00:00Z"))
	has("CT-G-11, valid", tokenOf, false)
	if next := g.Expire(); !next.Equal(now.Add(3600e9)) {
		t.Errorf("B-11: the next certificate expires at %v", next)
	}
	g.clock.SetTime(now.Add(3601e9))
	if next := g.Expire(); !next.IsZero() {
		t.Errorf("B-11: the next certificate expires at %v, want none", next)
	}
	has("B-11, time has passed", tokenOf, true)
	g.set(seeds, childSeed("2026-11-21T23:00:00Z"))
	has("CT-G-11, renewed", tokenOf, false)
	g.Delete(seeds, "", "child")
	has("B-11, the Seed is gone", tokenOf, true)
	g.set(seeds, childSeed("2026-11-21T23:00:00Z"))
	g.set(managedSeeds, managed("BootstrapToken", "gardener.cloud/operation: renew-kubeconfig"))
	has("CT-G-10, renew-kubeconfig", tokenOf, true)
	g.set(managedSeeds, managed("ServiceAccount", "gardener.cloud/operation: renew-kubeconfig"))
	has("CT-G-10, mode ServiceAccount", tokenOf, false)
	has("CT-G-10, mode ServiceAccount", account, true)
	has("CT-G-10, mode ServiceAccount", role, true)

	gardenletToken := token + names.BootstrapTokenID("garden", "a")
	g.set(gardenlets, render(t, gardenletText, map[string]string{"annotations": "gardener.cloud/operation: renew-kubeconfig"}))
	has("CT-G-12, no Seed", gardenletToken, false)
	g.set(seeds, "{metadata: {name: a}}")
	has("CT-G-12, a Seed", gardenletToken, true)
	g.set(gardenlets, render(t, gardenletText, nil))
	has("CT-G-12, no annotation", gardenletToken, false)
	g.set(seeds, "{metadata: {name: a}, status: {clientCertificateExpirationTimestamp: 2026-11-21T01:00:00Z}}")
	has("CT-G-12, expired", gardenletToken, true)
}

func TestRetain(t *testing.T) {
	g := newGarden(t)
	g.set(projects, "{metadata: {name: one}, spec: {namespace: garden-one}}")
	g.set(projects, "{metadata: {name: two}, spec: {namespace: garden-two}}")
	g.Retain(projects, func(string, string) bool { return false })
	g.wantSize("0 / 0") // CT-G-15: deletions that were missed.
	for _, w := range Watches {
		g.Delete(w, "n", "nobody")
	}
	g.wantSize("0 / 0")
}

func TestServiceAccountLosesItsName(t *testing.T) {
	g := newGarden(t)
	g.set(serviceAccounts, "{metadata: {namespace: garden, name: gardenlet-bootstrap-x}, secrets: [{name: a}]}")
	g.set(serviceAccounts, "{metadata: {namespace: garden, name: gardenlet-bootstrap-x}}")
	g.wantSize("0 / 0") // Without Secrets it needs no vertex (B-10).
}
