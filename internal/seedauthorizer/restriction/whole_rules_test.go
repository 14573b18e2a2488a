package restriction

import (
	"slices"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-project/espalier/internal/feature"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/gen/builders"
)

// TestUnreadableObjects: a rule that checks the object refuses an object that cannot be read.
func TestUnreadableObjects(t *testing.T) {
	const syntax = "400 couldn't get version/kind; json parse error: invalid character ']' looking for beginning of object key string"
	for name, question := range map[string]string{
		"a Secret of any name":                  "gardenlet CREATE secrets n/x",
		"a Secret of an issuer":                 "gardenlet CREATE secrets gardener-system-shoot-issuer/x",
		"a bootstrap token":                     "gardenlet CREATE secrets kube-system/bootstrap-token-abcdef",
		"a BackupBucket":                        "gardenlet CREATE backupbuckets b",
		"a BackupEntry":                         "gardenlet CREATE backupentries n/b",
		"a changed BackupEntry":                 "gardenlet UPDATE backupentries n/b",
		"a Bastion":                             "gardenlet CREATE bastions n/b",
		"a request for a certificate":           "gardenlet CREATE certificatesigningrequests x",
		"a ClusterRoleBinding":                  "gardenlet CREATE clusterrolebindings x",
		"a Seed without a name":                 "gardenlet CREATE seeds",
		"a ShootState":                          "gardenlet CREATE shootstates n/s",
		"self-hosted, Secret":                   "shoot-gardenlet CREATE secrets n/s.ssh-keypair",
		"self-hosted, bootstrap token":          "shoot-gardenlet CREATE secrets kube-system/bootstrap-token-abcdef",
		"self-hosted, request for certificates": "shoot-gardenlet CREATE certificatesigningrequests x",
		"self-hosted, BackupBucket":             "shoot-gardenlet CREATE backupbuckets b",
		"self-hosted, BackupEntry":              "shoot-gardenlet CREATE backupentries n/e",
		"gardenadm, SecretBinding":              "gardenadm CREATE secretbindings n/b",
		"gardenadm, CredentialsBinding":         "gardenadm CREATE credentialsbindings n/b",
		"gardenadm, Project":                    "gardenadm CREATE projects p",
		"gardenadm, Secret":                     "gardenadm CREATE secrets n/x",
	} {
		t.Run("RES-6/"+name, func(t *testing.T) {
			decide := decided
			if bySelfHostedShoot(question) {
				decide = shootDecided
			}
			expect.Equal(t, decide(t, nil, question, "{]"), syntax)
		})
	}
}

// TestNamesInTheObject: the name of an object that the API server is to generate is the object's own.
func TestNamesInTheObject(t *testing.T) {
	there := garden{"shoots n/s": on("seed"), "shoots n/t": on("other")}
	for name, c := range map[string]struct{ question, object, want string }{
		"RES-23/own Seed":                    {"gardenlet CREATE seeds", "{metadata: {name: seed}}", "allowed"},
		"RES-23/another Seed":                {"gardenlet CREATE seeds", "{metadata: {name: other}}", `403 object does not belong to seed "seed"`},
		"RES-28/ShootState of an own Shoot":  {"gardenlet CREATE shootstates n/", "{metadata: {name: s}}", "allowed"},
		"RES-28/ShootState of another Shoot": {"gardenlet CREATE shootstates n/", "{metadata: {name: t}}", `403 object does not belong to seed "seed"`},
		"RES-32/a token in a wrong namespace is any Secret": {
			"gardenlet CREATE secrets n/bootstrap-token-abcdef", text(bootstrapToken("Gardenlet", "garden/seed")), `403 object does not belong to seed "seed"`,
		},
		"RES-32/another name in kube-system is any Secret": {
			"gardenlet CREATE secrets kube-system/x", text(bootstrapToken("Gardenlet", "garden/seed")), `403 object does not belong to seed "seed"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			expect.Equal(t, decided(t, there, c.question, c.object), c.want)
		})
	}
}

func TestMoreOfSelfHostedShoots(t *testing.T) {
	const foreign = "403 object does not belong to shoot n/s"
	csrOf := func(user string) string {
		return text(builders.CertificateRequest("x", user, "gardener.cloud:system:shoots", "digital signature, key encipherment, client auth"))
	}
	other := garden{"backupbuckets b": "{spec: {shootRef: {namespace: 'n', name: t}}}"}
	for name, c := range map[string]struct {
		garden                 garden
		question, object, want string
	}{
		"a request for the own certificate":      {nil, "shoot-gardenlet CREATE certificatesigningrequests x", csrOf("gardener.cloud:system:shoot:n:s"), "allowed"},
		"a request for another's certificate":    {nil, "shoot-gardenlet CREATE certificatesigningrequests x", csrOf("gardener.cloud:system:shoot:n:t"), foreign},
		"a request in another namespace":         {nil, "shoot-gardenlet CREATE certificatesigningrequests x", csrOf("gardener.cloud:system:shoot:m:s"), foreign},
		"a request that is none":                 {nil, "shoot-gardenlet CREATE certificatesigningrequests x", "{spec: {request: eA==}}", "400 PEM block type must be CERTIFICATE REQUEST"},
		"InternalSecret of another Shoot":        {nil, "shoot-gardenlet CREATE internalsecrets n/t.ca-client", "{}", foreign},
		"Secret of another Shoot":                {nil, "shoot-gardenlet CREATE secrets n/t.ssh-keypair", "{}", foreign},
		"Secret of another Shoot's BackupBucket": {other, "shoot-gardenlet CREATE secrets garden/generated-bucket-b", "{}", foreign},
		"token name outside kube-system":         {nil, "shoot-gardenlet CREATE secrets n/bootstrap-token-abcdef", text(bootstrapToken("Gardenlet", "n/self-hosted-shoot-s")), foreign},
		"another name in kube-system":            {nil, "shoot-gardenlet CREATE secrets kube-system/x", text(bootstrapToken("Gardenlet", "n/self-hosted-shoot-s")), foreign},
		"ManagedSeed without a Shoot":            {garden{"managedseeds n/m": "{spec: {}}"}, "shoot-gardenlet UPDATE managedseeds n/m", "{}", foreign},
		"Secret of an unreadable BackupBucket":   {garden{"backupbuckets b": "error"}, "shoot-gardenlet CREATE secrets garden/generated-bucket-b", "{}", "500 fake-err"},
	} {
		t.Run("8.3/"+name, func(t *testing.T) {
			expect.Equal(t, shootDecided(t, c.garden, c.question, c.object), c.want)
		})
	}
}

// TestRegistrationsHaveEachRule: API servers send each request that a rule judges, once, and no other.
func TestRegistrationsHaveEachRule(t *testing.T) {
	want := func(all ...map[string][]string) map[string]bool {
		flat := map[string]bool{}
		for _, one := range all {
			for resource, operations := range one {
				for _, operation := range operations {
					flat[resource+" "+operation] = true
				}
			}
		}
		return flat
	}
	seeds := operationsOf(checked)
	for name, c := range map[string]struct {
		of   admissionregistrationv1.ValidatingWebhook
		want map[string]bool
	}{
		"ADM-20/seeds": {SeedRegistration(), want(seeds, map[string][]string{"backupbuckets/status.core.gardener.cloud": {"UPDATE"}})},
		"ADM-21/self-hosted shoots": {ShootRegistration(), want(seeds, operationsOf(shootRules), operationsOf(gardenadmRules), map[string][]string{
			"backupbuckets/status.core.gardener.cloud": {"UPDATE"}, "shoots/status.core.gardener.cloud": {"UPDATE"},
		})},
	} {
		t.Run(name, func(t *testing.T) {
			got := map[string]bool{}
			for k, rule := range c.of.Rules {
				if len(rule.APIGroups) != 1 || len(rule.APIVersions) != 1 || rule.APIVersions[0] != versions[rule.APIGroups[0]] || !slices.IsSorted(rule.Resources) {
					t.Errorf("%s: got rule %+v", name, rule)
				}
				if k > 0 && c.of.Rules[k-1].APIGroups[0] > rule.APIGroups[0] {
					t.Errorf("%s: the rule of %s stands after that of %s", name, rule.APIGroups[0], c.of.Rules[k-1].APIGroups[0])
				}
				for _, resource := range rule.Resources {
					for _, operation := range rule.Operations {
						key := schema.GroupResource{Group: rule.APIGroups[0], Resource: resource}.String() + " " + string(operation)
						expect.True(t, !got[key] && c.want[key], "%s: %s is sent and not judged, or sent twice", name, key)
						got[key] = true
					}
				}
			}
			expect.Equal(t, len(got), len(c.want), "%s: sends %d kinds of requests", name, len(got))
			if c.of.TimeoutSeconds == nil || *c.of.TimeoutSeconds != 10 || *c.of.FailurePolicy != admissionregistrationv1.Fail {
				t.Errorf("%s: got timeout %v, failure policy %v", name, c.of.TimeoutSeconds, *c.of.FailurePolicy)
			}
		})
	}
}

func operationsOf[O ~string, F any](rules map[schema.GroupResource]map[O]F) map[string][]string {
	all := map[string][]string{}
	for resource, byOperation := range rules {
		for operation := range byOperation {
			all[resource.String()] = append(all[resource.String()], string(operation))
		}
	}
	return all
}

// TestReadsHaveRights: the rights cover each resource that a rule reads.
func TestReadsHaveRights(t *testing.T) {
	resources := func(reads []feature.Read) (all []string) {
		for _, read := range reads {
			all = append(all, schema.GroupResource{Group: read.Kind.Group, Resource: read.Resource}.String())
		}
		slices.Sort(all)
		return all
	}
	if got, want := resources(ShootReads()), []string{"backupbuckets.core.gardener.cloud", "managedseeds.seedmanagement.gardener.cloud", "seeds.core.gardener.cloud", "shoots.core.gardener.cloud"}; !slices.Equal(got, want) {
		t.Errorf("SH-8: ShootRestriction may read %v, want %v", got, want)
	}
	want := []string{
		"backupbuckets.core.gardener.cloud", "backupentries.core.gardener.cloud", "bastions.operations.gardener.cloud", "certificatesigningrequests.certificates.k8s.io",
		"clusterrolebindings.rbac.authorization.k8s.io", "configmaps", "gardenlets.seedmanagement.gardener.cloud", "internalsecrets.core.gardener.cloud",
		"leases.coordination.k8s.io", "managedseeds.seedmanagement.gardener.cloud", "namespaces", "secrets", "seeds.core.gardener.cloud", "serviceaccounts",
		"shoots.core.gardener.cloud", "shootstates.core.gardener.cloud",
	}
	expect.DeepEqual(t, resources(SeedReads()), want, "RES-2: SeedRestriction may read")
}
