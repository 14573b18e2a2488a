package garden

import (
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-project/espalier/internal/externalapi/wellknown"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// TestSentSelectors: what kube-apiserver makes of the selectors of real requests shows a self-hosted shoot's gardenlet the Secrets of its role only
// (SH-16a, T3-3).
func TestSentSelectors(t *testing.T) {
	namespaceOf(t, "garden-sel", "sel")
	create(t, "Shoot garden-sel/mine", selfHosted)
	create(t, "Secret garden/sel-issuer", "metadata: {labels: {gardener.cloud/role: shoot-service-account-issuer}}")
	create(t, "Secret garden/sel-domain", "metadata: {labels: {gardener.cloud/role: internal-domain}}")
	cl, err := suite.As("gardener.cloud:system:shoot:garden-sel:mine", "gardener.cloud:system:shoots")
	must.Succeed(t, err)
	for selector, allowed := range map[string]bool{
		"gardener.cloud/role=shoot-service-account-issuer":          true,
		"gardener.cloud/role==shoot-service-account-issuer":         true,
		"gardener.cloud/role in (shoot-service-account-issuer)":     true,
		"foo!=bar,gardener.cloud/role=shoot-service-account-issuer": true,
		"":                              false,
		"foo":                           false,
		"gardener.cloud/role":           false,
		"!gardener.cloud/role":          false,
		"gardener.cloud/role!=x":        false,
		"gardener.cloud/role notin (x)": false,
		"gardener.cloud/role in (shoot-service-account-issuer,internal-domain)": false,
		"gardener.cloud/role=internal-domain":                                   false,
		"gardener.cloud/role>1":                                                 false,
	} {
		parsed, err := labels.Parse(selector)
		must.Succeed(t, err)
		eventually(t, "SH-16a/T3-3: "+selector, func() error {
			list := &corev1.SecretList{}
			err := cl.List(t.Context(), list, client.InNamespace("garden"), client.MatchingLabelsSelector{Selector: parsed})
			if !allowed {
				return forbidden(err, "must specify field or label selector for name garden-sel/mine")
			}
			for _, secret := range list.Items {
				expect.Equal(t, secret.Labels["gardener.cloud/role"], "shoot-service-account-issuer", "SH-16a: %s shows a Secret of role", selector)
			}
			return err
		})
	}
}

// TestCollections: an extension of a self-hosted shoot lists the Leases of the project's namespace, and deletes only the shoot's own (SH-14e); gardenadm
// patches the own Shoot only (SH-22).
func TestCollections(t *testing.T) {
	namespaceOf(t, "garden-col", "col")
	create(t, "Shoot garden-col/mine", selfHosted)
	create(t, "ControllerInstallation e", "spec: {shootRef: {namespace: garden-col, name: mine}}")
	create(t, "Shoot garden-col/other", "")
	create(t, "Lease garden-col/mine--e", "")
	create(t, "Lease garden-col/other--e", "")
	cl := account(t, "garden-col", "extension-shoot--mine--e")
	walk(t, cl, []step{
		{"SH-14e", "list", "Lease garden-col/", "", ""},
		{"SH-14e", "delete", "Lease garden-col/other--e", "", "lease object name does not have the shoot name as prefix"},
	})
	err := cl.DeleteAllOf(t.Context(), &coordinationv1.Lease{}, client.InNamespace("garden-col"))
	expect.Succeed(t, forbidden(err, "No Object name found"), "SH-14e: deletecollection")
	walk(t, cl, []step{{"SH-14e", "delete", "Lease garden-col/mine--e", "", ""}})
	gardenadm, err := suite.As("gardener.cloud:gardenadm:shoot:garden-col:mine", "gardener.cloud:system:shoots")
	must.Succeed(t, err)
	walk(t, gardenadm, []step{
		{"SH-22", "patch", "Shoot garden-col/mine", "", ""},
		{"SH-22", "patch", "Shoot garden-col/other", "", "is forbidden"},
	})
}

// TestTokensOfGardenlets: an extension of a seed neither makes nor reads the bootstrap token of a ManagedSeed that its gardenlet makes and reads (SP-11,
// RES-32, T3-5), and no client gets the token of a ServiceAccount by a Secret that it creates (RES-34).
func TestTokensOfGardenlets(t *testing.T) {
	seed, _, ns := landscape(t, "tok")
	create(t, "ManagedSeed "+ns+"/tok-child", "spec: {shoot: {name: on-"+seed+"}, gardenlet: {bootstrap: BootstrapToken, config: {apiVersion: gardenlet.config.gardener.cloud/v1alpha1, kind: GardenletConfiguration}}}")
	of := "A bootstrap token for the Gardenlet for seedmanagement.gardener.cloud/v1alpha1.ManagedSeed resource " + ns + "/tok-child."
	const valid = "type: bootstrap.kubernetes.io/token\nstringData: {token-id: abcdef, token-secret: abcdef0123456789, usage-bootstrap-authentication: 'true', usage-bootstrap-signing: 'true', description: "
	token := "Secret kube-system/" + wellknown.BootstrapTokenSecret(ns, "tok-child")
	e := extension(t, seed, "extension-tok")
	walk(t, e, []step{{"RES-32", "create", token, valid + of + "}", "extension client may not create bootstrap tokens"}})
	walk(t, gardenlet(t, seed), []step{
		{"RES-32", "create", token, valid + of + "}", ""},
		{"GE-29", "get", token, "", ""},
		{"GE-29", "patch", token, "", ""},
		{"RES-34", "create", "Secret " + ns + "/on-" + seed + ".monitoring", "type: kubernetes.io/service-account-token\nmetadata: {annotations: {kubernetes.io/service-account.name: default}}", "may not create Secrets of type"},
	})
	walk(t, e, []step{
		{"SP-11", "get", token, "", "only the gardenlet of a seed needs a bootstrap token"},
		{"SP-11", "patch", token, "", "only the gardenlet of a seed needs a bootstrap token"},
		{"SP-11", "delete", token, "", "only the gardenlet of a seed needs a bootstrap token"},
	})
	walk(t, gardenlet(t, seed), []step{{"GE-29", "delete", token, "", ""}})
}
