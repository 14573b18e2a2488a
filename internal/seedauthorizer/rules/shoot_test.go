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
	"github.com/espalier-project/espalier/test/gen/builders"
)

// shootAuthorizer has a Shoot with what the cases below speak of; its clients are SG, SE (in garden-n) and SA.
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

// shootCases are in the notation of TestRules. Clients are SG, the gardenlet of Shoot n/s, SE, an extension of Shoot garden-n/s, and SA, gardenadm
// of Shoot n/s; G is the gardenlet of a seed. TOKEN stands for the ID of the Shoot's own bootstrap token.
const shootCases = `
CT-SH-3: SG get bastions other/own => N(only the following namespaces are allowed for this resource type: [n])
CT-SH-3: SG create gardenlets other/ => N([n])
CT-SH-3: SG get managedseeds other/own => N([n])
CT-SH-4: SG list backupbuckets field:spec.shootRef.name=s => N(must specify field or label selector for name n/s)
CT-SH-4: SG list backupbuckets field:spec.shootRef.namespace=n => N(must specify)
CT-SH-4: SG list backupbuckets field:spec.shootRef.name=s,spec.shootRef.namespace=n => A
CT-SH-4: SG list controllerinstallations field:spec.shootRef.name=s,spec.shootRef.namespace=x => N(must specify)
CT-SH-3: SG list bastions n/ field:spec.shootRef.name=s => A
CT-SH-3: SG list gardenlets n/ field:metadata.name=self-hosted-shoot-s => A
CT-SH-3: SG list gardenlets n/ field:metadata.name=self-hosted-shoot-t => N(must specify)
CT-SH-3: SG list managedseeds n/ field:spec.shoot.name=s => A
CT-SH-5: SG get secrets kube-system/bootstrap-token-TOKEN => A
CT-SH-5: SG get secrets kube-system/bootstrap-token-abcdef => N(bootstrap token secret name bootstrap-token-abcdef does not match expected name bootstrap-token-TOKEN for shoot n/s)
CT-SH-5: SG watch secrets kube-system/bootstrap-token-TOKEN => A
CT-SH-5: SE get secrets kube-system/bootstrap-token-abcdef => N(does not match expected name)
CT-SH-5: SE list secrets kube-system/bootstrap-token-known => N(does not match expected name)
CT-SH-5: SG list secrets kube-system/bootstrap-token-TOKEN => A
CT-SH-5: SE create secrets kube-system/bootstrap-token-known => N(only the gardenlet of a shoot needs a bootstrap token)
CT-SH-5: SE delete secrets kube-system/bootstrap-token-known => N(only the gardenlet of a shoot needs a bootstrap token)
CT-SH-5: SE deletecollection secrets kube-system/ => N([create delete get list patch update watch])
CT-SH-5: SE patch secrets kube-system/bootstrap-token-known => N(only the gardenlet of a shoot needs a bootstrap token)
CT-SH-5: SG patch secrets kube-system/bootstrap-token-known => A
CT-SH-5: SG delete secrets kube-system/bootstrap-token-mine => A
CT-SH-5: SG delete secrets kube-system/bootstrap-token-gardenlet => A
CT-SH-5: SG delete secrets kube-system/bootstrap-token-other => N(shoot meta in bootstrap token secret kube-system/bootstrap-token-other does not match with identity of requestor n/s)
CT-SH-5: SG delete secrets kube-system/bootstrap-token-strange => N(no relationship found)
CT-SH-6: SG list secrets garden/ label:gardener.cloud/role=shoot-service-account-issuer => A
CT-SH-6: SG list secrets garden/ => N(must specify)
CT-SH-6: SE list secrets garden/ label:gardener.cloud/role=shoot-service-account-issuer => N(must specify)
CT-SH-7: SA get cloudprofiles x => A
CT-SH-7: SA list cloudprofiles => N()
CT-SH-7: SA create configmaps n/ => A
CT-SH-7: SA create configmaps other/ => N()
CT-SH-7: SA create projects => A
CT-SH-7: SA create workloadidentities n/ => A
CT-SH-7: SA create shoots n/ => A
CT-SH-7: SA create shoots n/s => A
CT-SH-7: SA patch shoots n/s => A
CT-SH-7: SA mark-self-hosted shoots n/s => A
SH-22: SA create shoots n/t => N()
SH-22: SA create shoots other/ => N()
SH-22: SA patch shoots n/t => N()
SH-22: SA patch shoots n/ss => N()
SH-22: SA patch shoots n/ => N()
SH-22: SA patch shoots other/s => N()
SH-22: SA mark-self-hosted shoots n/t => N()
SH-22: SA mark-self-hosted shoots n/ => N()
SH-22: SA update shoots n/s => N()
SH-22: SA delete shoots n/s => N()
SH-22: SA deletecollection shoots n/ => N()
SH-22: SA create shoots/adminkubeconfig n/s => N()
SH-22: SA patch shoots/binding n/s => N()
SH-22: SA patch shoots/status n/ => N()
SH-22: SA patch configmaps n/x => N()
SH-22: SA create secrets/foo n/x => N()
CT-SH-7: SA get shoots n/s => N()
CT-SH-7: SA patch shoots/status n/s => A
CT-SH-7: SA patch shoots/status n/t => N()
SH-1: SG create backupbuckets => A
SH-1: SG get backupbuckets own => A
SH-1: SG update backupbuckets/finalizers own => A
SH-1: SG get backupbuckets foreign => N(no relationship found: BackupBucket:foreign is not known to lead to Shoot:n/s)
SH-5: SG get configmaps n/own => A
SH-5: SG get configmaps n/s.ca-cluster => A
SH-5: SG patch configmaps n/s.ca-kubelet => A
SH-5: SG get configmaps n/t.ca-cluster => N(no relationship found)
SH-5: SG get configmaps kube-system/cluster-identity => A
SH-16: SG get secrets n/own => A
SH-16: SG list secrets n/own => A
SH-16: SG get secrets n/s.ssh-keypair => A
SH-16: SG get secrets n/t.ssh-keypair => N(no relationship found)
SH-16: SG deletecollection secrets n/ => N([create delete get list patch update watch])
SH-13: SG get internalsecrets n/s.ca-client => A
SH-20: SG get shootstates n/s => A
SH-20: SG delete shootstates n/s => N([create get list patch watch])
SH-14g: SG get leases n/self-hosted-shoot-s => A
SH-14g: SG create leases n/ => A
SH-14g: SG get leases n/other => N(no relationship found)
SH-14e: SE create leases garden-n/ => A
SH-14e: SE list leases garden-n/ => A
SH-14e: SE watch leases garden-n/ => A
SH-14e: SE deletecollection leases garden-n/ => N(No Object name found)
SH-14e: SE get leases garden-n/ => N(No Object name found)
SH-14e: SE update leases garden-n/ => N(No Object name found)
SH-14e: SE patch leases garden-n/ => N(No Object name found)
SH-14e: SE delete leases garden-n/ => N(No Object name found)
SH-14e: SE deletecollection leases => N(lease object is not in shoot namespace)
SH-14e: SE create leases garden-n/t--e => N(lease object name does not have the shoot name as prefix)
SH-14e: SE delete leases garden-n/s--e => A
SH-14e: SE patch leases garden-n/ss--e => N(lease object name does not have the shoot name as prefix)
SH-14e: SE get leases garden-n/s--e => A
SH-14e: SE get leases garden-n/t--e => N(lease object name does not have the shoot name as prefix)
SH-14e: SE get leases other/s--e => N(lease object is not in shoot namespace)
SH-14e: SE foo leases garden-n/s--e => N([create get list watch update patch delete deletecollection])
SH-10: SG get controllerregistrations x => A
SH-17a: SG list seeds => A
SH-17: SG get seeds s => A
SH-17: SG get seeds t => N(no relationship found)
SH-19a: SG get shoots n/s => A
SH-19: SG list shoots n/s => A
SH-19: SG patch shoots n/s => A
SH-19: SG patch shoots/status n/s => A
SH-19: SG patch shoots n/t => N(no relationship found)
SH-19: SG get shoots n/t => N([patch update])
SH-18g: SG create serviceaccounts n/ => A
SH-18g: SG deletecollection serviceaccounts n/extension-shoot--s--e => A
SH-18g: SG create serviceaccounts/token n/extension-shoot--s--e => A
SH-18g: SG delete serviceaccounts n/extension-shoot--t--e => N([create get patch update])
SH-18a: SG deletecollection serviceaccounts n/ => N([create get patch update])
SH-18a: SG list serviceaccounts n/ => N([create get patch update])
SH-18a: SG patch serviceaccounts n/ => N(No Object name found)
SH-18a: SG delete serviceaccounts n/extension-shoot--ss--e => N([create get patch update])
SH-18a: SG create serviceaccounts/token n/extension-shoot--t--e => N(only the following subresources)
SH-18a: SG delete serviceaccounts other/extension-shoot--s--e => N([create get patch update])
SH-18e: SE get serviceaccounts garden-n/own => A
SH-18e: SE create serviceaccounts garden-n/ => N([get])
SH-4g: SG create certificatesigningrequests/shootclient x => A
SH-4e: SE create certificatesigningrequests => N([get list watch])
SH-11: SG create events n/ => A
SH-21: SG create workloadidentities/token n/x => N(no relationship found)
8.2: SG get quotas n/x => N()
SH-2: SG create backupentries n/ => A
SH-2: SG get backupentries n/other => N(no relationship found)
SH-2: SG list backupentries n/ => N(must specify)
SH-2: SG patch backupentries/finalizers n/other => N(only the following subresources are allowed for this resource type: [status])
SH-6: SG get controllerdeployments other => N(no relationship found)
SH-6: SG create controllerdeployments other => N(only the following verbs are allowed for this resource type: [get list watch])
SH-7: SG get namespaces n => A
SH-7: SG get namespaces other => N(no relationship found)
SH-7: SG patch namespaces n => N(only the following verbs)
SH-8: SG get projects other => N(no relationship found)
SH-8: SG delete projects other => N(only the following verbs)
8.2: G get shoots n/s => N()
`

// TestShootRules are the cases of 13.6; every rule of the table decides one at least.
func TestShootRules(t *testing.T) {
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
	_, reason, _ := a.Authorize(t.Context(), ask(t, "SG get secrets kube-system/bootstrap-token-x"))
	_, rest, _ := strings.Cut(reason, "expected name bootstrap-token-")
	id, _, _ := strings.Cut(rest, " ")
	if len(id) != 6 {
		t.Fatalf("CT-SH-5: got the reason %q", reason)
	}
	asked := map[string]bool{}
	for _, line := range strings.Split(strings.ReplaceAll(shootCases, token, "bootstrap-token-"+id), "\n") {
		if line == "" {
			continue
		}
		name, rest, _ := strings.Cut(line, ": ")
		question, want, _ := strings.Cut(rest, " => ")
		t.Run(name+"/"+question, func(t *testing.T) {
			a := shootAuthorizer(l)
			if got := decided(a, ask(t, question)); !matches(got, want) {
				t.Errorf("got %s, want %s", got, want)
			}
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
			if !asked[r.id] {
				t.Errorf("no case asks for %s, %s", r.id, r.resource)
			}
		}
	}
}

func TestDelegation(t *testing.T) {
	a := shootAuthorizer(&live{})
	lead(a.seeds, relation.CloudProfile, "", "of-the-seed", "s")
	a.seeds.Graph.Set(relation.SeedVertex("s"), nil)
	const question = "GE get cloudprofiles of-the-seed"
	managed := func(name, shoot string) graph.Vertex {
		m := graph.Vertex{Kind: relation.ManagedSeed, Namespace: "garden", Name: name}
		a.Graph.Set(m, []graph.Edge{
			{From: m, To: graph.Vertex{Kind: relation.Shoot, Namespace: "garden", Name: shoot}}, {From: relation.SeedVertex(name), To: m, Class: graph.Direct},
		})
		return m
	}
	// A Seed of the Shoot's name may be another cluster: its Secrets are not the Shoot's.
	for _, question := range []string{question, "GE list secrets seed-s/", "GE create leases seed-s/x"} {
		if got := decided(a, ask(t, question)); got == "A" {
			t.Errorf("SH-23: a Seed that only has the name of the Shoot: %s: got %s", question, got)
		}
	}
	m := managed("s", "another")
	if got := decided(a, ask(t, question)); got == "A" {
		t.Errorf("SH-23: the Seed is another Shoot: got %s", got)
	}
	managed("s", "s")
	if got := decided(a, ask(t, question)); got != "A" {
		t.Errorf("CT-SH-2: got %s", got)
	}
	if got := decided(a, ask(t, "GE get controllerregistrations x")); got != "A" {
		t.Errorf("CT-SH-2: what the seed is refused falls through: got %s", got)
	}
	for _, question := range []string{"SE get cloudprofiles of-the-seed", "SG get cloudprofiles of-the-seed"} {
		if got := decided(a, ask(t, question)); got != "N()" {
			t.Errorf("CT-SH-2: %s: got %s", question, got)
		}
	}
	a.Graph.Remove(m)
	if got := decided(a, ask(t, "GE list secrets seed-s/")); got == "A" {
		t.Errorf("CT-SH-2: without the ManagedSeed it is not asked: got %s", got)
	}
	managed("s", "s")
	a.seeds.Selectors = selectors{err: errFake}
	a.seeds.ReadAll = false
	if got := decided(a, ask(t, "GE list shoots")); !strings.HasPrefix(got, "error(failed delegating request: ") {
		t.Errorf("8.2: got %s", got)
	}
}

// TestCounting: clients of a Shoot count while the Shoot is self-hosted, and gardenadm before the Shoot exists, too; an extension counts while a
// ControllerInstallation of the Shoot has its name. For all others nothing is looked up.
func TestCounting(t *testing.T) {
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
					"SG get internalsecrets garden-n/s.ca-client", "SG get secrets garden-trial/trial", "SG get secrets garden-n/own", "SG delete secrets garden-n/gone",
					"SG get secrets kube-system/" + wellknown.BootstrapTokenSecret("garden-n", "s"), "SG get configmaps kube-system/cluster-identity", "SG get bastions garden-n/new",
					"SG create secrets garden-n/", "SG list seeds", "SG get shoots garden-n/s", "SG patch shoots garden-n/s", "SG delete backupbuckets new",
				} {
					q := ask(t, question)
					q.User, w.live.asked = user, 0
					if got := decided(w.shoots, q); !counts && (got != "N()" || w.live.asked > 0) {
						t.Errorf("%s of %s: got %s after %d look-ups", question, who, got, w.live.asked)
					}
				}
				q := ask(t, map[bool]string{true: "SG create configmaps garden-n/", false: "SG create events garden-n/"}[who == "gardenadm"])
				q.User = user
				if got := decided(w.shoots, q); (got == "A") != counts {
					t.Errorf("%s: got %s, counts %v", who, got, counts)
				}
				if notes := w.shoots.Explain(t.Context(), q).Notes; (len(notes) == 0) != (counts && c.shoot != nil) {
					t.Errorf("SHI-3: %s: the explanation notes %q", who, notes)
				}
			}
		})
	}
	w := newWorld(time.Unix(0, 0))
	w.has(t, relation.Shoot, ordinary)
	w.has(t, relation.Shoot, selfHosted)
	if got := decided(w.shoots, ask(t, "SE create events garden-n/")); got != "N()" {
		t.Errorf("SHI-3/it has become self-hosted, without the extension: got %s", got)
	}
	w.has(t, relation.ControllerInstallation, installed)
	if got := decided(w.shoots, ask(t, "SE create events garden-n/")); got != "A" {
		t.Errorf("SHI-3/it has become self-hosted: got %s", got)
	}
	w.has(t, relation.Shoot, ordinary)
	if got := decided(w.shoots, ask(t, "SE create events garden-n/")); got != "N()" {
		t.Errorf("SHI-3/it is no longer self-hosted: got %s", got)
	}
}
