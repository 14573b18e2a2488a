package rules

import (
	"context"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	gardencorev1beta1 "github.com/espalier-project/espalier/internal/externalapi/core/v1beta1"
	"github.com/espalier-project/espalier/internal/externalapi/partialmeta"
	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
	"github.com/espalier-project/espalier/test/expect"
)

// ruled has the paths that the cases below speak of.
func ruled() *Authorizer {
	a := newAuthorizer()
	for _, v := range []graph.Vertex{
		{Kind: relation.CloudProfile, Name: "own"}, {Kind: relation.NamespacedCloudProfile, Namespace: "n", Name: "own"}, {Kind: relation.ExposureClass, Name: "own"},
		{Kind: relation.SecretBinding, Namespace: "n", Name: "own"}, {Kind: relation.CredentialsBinding, Namespace: "n", Name: "own"}, {Kind: relation.Project, Name: "own"},
		{Kind: relation.Namespace, Name: "own"}, {Kind: relation.Namespace, Name: "seed-seed"}, {Kind: relation.ControllerDeployment, Name: "own"},
		{Kind: relation.ConfigMap, Namespace: "n", Name: "own"}, {Kind: relation.WorkloadIdentity, Namespace: "n", Name: "own"}, {Kind: relation.ShootState, Namespace: "n", Name: "own"},
		{Kind: relation.InternalSecret, Namespace: "n", Name: "own"}, {Kind: relation.BackupBucket, Name: "own"}, {Kind: relation.BackupEntry, Namespace: "n", Name: "own"},
		{Kind: relation.Bastion, Namespace: "n", Name: "own"}, {Kind: relation.ControllerInstallation, Name: "own"}, {Kind: relation.Shoot, Namespace: "n", Name: "own"},
		{Kind: relation.Secret, Namespace: "n", Name: "own"}, {Kind: relation.Secret, Namespace: "seed-seed", Name: "own"}, {Kind: relation.ClusterRoleBinding, Name: "own"},
		{Kind: relation.ServiceAccount, Namespace: "n", Name: "own"}, {Kind: relation.ServiceAccount, Namespace: "seed-seed", Name: "own"}, {Kind: relation.Lease, Namespace: "n", Name: "own"},
		{Kind: relation.CertificateSigningRequest, Name: "own"}, {Kind: relation.Gardenlet, Namespace: "garden", Name: "seed"}, {Kind: relation.ManagedSeed, Namespace: "garden", Name: "child"},
	} {
		lead(a, v.Kind, v.Namespace, v.Name, "seed")
	}
	child := graph.Vertex{Kind: relation.ManagedSeed, Namespace: "garden", Name: "child"}
	account := graph.Vertex{Kind: relation.ServiceAccount, Namespace: "garden", Name: "gardenlet-bootstrap-child"}
	a.Graph.Set(account, []graph.Edge{
		{From: graph.Vertex{Kind: relation.Secret, Namespace: "garden", Name: "of-account"}, To: account}, {From: account, To: child},
		{From: graph.Vertex{Kind: relation.Secret, Namespace: "kube-system", Name: "bootstrap-token-child"}, To: child, Class: graph.Manages},
	})
	a.Graph.Set(relation.SeedVertex("seed"), nil)
	a.Graph.Set(relation.SeedVertex("child"), []graph.Edge{{From: relation.SeedVertex("child"), To: graph.Vertex{Kind: relation.ManagedSeed, Namespace: "garden", Name: "child"}, Class: graph.Direct}})
	lead(a, relation.Shoot, "n", "foreign", "other")
	lead(a, relation.Secret, "seed-other", "x", "other")
	lead(a, relation.Bastion, "n", "foreign", "other")
	return a
}

// TestSeedRules_DecideTheirCases decides the cases, line by line, in the notation below.
func TestSeedRules_DecideTheirCases(t *testing.T) {
	for _, line := range strings.Split(cases, "\n") {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		name, rest, _ := strings.Cut(line, ": ")
		question, want, _ := strings.Cut(rest, " => ")
		name, only, _ := strings.Cut(name, " ")
		decides(t, name, only, question, want)
	}
}

// decides asks a question of the case in every readScope, or in the only one that is given.
func decides(t *testing.T, name, only, question, want string) {
	t.Helper()
	for scope, readAll := range map[string]bool{"All": true, "Related": false} {
		if only != "" && only != scope {
			continue
		}
		t.Run(name+"/"+scope+"/"+question, func(t *testing.T) {
			a := ruled()
			a.ReadAll = readAll
			got := decided(a, ask(t, question))
			expect.True(t, matches(got, want), "got %s, want %s", got, want)
		})
	}
}

// Kinds that clients only read are read by path, and nothing else is done with them.
func TestKindsOnlyRead_AreReadByPath(t *testing.T) {
	const readers = "no opinion: only the following verbs are allowed for this resource type: [get list watch]"
	for name, at := range map[string]struct{ resource, namespace string }{
		"SR-5": {resource: "cloudprofiles"}, "SR-6": {resource: "namespacedcloudprofiles", namespace: "n/"}, "SR-9/BH-SA-15": {resource: "controllerdeployments"}, "SR-12/BH-SA-17": {resource: "credentialsbindings", namespace: "n/"},
		"SR-14/BH-SA-19": {resource: "exposureclasses"}, "SR-19": {resource: "namespaces"}, "SR-20": {resource: "projects"}, "SR-21": {resource: "secretbindings", namespace: "n/"},
	} {
		resource, namespace := at.resource, at.namespace
		for _, client := range []string{"gardenlet", "extension"} {
			for _, verb := range []string{"get", "list", "watch"} {
				decides(t, name, "", client+" "+verb+" "+resource+" "+namespace+"own", "allowed")
				decides(t, name, "", client+" "+verb+" "+resource+" "+namespace+"foreign", "no opinion: no relationship found")
			}
			for _, verb := range []string{"create", "update", "patch", "delete", "deletecollection"} {
				decides(t, name, "", client+" "+verb+" "+resource+" "+namespace+"own", readers)
			}
			decides(t, name, "", client+" get "+resource+"/status "+namespace+"own", "no opinion: only the following subresources are allowed for this resource type: []")
			decides(t, name, "", client+" get "+resource, "no opinion: No Object name found")
			decides(t, "SEL-2", "", client+" list "+resource, "no opinion: must specify field or label selector for name seed")
		}
	}
}

// cases are "<rule>: <question> => <decision>", one a line:
//
//	rule      the case of the contract; with All or Related after it, it is about that readScope alone
//	question  "<client> <verb> <resource>[/subresource][.group] [namespace/][name] [field:<selector>] [label:<selector>]"
//	client    the gardenlet of seed "seed", an extension on it, or somebody other
//	own       leads to that seed, foreign to another one
//	decision  allowed, no opinion (without a reason), or no opinion: <a part of its reason>
const cases = `
SA-1: other get shoots n/own => no opinion
SA-3: gardenlet get quotas x => no opinion
SA-3: gardenlet get pods. n/x => no opinion
SA-3: gardenlet get extensions.extensions.gardener.cloud n/x => no opinion
SP-2: gardenlet get configmaps gardener-system-public/gardener-info => allowed
SP-2: gardenlet list configmaps gardener-system-public/gardener-info => no opinion: no relationship found
SP-10 All: gardenlet get configmaps kube-system/cluster-identity => allowed
SP-10 All: extension watch configmaps kube-system/cluster-identity => allowed
SP-10 Related: gardenlet get configmaps kube-system/cluster-identity => no opinion: no relationship found
SP-10: gardenlet update configmaps kube-system/cluster-identity => no opinion: no relationship found
SR-8: gardenlet create configmaps n/ => allowed
SR-8: gardenlet get configmaps n/own => allowed
SR-8: gardenlet list configmaps n/own => allowed
SR-8: gardenlet watch configmaps n/own => allowed
SR-8: gardenlet update configmaps n/own => allowed
SR-8: gardenlet patch configmaps n/own => allowed
SR-8: gardenlet delete configmaps n/own => allowed
SR-8: gardenlet get configmaps n/foreign => no opinion: no relationship found
SR-8: gardenlet deletecollection configmaps n/ => no opinion: [create delete get list patch update watch]
SR-23: gardenlet get workloadidentities n/own => allowed
SR-23: gardenlet create workloadidentities n/own => allowed
SR-23: gardenlet patch workloadidentities n/own => allowed
SR-23: gardenlet create workloadidentities/token n/own => allowed
SR-23: extension create workloadidentities/token n/foreign => no opinion: no relationship found
SR-23: gardenlet update workloadidentities n/own => no opinion: [create get list patch watch]
SR-23: gardenlet delete workloadidentities n/own => no opinion: [create get list patch watch]
SR-23: gardenlet deletecollection workloadidentities n/ => no opinion: [create get list patch watch]
SR-23: gardenlet create workloadidentities/foo n/own => no opinion: [token]
SR-23: gardenlet create workloadidentities n/ => no opinion: No Object name found
SR-27: gardenlet create shootstates n/ => allowed
SR-27: gardenlet get shootstates n/own => allowed
SR-27: gardenlet list shootstates n/own => allowed
SR-27: gardenlet patch shootstates n/own => allowed
SR-27: gardenlet update shootstates n/own => allowed
SR-27: gardenlet delete shootstates n/own => allowed
SR-27: gardenlet patch shootstates n/foreign => no opinion: no relationship found
SR-27: gardenlet deletecollection shootstates n/ => no opinion: [create delete get list patch update watch]
SR-15: extension create internalsecrets n/ => allowed
SR-15: extension get internalsecrets n/own => allowed
SR-15: extension watch internalsecrets n/own => allowed
SR-15: extension delete internalsecrets n/own => allowed
SR-15: extension update internalsecrets n/foreign => no opinion: no relationship found
SR-15: extension deletecollection internalsecrets n/ => no opinion: [create delete get list patch update watch]
SR-19: gardenlet get namespaces own/own => allowed
SP-4 All: gardenlet get namespaces garden/garden => allowed
SP-4 All: extension watch namespaces garden/garden => allowed
SP-4 Related: gardenlet get namespaces garden/garden => no opinion: no relationship found
SP-4 Related: extension list namespaces garden/garden => no opinion: no relationship found
GE-34: gardenlet get namespaces seed-seed/seed-seed => allowed
GE-34: gardenlet get namespaces seed-other/seed-other => no opinion: no relationship found: Namespace:seed-other
SR-1: gardenlet get backupbuckets foreign => allowed
SR-1: gardenlet list backupbuckets => allowed
SR-1: extension watch backupbuckets => allowed
SR-1: gardenlet create backupbuckets => allowed
SR-1: gardenlet update backupbuckets own => allowed
SR-1: gardenlet patch backupbuckets/status own => allowed
SR-1: gardenlet update backupbuckets/finalizers own => allowed
SR-1: gardenlet delete backupbuckets own => allowed
SR-1: gardenlet update backupbuckets foreign => no opinion: no relationship found
SR-1: gardenlet update backupbuckets/foo own => no opinion: [finalizers status]
SR-1: gardenlet deletecollection backupbuckets => no opinion: [create delete get list patch update watch]
SR-2: gardenlet list backupentries n/ => allowed
SR-2: gardenlet create backupentries n/ => allowed
SR-2: gardenlet patch backupentries/status n/own => allowed
SR-2: gardenlet patch backupentries n/foreign => no opinion: no relationship found
SR-2: gardenlet update backupentries/finalizers n/own => no opinion: [status]
SR-2: gardenlet deletecollection backupentries n/ => no opinion: [create delete get list patch update watch]
SR-3: gardenlet create bastions n/ => allowed
SR-3: gardenlet delete bastions n/own => no opinion: [create get list patch update watch]
SR-3: gardenlet deletecollection bastions n/ => no opinion: [create get list patch update watch]
SR-3: gardenlet get bastions n/own => allowed
SR-3 Related: gardenlet get bastions n/foreign => no opinion: no relationship found
SR-3 All: gardenlet get bastions n/foreign => allowed
SR-3: gardenlet patch bastions/status n/own => allowed
SR-3: gardenlet update bastions n/foreign => no opinion: no relationship found
SEL-3: gardenlet list bastions field:spec.seedName=seed => allowed
SR-3 Related: gardenlet list bastions => no opinion: must specify field or label selector for name seed
SR-3 All: gardenlet list bastions => allowed
SEL-3 Related: gardenlet watch bastions field:spec.seedName=other => no opinion: must specify field or label selector for name seed
SEL-3 Related: gardenlet watch bastions field:spec.seedName!=seed => no opinion: must specify field or label selector for name seed
SEL-10: gardenlet list controllerinstallations field:spec.seedRef.name=seed => allowed
SR-10 Related: gardenlet list controllerinstallations => no opinion: must specify
SR-10 All: gardenlet list controllerinstallations => allowed
SR-10: gardenlet get controllerinstallations own => allowed
SR-10/BH-SA-16: gardenlet patch controllerinstallations/status own => allowed
SR-10: gardenlet create controllerinstallations => no opinion: [get list patch update watch]
SR-10: gardenlet delete controllerinstallations own => no opinion: [get list patch update watch]
SEL-4: gardenlet list shoots label:name.seed.gardener.cloud/seed=true => allowed
SEL-4: gardenlet watch seeds label:name.seed.gardener.cloud/seed=true => allowed
SEL-4: extension list managedseeds label:name.seed.gardener.cloud/seed=true => allowed
SEL-4: gardenlet list shoots label:name.seed.gardener.cloud/seed => allowed
SEL-4: gardenlet list shoots label:name.seed.gardener.cloud/seed_in_(true) => allowed
B-7 Related: gardenlet list shoots label:name.seed.gardener.cloud/seed_in_(true,false) => no opinion: must specify
SEL-4 Related: gardenlet list shoots label:name.seed.gardener.cloud/other=true => no opinion: must specify
SEL-4 Related: gardenlet list seeds label:name.seed.gardener.cloud/other=true => no opinion: must specify
SR-18 Related: gardenlet list managedseeds => no opinion: must specify
SR-18 All: gardenlet list managedseeds => allowed
SR-18/BH-SA-22: gardenlet patch managedseeds garden/child => allowed
SR-18/BH-SA-22: gardenlet update managedseeds garden/foreign => no opinion: no relationship found
SR-18/BH-SA-22: gardenlet create managedseeds garden/x => no opinion: [get list patch update watch]
B-7 Related: gardenlet list shoots label:!foo => no opinion: must specify
B-7 Related: gardenlet list shoots label:foo!=bar => no opinion: must specify
B-7 Related: gardenlet list shoots label:foo_notin_(x) => no opinion: must specify
B-7 Related: gardenlet list shoots label:name.seed.gardener.cloud/seed!=x => no opinion: must specify
SR-26 All: gardenlet list shoots => allowed
SR-17 Related: gardenlet get gardenlets n/seed => no opinion: [garden]
SR-17 Related: gardenlet list gardenlets => no opinion: [garden]
SR-17 All: gardenlet list gardenlets => allowed
SR-17: gardenlet create gardenlets n/ => no opinion: [garden]
SR-17: gardenlet patch gardenlets n/seed => no opinion: [garden]
SR-17: gardenlet create gardenlets garden/ => allowed
SR-17: gardenlet list gardenlets garden/ field:metadata.name=seed => allowed
SR-17: gardenlet watch gardenlets garden/seed field:metadata.name=seed => allowed
SR-17 Related: gardenlet list gardenlets garden/other field:metadata.name=other => no opinion: must specify
SR-17: gardenlet patch gardenlets/status garden/seed => allowed
SR-17: gardenlet update gardenlets garden/other => no opinion: no relationship found
SR-24: gardenlet create seeds => allowed
SR-24: gardenlet get seeds seed => allowed
SR-24: gardenlet update seeds seed => allowed
SR-24: gardenlet patch seeds/status seed => allowed
SR-24: gardenlet update seeds other => no opinion: no relationship found
SR-24 Related: gardenlet get seeds other => no opinion: no relationship found
SR-24 All: gardenlet get seeds other => allowed
SR-24: gardenlet get seeds child => allowed
SR-24: gardenlet update seeds child => allowed
SR-24: gardenlet patch seeds child => allowed
SR-24: gardenlet delete seeds child => allowed
SR-24: gardenlet deletecollection seeds => no opinion: [create delete get list patch update watch]
SR-24: gardenlet update seeds/foo seed => no opinion: [status]
SP-9: gardenlet get shoots garden/seed => allowed
SP-9: gardenlet get shoots/foo garden/seed => allowed
SR-26: gardenlet create shoots n/ => no opinion: [get list patch update watch]
SR-26: gardenlet delete shoots n/own => no opinion: [get list patch update watch]
SR-26: gardenlet deletecollection shoots n/ => no opinion: [get list patch update watch]
SR-26: gardenlet patch shoots/status n/own => allowed
SR-26: gardenlet update shoots/finalizers n/own => allowed
SR-26: gardenlet create shoots/binding n/own => no opinion: [finalizers status]
SR-26: gardenlet patch shoots n/foreign => no opinion: no relationship found
SR-13: gardenlet create events n/ => allowed
SR-13: extension patch events n/x => allowed
SR-13: gardenlet create events.events.k8s.io n/ => allowed
SR-13: gardenlet get events n/x => no opinion: [create patch]
SR-13: gardenlet list events.events.k8s.io => no opinion: [create patch]
SR-13: gardenlet delete events n/x => no opinion: [create patch]
SR-13: gardenlet get events/foo n/x => no opinion: [create patch]
SR-13: gardenlet patch events/foo n/x => no opinion: only the following subresources are allowed for this resource type: []
SR-11: gardenlet get controllerregistrations x => allowed
SR-11: gardenlet list controllerregistrations => allowed
SR-11: extension watch controllerregistrations => allowed
SR-11: gardenlet update controllerregistrations x => no opinion: [get list watch]
SR-11: gardenlet get controllerregistrations/status x => no opinion: []
SP-5: gardenlet get secrets seed-seed/x => allowed
SP-5: extension list secrets seed-seed/ => allowed
SP-5: extension watch secrets seed-seed/ => allowed
SR-22: gardenlet delete secrets seed-seed/own => allowed
SR-22: gardenlet list secrets n/ => no opinion: [create delete get patch update]
SR-22: gardenlet watch secrets n/own => no opinion: [create delete get patch update]
SR-22: gardenlet deletecollection secrets seed-seed/ => no opinion: [create delete get patch update]
SR-22: gardenlet create secrets n/ => allowed
SR-22: gardenlet get secrets n/own => allowed
SP-5: gardenlet get secrets seed-other/x => no opinion: no relationship found
SP-6: gardenlet delete secrets kube-system/bootstrap-token-c3b902 => allowed
SP-6: extension delete secrets kube-system/bootstrap-token-c3b902 => allowed
SP-6: gardenlet get secrets kube-system/bootstrap-token-c3b902 => no opinion: no relationship found
SP-11/T3-5: gardenlet get secrets kube-system/bootstrap-token-child => allowed
SP-11/T3-5: gardenlet patch secrets kube-system/bootstrap-token-child => allowed
SP-11/T3-5: gardenlet update secrets kube-system/bootstrap-token-child => allowed
SP-11/T3-5: gardenlet delete secrets kube-system/bootstrap-token-child => allowed
SP-11/T3-5: extension get secrets kube-system/bootstrap-token-child => no opinion: only the gardenlet of a seed needs a bootstrap token
SP-11/T3-5: extension list secrets kube-system/bootstrap-token-child => no opinion: only the gardenlet of a seed needs a bootstrap token
SP-11/T3-5: extension watch secrets kube-system/bootstrap-token-child => no opinion: only the gardenlet of a seed needs a bootstrap token
SP-11/T3-5: extension patch secrets kube-system/bootstrap-token-child => no opinion: only the gardenlet of a seed needs a bootstrap token
SP-11/T3-5: extension update secrets kube-system/bootstrap-token-child => no opinion: only the gardenlet of a seed needs a bootstrap token
SP-11/T3-5: extension delete secrets kube-system/bootstrap-token-child => no opinion: only the gardenlet of a seed needs a bootstrap token
SP-11/T3-5: extension create secrets kube-system/bootstrap-token-child => no opinion: only the gardenlet of a seed needs a bootstrap token
SP-11/T3-5: extension get secrets kube-system/bootstrap-token-c3b902 => no opinion: only the gardenlet of a seed needs a bootstrap token
SP-11/T3-5: extension get secrets n/bootstrap-token-child => no opinion: no relationship found
SP-11/T3-5: extension create secrets kube-system/ => allowed
SP-11/T3-5: gardenlet get secrets garden/of-account => allowed
SP-11/T3-5: extension get secrets garden/of-account => no opinion: only the gardenlet of a seed needs a bootstrap token
SP-11/T3-5: extension update secrets garden/of-account => no opinion: only the gardenlet of a seed needs a bootstrap token
SP-11/T3-5: extension get secrets n/own => allowed
SP-1: gardenlet delete clusterrolebindings gardener.cloud:system:seed-bootstrapper:garden:seed => allowed
SP-1: gardenlet delete clusterrolebindings gardener.cloud:system:seed-bootstrapper:garden:gardenlet-bootstrap-seed => allowed
SP-1: gardenlet delete clusterrolebindings gardener.cloud:system:seed-bootstrapper:garden:other => no opinion: [create get patch update]
SP-1: gardenlet delete clusterrolebindings n/gardener.cloud:system:seed-bootstrapper:garden:seed => no opinion: [create get patch update]
SP-1: gardenlet delete clusterrolebindings gardener.cloud:system:seed-bootstrapper:foo:seed => no opinion: [create get patch update]
SP-1: gardenlet delete clusterrolebindings gardener.cloud:system:seed-bootstrapper:garden:seed:more => no opinion: [create get patch update]
SR-7g: gardenlet create clusterrolebindings => allowed
SR-7g: gardenlet get clusterrolebindings own => allowed
SR-7g: gardenlet patch clusterrolebindings own => allowed
SR-7g: gardenlet list clusterrolebindings => no opinion: [create get patch update]
SP-7: gardenlet delete serviceaccounts garden/gardenlet-bootstrap-seed => allowed
SP-7: gardenlet delete serviceaccounts garden/gardenlet-bootstrap-other => no opinion: [create get patch update]
SP-8: gardenlet create serviceaccounts/token seed-seed/x => allowed
SP-8: gardenlet deletecollection serviceaccounts seed-seed/ => allowed
SP-8: gardenlet list serviceaccounts seed-seed/ => allowed
SP-8: gardenlet list serviceaccounts seed-other/ => no opinion: [create get patch update]
SR-25g: gardenlet get serviceaccounts seed-other/x => no opinion: no relationship found
SR-25g: gardenlet create serviceaccounts/token n/own => no opinion: []
SR-25g: gardenlet patch serviceaccounts n/own => allowed
SR-16g: gardenlet create leases n/ => allowed
SR-16g: gardenlet get leases n/own => allowed
SR-16g: gardenlet list leases n/own => allowed
SR-16g: gardenlet update leases n/own => allowed
SR-16g: gardenlet patch leases n/foreign => no opinion: no relationship found
SR-16g: gardenlet delete leases n/own => no opinion: [create get list patch update watch]
SR-16g: gardenlet deletecollection leases n/ => no opinion: [create get list patch update watch]
SP-3/SR-16e: extension create leases seed-seed/ => allowed
SP-3: extension get leases seed-seed/x => allowed
SP-3: extension list leases seed-seed/ => allowed
SP-3: extension watch leases seed-seed/ => allowed
SP-3: extension update leases seed-seed/x => allowed
SP-3: extension patch leases seed-seed/x => allowed
SP-3: extension delete leases seed-seed/x => allowed
SP-3: extension deletecollection leases seed-seed/ => allowed
SP-3: extension foo leases seed-seed/x => no opinion: [create get list watch update patch delete deletecollection]
SP-3: extension get leases n/own => no opinion: lease object is not in seed namespace
C1: gardenlet delete leases gardener-system-seed-lease/seed => allowed
C1: gardenlet delete leases gardener-system-seed-lease/other => no opinion: [create get list patch update watch]
SP-3b/D-5 All: gardenlet update leases n/gardenlet-leader-election => allowed
SP-3b/D-5: gardenlet patch leases n/gardenlet-leader-election => no opinion: no relationship found
SP-3b/D-5 Related: gardenlet update leases n/gardenlet-leader-election => no opinion: no relationship found
SR-4g: gardenlet create certificatesigningrequests => allowed
SR-4g: gardenlet create certificatesigningrequests/seedclient x => allowed
SR-4g/BH-SA-10: gardenlet get certificatesigningrequests own => allowed
SR-4g: gardenlet watch certificatesigningrequests own => allowed
SR-4g: gardenlet update certificatesigningrequests own => no opinion: [create get list watch]
SR-4g: gardenlet delete certificatesigningrequests own => no opinion: [create get list watch]
SR-4g: gardenlet create certificatesigningrequests/foo => no opinion: [seedclient]
SR-4e: extension get certificatesigningrequests own => allowed
SR-4e: extension create certificatesigningrequests => no opinion: [get list watch]
SR-7e: extension get clusterrolebindings own => allowed
SR-7e: extension create clusterrolebindings => no opinion: [get]
SR-7e: extension delete clusterrolebindings gardener.cloud:system:seed-bootstrapper:garden:seed => no opinion: [get]
SR-25e: extension get serviceaccounts n/own => allowed
SR-25e: extension create serviceaccounts seed-seed/ => no opinion: [get]
SR-25e: extension delete serviceaccounts garden/gardenlet-bootstrap-seed => no opinion: [get]
2.4: gardenlet get secrets n/own.kubeconfig => allowed
2.4: gardenlet update secrets n/own.kubeconfig => allowed
2.4: gardenlet get secrets n/foreign.kubeconfig => no opinion: no relationship found
`

func TestRequestsWithoutResource_GetNoOpinion(t *testing.T) {
	a := ruled()
	expect.Equal(t, decided(a, authorizer.AttributesRecord{User: gardenlet, Verb: "get", Path: "/healthz"}), "no opinion", "SA-2: no resource")
	expect.Equal(t, decided(a, authorizer.AttributesRecord{User: gardenlet, Verb: "get", ResourceRequest: true}), "no opinion", "SA-3: an empty resource")
	expect.Equal(t, decided(a, authorizer.AttributesRecord{}), "no opinion", "SA-1: no user")
}

// TestLists_NeedASelector is section 5: several requirements, API servers that send no selectors, and a question that cannot be answered.
func TestLists_NeedASelector(t *testing.T) {
	a := ruled()
	several := ask(t, "gardenlet list shoots label:other=x,name.seed.gardener.cloud/seed=true,!foo")
	several.LabelSelectorParsingErr = errFake
	expect.Equal(t, decided(a, several), "allowed", "SEL-5, SEL-6: one requirement of several is enough, whatever else could not be parsed")
	a.Selectors = selectors{}
	for question, want := range map[string]string{
		"gardenlet list cloudprofiles":       "no opinion: No Object name found", // Nothing selects CloudProfiles, so that a name is needed (SEL-8).
		"gardenlet list shoots":              "allowed",                          // All are shown, as before there were selectors (SEL-7).
		"gardenlet list cloudprofiles own":   "allowed",                          // A name is looked for in the graph (SEL-9).
		"gardenlet list gardenlets garden/x": "allowed",                          // So it is with a name where names are selected (SEL-7).
	} {
		got := decided(a, ask(t, question))
		expect.True(t, matches(got, want), "SEL-7/SEL-8, not possible: %s: got %s, want %s", question, got, want)
	}
	a.Selectors = selectors{err: errFake}
	want := "error: failed checking if authorization with selectors is possible: failed checking whether 'AuthorizeWithSelectors' feature is enabled: fake-err"
	expect.Equal(t, decided(a, ask(t, "gardenlet list shoots")), want, "SEL-1")
	expect.Equal(t, decided(a, ask(t, "gardenlet list cloudprofiles own")), "allowed", "SEL-9: a named list does not ask")
}

func TestLookups_DecideAboutUnseenObjects(t *testing.T) {
	shoot := func(seed string) runtime.Object {
		return &gardencorev1beta1.Shoot{Object: partialmeta.Object{Namespace: "n", Name: "new"}, Spec: gardencorev1beta1.ShootSpec{SeedName: &seed}}
	}
	for name, c := range map[string]struct {
		question, want string
		live           live
	}{
		"B-5/delete of what is absent":                {question: "gardenlet delete configmaps n/gone", want: "allowed", live: live{}},
		"B-5/delete of what is there":                 {question: "gardenlet delete configmaps n/there", want: "no opinion: no relationship found", live: live{exists: map[string]bool{"configmaps:n/there": true}}},
		"R17/delete of what cannot be read":           {question: "gardenlet delete configmaps n/there", want: "no opinion: could not be looked up", live: live{err: errFake}},
		"SP-6/another seed's token that is there":     {question: "gardenlet delete secrets kube-system/bootstrap-token-88264c", want: "no opinion: no relationship found", live: live{exists: map[string]bool{"secrets:kube-system/bootstrap-token-88264c": true}}},
		"B-5/delete of a watched kind that is absent": {question: "gardenlet delete backupentries n/gone", want: "allowed", live: live{}},
		"re-read/own object that is new":              {question: "gardenlet patch shoots n/new", want: "allowed", live: live{objects: map[string]runtime.Object{"shoots:n/new": shoot("seed")}}},
		"re-read/foreign object that is new":          {question: "gardenlet patch shoots n/new", want: "no opinion: no relationship found", live: live{objects: map[string]runtime.Object{"shoots:n/new": shoot("other")}}},
		"re-read/absent":                              {question: "gardenlet patch shoots n/new", want: "no opinion: no relationship found", live: live{}},
		"re-read/unreadable":                          {question: "gardenlet patch shoots n/new", want: "no opinion: could not be looked up", live: live{err: errFake}},
		"T3-2/delete for a Seed that is not known":    {question: "gardenlet delete configmaps n/gone", want: "no opinion: the client's seed or shoot is not known", live: live{}},
		"T3-2/get for a Seed that is not known":       {question: "extension get shoots/status n/new", want: "no opinion: the client's seed or shoot is not known", live: live{}},
		"T3-2/own Seed that is new":                   {question: "gardenlet patch seeds/status seed", want: "allowed", live: live{objects: map[string]runtime.Object{"seeds:/seed": &gardencorev1beta1.Seed{Object: partialmeta.Object{Name: "seed"}}}}},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAuthorizer()
			a.Live = &c.live
			want := 1
			if unknown, _ := strings.CutPrefix(name, "T3-2/"); unknown != name {
				a.Graph.Remove(relation.SeedVertex("seed"))
				want = len(c.live.objects) // Only the Seed itself.
			}
			got := decided(a, ask(t, c.question))
			expect.True(t, matches(got, c.want), "got %s, want %s", got, c.want)
			expect.Equal(t, c.live.asked, want, "looked up %d times", c.live.asked)
		})
	}
	t.Run("B-5/known vertices and what is only referred to are not looked up", func(t *testing.T) {
		a := ruled()
		l := &live{}
		a.Live = l
		for _, question := range []string{"gardenlet patch shoots n/foreign", "gardenlet get secrets n/x", "gardenlet get cloudprofiles x", "gardenlet delete shoots n/x", "gardenlet delete secrets seed-other/x"} {
			expect.True(t, decided(a, ask(t, question)) != "allowed", "%s is allowed", question)
		}
		expect.Equal(t, l.asked, 0, "looked up %d times", l.asked)
	})
}

func TestWriteScope_OwnedRefusesReferences(t *testing.T) {
	a := newAuthorizer()
	a.WriteOwned = true
	shoot := graph.Vertex{Kind: relation.Shoot, Namespace: "n", Name: "web"}
	secret := func(name string) graph.Vertex { return graph.Vertex{Kind: relation.Secret, Namespace: "n", Name: name} }
	a.Graph.Set(shoot, []graph.Edge{
		{From: shoot, To: relation.SeedVertex("seed")},
		{From: secret("web.ca-cluster"), To: shoot, Class: graph.Manages},
		{From: secret("dns"), To: shoot},
	})
	for question, want := range map[string]string{
		"gardenlet get secrets n/dns":               "allowed",
		"gardenlet update secrets n/dns":            "no opinion: only referred to",
		"gardenlet delete secrets n/dns":            "no opinion: only referred to",
		"gardenlet update secrets n/web.ca-cluster": "allowed",
		"gardenlet patch shoots n/web":              "allowed",
	} {
		got := decided(a, ask(t, question))
		expect.True(t, matches(got, want), "B-6: %s: got %s, want %s", question, got, want)
	}
	a.WriteOwned = false
	expect.Equal(t, decided(a, ask(t, "gardenlet update secrets n/dns")), "allowed", "B-6: as today")
}

func TestExplain_NamesRuleStepAndLinks(t *testing.T) {
	a := ruled()
	shoot := graph.Vertex{Kind: relation.Shoot, Namespace: "n", Name: "foreign"}
	a.Graph.Set(shoot, []graph.Edge{{From: shoot, To: relation.SeedVertex("other")}, {From: graph.Vertex{Kind: relation.CloudProfile, Name: "wide"}, To: shoot}})
	e := a.Explain(context.Background(), ask(t, "gardenlet get cloudprofiles wide"))
	if e.Decision != "NoOpinion" || e.Rule != "SR-5" || e.Step != "SA-14" || len(e.Instead) != 1 || e.Instead[0] != "CloudProfile:wide -> Shoot:n/foreign -> Seed:other" ||
		len(e.Missing) != 1 || e.Missing[0] != "Shoot:n/foreign -> Seed:seed (GE-46: spec.seedName of the Shoot)" {
		t.Errorf("a refusal: got %+v", e)
	}
	e = a.Explain(context.Background(), ask(t, "gardenlet get cloudprofiles own"))
	expect.True(t, e.Decision == "Allow" && strings.Join(e.Path, " ") == "CloudProfile:own Seed:seed" && e.Client == "gardenlet",
		"a path: got %+v", e)
	e = a.Explain(context.Background(), ask(t, "gardenlet get exposureclasses x"))
	if len(e.Missing) != 1 || e.Missing[0] != "ExposureClass:x -> Shoot:n/own (GE-48: spec.exposureClassName of the Shoot)" || e.Candidates[0].Links[0].Writer != "members of the project" {
		t.Errorf("an unknown vertex: got %+v", e)
	}
	if e = a.Explain(context.Background(), ask(t, "other get shoots n/x")); e.Step != "SA-1" || e.Client != "" {
		t.Errorf("no client: got %+v", e)
	}
	// Of a Secret that its seed may only read, the ManagedSeed of the seed's own name is what is missing, and not one whose Shoot is on the seed.
	a = newAuthorizer()
	a.WriteOwned = true
	a.Graph.Set(relation.SeedVertex("seed"), nil)
	dns := graph.Vertex{Kind: relation.Secret, Namespace: "n", Name: "dns"}
	own := graph.Vertex{Kind: relation.Shoot, Namespace: "n", Name: "own"}
	a.Graph.Set(own, []graph.Edge{{From: dns, To: own}, {From: own, To: relation.SeedVertex("seed")}})
	const first = "Secret:n/dns -> ManagedSeed:garden/seed (GE-26: spec.gardenlet.config of the ManagedSeed; seedConfig.spec.backup of the configuration)"
	const second = "ManagedSeed:garden/seed -> Seed:seed (GE-27: the Seed with the ManagedSeed's name)"
	if e = a.Explain(context.Background(), ask(t, "gardenlet update secrets n/dns")); e.Step != "B-6" || strings.Join(e.Missing, " and ") != first+" and "+second {
		t.Errorf("GE-27: got %+v", e)
	}
}
