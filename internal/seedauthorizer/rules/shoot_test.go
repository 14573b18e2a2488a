package rules

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/espalier-project/espalier/internal/externalapi/wellknown"
	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/gen/builders"
	"github.com/espalier-project/espalier/test/must"
)

// shootAuthorizer has a Shoot with what the cases below speak of; its clients are shoot-gardenlet, shoot-extension (in garden-n) and gardenadm.
func shootAuthorizer(l *live) *Authorizer {
	options := Options{Graph: graph.New(relation.SelfHostedSchema), Watches: relation.SelfHosted, Facts: noFacts{}, Selectors: selectors{possible: true}, Live: l, Log: logr.Discard()}
	a := NewShootAuthorizer(options, newAuthorizer())
	for _, namespace := range []string{"n", "garden-n", wellknown.Garden} {
		shoot := graph.Vertex{Kind: relation.Shoot, Namespace: namespace, Name: "s"}
		edges := []graph.Edge{}
		for _, v := range []graph.Vertex{
			{Kind: relation.BackupBucket, Name: "own"}, {Kind: relation.Secret, Namespace: namespace, Name: "own"}, {Kind: relation.ConfigMap, Namespace: namespace, Name: "own"},
			{Kind: relation.Bastion, Namespace: namespace, Name: "own"}, {Kind: relation.ControllerInstallation, Name: "own"}, {Kind: relation.ControllerInstallation, Name: "e"}, {Kind: relation.ManagedSeed, Namespace: namespace, Name: "own"},
			{Kind: relation.Secret, Namespace: "kube-system", Name: "bootstrap-token-known"}, {Kind: relation.Namespace, Name: namespace}, {Kind: relation.ServiceAccount, Namespace: namespace, Name: "own"},
		} {
			edges = append(edges, graph.Edge{From: v, To: shoot})
		}
		a.Graph.Set(shoot, edges)
	}
	return a
}

// shootCases are in the notation of the cases of seeds. Clients are the gardenlet of Shoot n/s, an extension of Shoot garden-n/s, gardenadm of
// Shoot n/s, and the gardenlet of a seed. TOKEN stands for the ID of the Shoot's own bootstrap token.
const shootCases = `
SH-3: shoot-gardenlet get bastions other/own => no opinion: only the following namespaces are allowed for this resource type: [n]
SH-12: shoot-gardenlet create gardenlets other/ => no opinion: [n]
SH-15: shoot-gardenlet get managedseeds other/own => no opinion: [n]
SH-1: shoot-gardenlet list backupbuckets field:spec.shootRef.name=s => no opinion: must specify field or label selector for name n/s
SH-1: shoot-gardenlet list backupbuckets field:spec.shootRef.namespace=n => no opinion: must specify
SH-1: shoot-gardenlet list backupbuckets field:spec.shootRef.name=s,spec.shootRef.namespace=n => allowed
SH-9: shoot-gardenlet list controllerinstallations field:spec.shootRef.name=s,spec.shootRef.namespace=x => no opinion: must specify
SH-3: shoot-gardenlet list bastions n/ field:spec.shootRef.name=s => allowed
SH-12: shoot-gardenlet list gardenlets n/ field:metadata.name=self-hosted-shoot-s => allowed
SH-12: shoot-gardenlet list gardenlets n/ field:metadata.name=self-hosted-shoot-t => no opinion: must specify
SH-15: shoot-gardenlet list managedseeds n/ field:spec.shoot.name=s => allowed
SH-16b: shoot-gardenlet get secrets kube-system/bootstrap-token-TOKEN => allowed
SH-16b: shoot-gardenlet get secrets kube-system/bootstrap-token-abcdef => no opinion: bootstrap token secret name bootstrap-token-abcdef does not match expected name bootstrap-token-TOKEN for shoot n/s
SH-16b: shoot-gardenlet watch secrets kube-system/bootstrap-token-TOKEN => allowed
SH-16b: shoot-extension get secrets kube-system/bootstrap-token-abcdef => no opinion: does not match expected name
SH-16b: shoot-extension list secrets kube-system/bootstrap-token-known => no opinion: does not match expected name
SH-16b: shoot-gardenlet list secrets kube-system/bootstrap-token-TOKEN => allowed
SH-16b: shoot-extension create secrets kube-system/bootstrap-token-known => no opinion: only the gardenlet of a shoot needs a bootstrap token
SH-16c: shoot-extension delete secrets kube-system/bootstrap-token-known => no opinion: only the gardenlet of a shoot needs a bootstrap token
SH-16c: shoot-extension deletecollection secrets kube-system/ => no opinion: [create delete get list patch update watch]
SH-16b: shoot-extension patch secrets kube-system/bootstrap-token-known => no opinion: only the gardenlet of a shoot needs a bootstrap token
SH-16b: shoot-gardenlet patch secrets kube-system/bootstrap-token-known => allowed
SH-16c: shoot-gardenlet delete secrets kube-system/bootstrap-token-mine => allowed
SH-16c: shoot-gardenlet delete secrets kube-system/bootstrap-token-gardenlet => allowed
SH-16c: shoot-gardenlet delete secrets kube-system/bootstrap-token-other => no opinion: shoot meta in bootstrap token secret kube-system/bootstrap-token-other does not match with identity of requestor n/s
SH-16c: shoot-gardenlet delete secrets kube-system/bootstrap-token-strange => no opinion: no relationship found
SH-16a: shoot-gardenlet list secrets garden/ label:gardener.cloud/role=shoot-service-account-issuer => allowed
SH-16a: shoot-gardenlet list secrets garden/ => no opinion: must specify
SH-16a: shoot-extension list secrets garden/ label:gardener.cloud/role=shoot-service-account-issuer => no opinion: must specify
SH-22: gardenadm get cloudprofiles x => allowed
SH-22: gardenadm list cloudprofiles => no opinion
SH-22: gardenadm create configmaps n/ => allowed
SH-22: gardenadm create configmaps other/ => no opinion
SH-22: gardenadm create projects => allowed
SH-22: gardenadm create workloadidentities n/ => allowed
SH-22: gardenadm create shoots n/ => allowed
SH-22: gardenadm create shoots n/s => allowed
SH-22: gardenadm patch shoots n/s => allowed
SH-22: gardenadm mark-self-hosted shoots n/s => allowed
SH-22: gardenadm create shoots n/t => no opinion
SH-22: gardenadm create shoots other/ => no opinion
SH-22: gardenadm patch shoots n/t => no opinion
SH-22: gardenadm patch shoots n/ss => no opinion
SH-22: gardenadm patch shoots n/ => no opinion
SH-22: gardenadm patch shoots other/s => no opinion
SH-22: gardenadm mark-self-hosted shoots n/t => no opinion
SH-22: gardenadm mark-self-hosted shoots n/ => no opinion
SH-22: gardenadm update shoots n/s => no opinion
SH-22: gardenadm delete shoots n/s => no opinion
SH-22: gardenadm deletecollection shoots n/ => no opinion
SH-22: gardenadm create shoots/adminkubeconfig n/s => no opinion
SH-22: gardenadm patch shoots/binding n/s => no opinion
SH-22: gardenadm patch shoots/status n/ => no opinion
SH-22: gardenadm patch configmaps n/x => no opinion
SH-22: gardenadm create secrets/foo n/x => no opinion
SH-22: gardenadm get shoots n/s => no opinion
SH-22: gardenadm patch shoots/status n/s => allowed
SH-22: gardenadm patch shoots/status n/t => no opinion
SH-1: shoot-gardenlet create backupbuckets => allowed
SH-1: shoot-gardenlet get backupbuckets own => allowed
SH-1: shoot-gardenlet update backupbuckets/finalizers own => allowed
SH-1: shoot-gardenlet get backupbuckets foreign => no opinion: no relationship found: BackupBucket:foreign is not known to lead to Shoot:n/s
SH-5: shoot-gardenlet get configmaps n/own => allowed
SH-5: shoot-gardenlet get configmaps n/s.ca-cluster => allowed
SH-5: shoot-gardenlet patch configmaps n/s.ca-kubelet => allowed
SH-5: shoot-gardenlet get configmaps n/t.ca-cluster => no opinion: no relationship found
SH-5: shoot-gardenlet get configmaps kube-system/cluster-identity => allowed
SH-16: shoot-gardenlet get secrets n/own => allowed
SH-16: shoot-gardenlet list secrets n/own => allowed
SH-16: shoot-gardenlet get secrets n/s.ssh-keypair => allowed
SH-16: shoot-gardenlet get secrets n/t.ssh-keypair => no opinion: no relationship found
SH-16: shoot-gardenlet deletecollection secrets n/ => no opinion: [create delete get list patch update watch]
SH-13: shoot-gardenlet get internalsecrets n/s.ca-client => allowed
SH-20: shoot-gardenlet get shootstates n/s => allowed
SH-20: shoot-gardenlet delete shootstates n/s => no opinion: [create get list patch watch]
SH-14g: shoot-gardenlet get leases n/self-hosted-shoot-s => allowed
SH-14g: shoot-gardenlet create leases n/ => allowed
SH-14g: shoot-gardenlet get leases n/other => no opinion: no relationship found
SH-14e: shoot-extension create leases garden-n/ => allowed
SH-14e: shoot-extension list leases garden-n/ => allowed
SH-14e: shoot-extension watch leases garden-n/ => allowed
SH-14e: shoot-extension deletecollection leases garden-n/ => no opinion: No Object name found
SH-14e: shoot-extension get leases garden-n/ => no opinion: No Object name found
SH-14e: shoot-extension update leases garden-n/ => no opinion: No Object name found
SH-14e: shoot-extension patch leases garden-n/ => no opinion: No Object name found
SH-14e: shoot-extension delete leases garden-n/ => no opinion: No Object name found
SH-14e: shoot-extension deletecollection leases => no opinion: lease object is not in shoot namespace
SH-14e: shoot-extension create leases garden-n/t--e => no opinion: lease object name does not have the shoot name as prefix
SH-14e: shoot-extension delete leases garden-n/s--e => allowed
SH-14e: shoot-extension patch leases garden-n/ss--e => no opinion: lease object name does not have the shoot name as prefix
SH-14e: shoot-extension get leases garden-n/s--e => allowed
SH-14e: shoot-extension get leases garden-n/t--e => no opinion: lease object name does not have the shoot name as prefix
SH-14e: shoot-extension get leases other/s--e => no opinion: lease object is not in shoot namespace
SH-14e: shoot-extension foo leases garden-n/s--e => no opinion: [create get list watch update patch delete deletecollection]
SH-10: shoot-gardenlet get controllerregistrations x => allowed
SH-17a: shoot-gardenlet list seeds => allowed
SH-17: shoot-gardenlet get seeds s => allowed
SH-17: shoot-gardenlet get seeds t => no opinion: no relationship found
SH-19a: shoot-gardenlet get shoots n/s => allowed
SH-19: shoot-gardenlet list shoots n/s => allowed
SH-19: shoot-gardenlet patch shoots n/s => allowed
SH-19: shoot-gardenlet patch shoots/status n/s => allowed
SH-19: shoot-gardenlet patch shoots n/t => no opinion: no relationship found
SH-19: shoot-gardenlet get shoots n/t => no opinion: [patch update]
SH-18g: shoot-gardenlet create serviceaccounts n/ => allowed
SH-18g: shoot-gardenlet deletecollection serviceaccounts n/extension-shoot--s--e => allowed
SH-18g: shoot-gardenlet create serviceaccounts/token n/extension-shoot--s--e => allowed
SH-18g: shoot-gardenlet delete serviceaccounts n/extension-shoot--t--e => no opinion: [create get patch update]
SH-18a: shoot-gardenlet deletecollection serviceaccounts n/ => no opinion: [create get patch update]
SH-18a: shoot-gardenlet list serviceaccounts n/ => no opinion: [create get patch update]
SH-18a: shoot-gardenlet patch serviceaccounts n/ => no opinion: No Object name found
SH-18a: shoot-gardenlet delete serviceaccounts n/extension-shoot--ss--e => no opinion: [create get patch update]
SH-18a: shoot-gardenlet create serviceaccounts/token n/extension-shoot--t--e => no opinion: only the following subresources
SH-18a: shoot-gardenlet delete serviceaccounts other/extension-shoot--s--e => no opinion: [create get patch update]
SH-18e: shoot-extension get serviceaccounts garden-n/own => allowed
SH-18e: shoot-extension create serviceaccounts garden-n/ => no opinion: [get]
SH-4g: shoot-gardenlet create certificatesigningrequests/shootclient x => allowed
SH-4e: shoot-extension create certificatesigningrequests => no opinion: [get list watch]
SH-11: shoot-gardenlet create events n/ => allowed
SH-21: shoot-gardenlet create workloadidentities/token n/x => no opinion: no relationship found
8.2: shoot-gardenlet get quotas n/x => no opinion
SH-2: shoot-gardenlet create backupentries n/ => allowed
SH-2: shoot-gardenlet get backupentries n/other => no opinion: no relationship found
SH-2: shoot-gardenlet list backupentries n/ => no opinion: must specify
SH-2: shoot-gardenlet patch backupentries/finalizers n/other => no opinion: only the following subresources are allowed for this resource type: [status]
SH-6: shoot-gardenlet get controllerdeployments other => no opinion: no relationship found
SH-6: shoot-gardenlet create controllerdeployments other => no opinion: only the following verbs are allowed for this resource type: [get list watch]
SH-7: shoot-gardenlet get namespaces n => allowed
SH-7: shoot-gardenlet get namespaces other => no opinion: no relationship found
SH-7: shoot-gardenlet patch namespaces n => no opinion: only the following verbs
SH-8: shoot-gardenlet get projects other => no opinion: no relationship found
SH-8: shoot-gardenlet delete projects other => no opinion: only the following verbs
8.2: gardenlet get shoots n/s => no opinion
`

// TestShootRules_DecideTheirCases are the cases of 13.6; every rule of the table decides one at least.
func TestShootRules_DecideTheirCases(t *testing.T) {
	secret := func(description string) runtime.Object {
		return &corev1.Secret{Data: map[string][]byte{"description": []byte(description)}}
	}
	token := "bootstrap-token-TOKEN"
	l := &live{objects: map[string]runtime.Object{
		"secrets:kube-system/bootstrap-token-mine":      secret("Used for connecting the self-hosted Shoot n/s to the garden."),
		"secrets:kube-system/bootstrap-token-gardenlet": secret("A bootstrap token for the Gardenlet for seedmanagement.gardener.cloud/v1alpha1.Gardenlet resource n/self-hosted-shoot-s."),
		"secrets:kube-system/bootstrap-token-other":     secret("Used for connecting the self-hosted Shoot n/t to the garden."),
		"secrets:kube-system/bootstrap-token-strange":   secret("something else"),
	}, exists: map[string]bool{"secrets:kube-system/bootstrap-token-strange": true}}
	a := shootAuthorizer(l)
	_, reason, _ := a.Authorize(t.Context(), ask(t, "shoot-gardenlet get secrets kube-system/bootstrap-token-x"))
	_, rest, _ := strings.Cut(reason, "expected name bootstrap-token-")
	id, _, _ := strings.Cut(rest, " ")
	must.Equal(t, len(id), 6, "SH-16b: got the reason %q", reason)
	asked := map[string]bool{}
	for _, line := range strings.Split(strings.ReplaceAll(shootCases, token, "bootstrap-token-"+id), "\n") {
		if line == "" {
			continue
		}
		name, rest, _ := strings.Cut(line, ": ")
		question, want, _ := strings.Cut(rest, " => ")
		t.Run(name+"/"+question, func(t *testing.T) {
			a := shootAuthorizer(l)
			got := decided(a, ask(t, question))
			expect.True(t, matches(got, want), "got %s, want %s", got, want)
			rule := a.Explain(t.Context(), ask(t, question)).Rule
			asked[rule] = true
			// The special cases of a rule are called like it, with a letter more. SH-0 is what belongs to the Shoot by its name.
			if strings.HasPrefix(name, "SH-") && name != "SH-22" && rule != "SH-0" && strings.TrimRight(rule, "abceg") != strings.TrimRight(name, "abceg") {
				t.Errorf("decided by %s", rule)
			}
		})
	}
	for _, r := range shoots.rules {
		for ; r != nil; r = r.extension {
			expect.True(t, asked[r.id], "no case asks for %s, %s", r.id, r.resource)
		}
	}
}

func TestExtensionsInGarden_AreDelegated(t *testing.T) {
	a := shootAuthorizer(&live{})
	lead(a.seeds, relation.CloudProfile, "", "of-the-seed", "s")
	a.seeds.Graph.Set(relation.SeedVertex("s"), nil)
	const question = "garden-extension get cloudprofiles of-the-seed"
	managed := func(name, shoot string) graph.Vertex {
		m := graph.Vertex{Kind: relation.ManagedSeed, Namespace: "garden", Name: name}
		a.Graph.Set(m, []graph.Edge{
			{From: m, To: graph.Vertex{Kind: relation.Shoot, Namespace: "garden", Name: shoot}}, {From: relation.SeedVertex(name), To: m, Class: graph.Direct},
		})
		return m
	}
	// A Seed of the Shoot's name may be another cluster: its Secrets are not the Shoot's.
	for _, question := range []string{question, "garden-extension list secrets seed-s/", "garden-extension create leases seed-s/x"} {
		got := decided(a, ask(t, question))
		expect.True(t, got != "allowed", "SH-23: a Seed that only has the name of the Shoot: %s: got %s", question, got)
	}
	m := managed("s", "another")
	got := decided(a, ask(t, question))
	expect.True(t, got != "allowed", "SH-23: the Seed is another Shoot: got %s", got)
	managed("s", "s")
	expect.Equal(t, decided(a, ask(t, question)), "allowed", "SH-23")
	expect.Equal(t, decided(a, ask(t, "garden-extension get controllerregistrations x")), "allowed", "SH-23: what the seed is refused falls through")
	for _, question := range []string{"shoot-extension get cloudprofiles of-the-seed", "shoot-gardenlet get cloudprofiles of-the-seed"} {
		expect.Equal(t, decided(a, ask(t, question)), "no opinion", "SH-23: %s", question)
	}
	a.Graph.Remove(m)
	if got := decided(a, ask(t, "garden-extension list secrets seed-s/")); got == "allowed" {
		t.Errorf("SH-23: without the ManagedSeed it is not asked: got %s", got)
	}
	managed("s", "s")
	a.seeds.Selectors = selectors{err: errFake}
	a.seeds.ReadAll = false
	if got := decided(a, ask(t, "garden-extension list shoots")); !strings.HasPrefix(got, "error: failed delegating request: ") {
		t.Errorf("8.2: got %s", got)
	}
}

// Clients of a Shoot count while the Shoot is self-hosted, and gardenadm before the Shoot exists, too; an extension counts while a
// ControllerInstallation of the Shoot has its name. For all others nothing is looked up.
func TestClientsOfShoot_CountWhileItIsSelfHosted(t *testing.T) {
	selfHosted := builders.Shoot("garden-n", "s").SelfHosted()
	ordinary := builders.Shoot("garden-n", "s").OnSeed("seed").SecretBinding("b").With("spec.provider.workers", []any{map[string]any{}})
	installed := builders.ControllerInstallation("e", "r").With("spec.shootRef", builders.At("garden-n/s"))
	elsewhere := builders.ControllerInstallation("e", "r").With("spec.shootRef", builders.At("garden-n/t"))
	clients := map[string]*user.DefaultInfo{
		"gardenlet": {Name: "gardener.cloud:system:shoot:garden-n:s", Groups: shootGardenlet.Groups}, "extension": shootExtension,
		"gardenadm": {Name: "gardener.cloud:gardenadm:shoot:garden-n:s", Groups: shootGardenadm.Groups},
	}
	for name, c := range map[string]struct {
		shoot, installation *builders.Object
		counting            string
	}{
		"T4-1, SHI-3/no Shoot":                             {nil, nil, "gardenadm"},
		"T4-1, SHI-3/a ControllerInstallation alone":       {nil, installed, "gardenadm"},
		"T4-1, SHI-3/an ordinary Shoot":                    {ordinary, installed, ""},
		"T4-1, SHI-3/self-hosted":                          {selfHosted, nil, "gardenadm gardenlet"},
		"T4-1, SHI-3/with a ControllerInstallation":        {selfHosted, installed, "extension gardenadm gardenlet"},
		"T4-1, SHI-3/the ControllerInstallation of others": {selfHosted, elsewhere, "gardenadm gardenlet"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(time.Unix(0, 0))
			w.has(t, relation.SecretBinding, builders.SecretBinding("garden-n", "b", "garden-trial/trial"))
			if c.shoot != nil {
				w.has(t, relation.Shoot, c.shoot)
			}
			if c.installation != nil {
				w.has(t, relation.ControllerInstallation, c.installation)
			}
			for who, user := range clients {
				counts := slices.Contains(strings.Fields(c.counting), who)
				for _, question := range []string{
					"shoot-gardenlet get internalsecrets garden-n/s.ca-client", "shoot-gardenlet get secrets garden-trial/trial", "shoot-gardenlet get secrets garden-n/own", "shoot-gardenlet delete secrets garden-n/gone",
					"shoot-gardenlet get secrets kube-system/" + wellknown.BootstrapTokenSecret("garden-n", "s"), "shoot-gardenlet get configmaps kube-system/cluster-identity", "shoot-gardenlet get bastions garden-n/new",
					"shoot-gardenlet create secrets garden-n/", "shoot-gardenlet list seeds", "shoot-gardenlet get shoots garden-n/s", "shoot-gardenlet patch shoots garden-n/s", "shoot-gardenlet delete backupbuckets new",
				} {
					q := ask(t, question)
					q.User, w.live.asked = user, 0
					if got := decided(w.shoots, q); !counts && (got != "no opinion" || w.live.asked > 0) {
						t.Errorf("%s of %s: got %s after %d look-ups", question, who, got, w.live.asked)
					}
				}
				q := ask(t, map[bool]string{true: "shoot-gardenlet create configmaps garden-n/", false: "shoot-gardenlet create events garden-n/"}[who == "gardenadm"])
				q.User = user
				got := decided(w.shoots, q)
				expect.Equal(t, got == "allowed", counts, "%s: got %s, counts", who, got)
				expect.Equal(t, len(w.shoots.Explain(t.Context(), q).Notes) == 0, counts && c.shoot != nil,
					"SHI-3: %s: the explanation notes", who)
			}
		})
	}
	w := newWorld(time.Unix(0, 0))
	w.has(t, relation.Shoot, ordinary)
	w.has(t, relation.Shoot, selfHosted)
	expect.Equal(t, decided(w.shoots, ask(t, "shoot-extension create events garden-n/")), "no opinion", "SHI-3/it has become self-hosted, without the extension")
	w.has(t, relation.ControllerInstallation, installed)
	expect.Equal(t, decided(w.shoots, ask(t, "shoot-extension create events garden-n/")), "allowed", "SHI-3/it has become self-hosted")
	w.has(t, relation.Shoot, ordinary)
	expect.Equal(t, decided(w.shoots, ask(t, "shoot-extension create events garden-n/")), "no opinion", "SHI-3/it is no longer self-hosted")
}
