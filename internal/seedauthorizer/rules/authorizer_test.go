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

// rulesOf names the rules behind the cases.
var rulesOf = map[string]string{
	"CT-SA-3": "SEL-2, SEL-8", "CT-SA-4": "SP-2, SP-10", "CT-SA-5": "SR-8", "CT-SA-6": "SR-23",
	"CT-SA-7": "SR-15, SR-27", "CT-SA-8": "SR-19, SP-4", "CT-SA-9": "SR-1, SR-2", "CT-SA-10": "SR-3, SEL-3", "CT-SA-11": "SR-10, SEL-10", "CT-SA-12": "SR-18, SR-24, SR-26, SEL-4, B-7",
	"CT-SA-13": "SR-17", "CT-SA-14": "SR-24", "CT-SA-15": "SR-26, SP-9", "CT-SA-16": "SR-13", "CT-SA-17": "SR-11", "CT-SA-18": "SR-22, SP-5", "CT-SA-19": "SP-6",
	"CT-SA-20": "SR-7g, SP-1", "CT-SA-21": "SR-25g, SP-7", "CT-SA-22": "SR-16g, SR-16e", "CT-SA-23": "SR-4g, SR-4e", "CT-SA-24": "SR-7e, SR-25e", "D-5": "SP-3b", "SP-11": "T3-5",
}

// TestRules are the cases of 13.3, line by line, in the notation below.
func TestRules(t *testing.T) {
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
		of, _, _ := strings.Cut(name, "/")
		t.Run(name+" ("+rulesOf[of]+")/"+scope+"/"+question, func(t *testing.T) {
			a := ruled()
			a.ReadAll = readAll
			if got := decided(a, ask(t, question)); !matches(got, want) {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

// TestPathOnly: kinds that clients only read are read by path, and nothing else is done with them.
func TestPathOnly(t *testing.T) {
	const readers = "N(only the following verbs are allowed for this resource type: [get list watch])"
	for name, at := range map[string]struct{ resource, namespace string }{
		"CT-SA-2/SR-5": {"cloudprofiles", ""}, "CT-SA-2/SR-6": {"namespacedcloudprofiles", "n/"}, "SR-9/BH-SA-15": {"controllerdeployments", ""}, "SR-12/BH-SA-17": {"credentialsbindings", "n/"},
		"SR-14/BH-SA-19": {"exposureclasses", ""}, "CT-SA-2/SR-19": {"namespaces", ""}, "CT-SA-2/SR-20": {"projects", ""}, "CT-SA-2/SR-21": {"secretbindings", "n/"},
	} {
		resource, namespace := at.resource, at.namespace
		for _, client := range []string{"G", "E"} {
			for _, verb := range []string{"get", "list", "watch"} {
				decides(t, name, "", client+" "+verb+" "+resource+" "+namespace+"own", "A")
				decides(t, name, "", client+" "+verb+" "+resource+" "+namespace+"foreign", "N(no relationship found)")
			}
			for _, verb := range []string{"create", "update", "patch", "delete", "deletecollection"} {
				decides(t, name, "", client+" "+verb+" "+resource+" "+namespace+"own", readers)
			}
			decides(t, name, "", client+" get "+resource+"/status "+namespace+"own", "N(only the following subresources are allowed for this resource type: [])")
			decides(t, name, "", client+" get "+resource, "N(No Object name found)")
			decides(t, "CT-SA-3", "", client+" list "+resource, "N(must specify field or label selector for name seed)")
		}
	}
}

// cases are "<rule>: <question> => <decision>", one a line:
//
//	rule      the case of the contract; with All or Related after it, it is about that readScope alone
//	question  "<client> <verb> <resource>[/subresource][.group] [namespace/][name] [field:<selector>] [label:<selector>]"
//	client    G a gardenlet of seed "seed", E an extension on it, O somebody else
//	own       leads to that seed, foreign to another one
//	decision  A is allowed; N(text) is no opinion with the text in its reason, and N() one without a reason
const cases = `
CT-SA-1: O get shoots n/own => N()
CT-SA-1: G get quotas x => N()
CT-SA-1: G get pods. n/x => N()
CT-SA-1: G get extensions.extensions.gardener.cloud n/x => N()
CT-SA-4: G get configmaps gardener-system-public/gardener-info => A
CT-SA-4: G list configmaps gardener-system-public/gardener-info => N(no relationship found)
CT-SA-4 All: G get configmaps kube-system/cluster-identity => A
CT-SA-4 All: E watch configmaps kube-system/cluster-identity => A
CT-SA-4 Related: G get configmaps kube-system/cluster-identity => N(no relationship found)
CT-SA-4: G update configmaps kube-system/cluster-identity => N(no relationship found)
CT-SA-5: G create configmaps n/ => A
CT-SA-5: G get configmaps n/own => A
CT-SA-5: G list configmaps n/own => A
CT-SA-5: G watch configmaps n/own => A
CT-SA-5: G update configmaps n/own => A
CT-SA-5: G patch configmaps n/own => A
CT-SA-5: G delete configmaps n/own => A
CT-SA-5: G get configmaps n/foreign => N(no relationship found)
CT-SA-5: G deletecollection configmaps n/ => N([create delete get list patch update watch])
CT-SA-6: G get workloadidentities n/own => A
CT-SA-6: G create workloadidentities n/own => A
CT-SA-6: G patch workloadidentities n/own => A
CT-SA-6: G create workloadidentities/token n/own => A
CT-SA-6: E create workloadidentities/token n/foreign => N(no relationship found)
CT-SA-6: G update workloadidentities n/own => N([create get list patch watch])
CT-SA-6: G delete workloadidentities n/own => N([create get list patch watch])
CT-SA-6: G deletecollection workloadidentities n/ => N([create get list patch watch])
CT-SA-6: G create workloadidentities/foo n/own => N([token])
CT-SA-6: G create workloadidentities n/ => N(No Object name found)
CT-SA-7: G create shootstates n/ => A
CT-SA-7: G get shootstates n/own => A
CT-SA-7: G list shootstates n/own => A
CT-SA-7: G patch shootstates n/own => A
CT-SA-7: G update shootstates n/own => A
CT-SA-7: G delete shootstates n/own => A
CT-SA-7: G patch shootstates n/foreign => N(no relationship found)
CT-SA-7: G deletecollection shootstates n/ => N([create delete get list patch update watch])
CT-SA-7: E create internalsecrets n/ => A
CT-SA-7: E get internalsecrets n/own => A
CT-SA-7: E watch internalsecrets n/own => A
CT-SA-7: E delete internalsecrets n/own => A
CT-SA-7: E update internalsecrets n/foreign => N(no relationship found)
CT-SA-7: E deletecollection internalsecrets n/ => N([create delete get list patch update watch])
CT-SA-8: G get namespaces own/own => A
CT-SA-8 All: G get namespaces garden/garden => A
CT-SA-8 All: E watch namespaces garden/garden => A
CT-SA-8 Related: G get namespaces garden/garden => N(no relationship found)
CT-SA-8 Related: E list namespaces garden/garden => N(no relationship found)
CT-SA-8: G get namespaces seed-seed/seed-seed => A
CT-SA-8: G get namespaces seed-other/seed-other => N(no relationship found: Namespace:seed-other)
CT-SA-9: G get backupbuckets foreign => A
CT-SA-9: G list backupbuckets => A
CT-SA-9: E watch backupbuckets => A
CT-SA-9: G create backupbuckets => A
CT-SA-9: G update backupbuckets own => A
CT-SA-9: G patch backupbuckets/status own => A
CT-SA-9: G update backupbuckets/finalizers own => A
CT-SA-9: G delete backupbuckets own => A
CT-SA-9: G update backupbuckets foreign => N(no relationship found)
CT-SA-9: G update backupbuckets/foo own => N([finalizers status])
CT-SA-9: G deletecollection backupbuckets => N([create delete get list patch update watch])
CT-SA-9: G list backupentries n/ => A
CT-SA-9: G create backupentries n/ => A
CT-SA-9: G patch backupentries/status n/own => A
CT-SA-9: G patch backupentries n/foreign => N(no relationship found)
CT-SA-9: G update backupentries/finalizers n/own => N([status])
CT-SA-9: G deletecollection backupentries n/ => N([create delete get list patch update watch])
CT-SA-10: G create bastions n/ => A
CT-SA-10: G delete bastions n/own => N([create get list patch update watch])
CT-SA-10: G deletecollection bastions n/ => N([create get list patch update watch])
CT-SA-10: G get bastions n/own => A
CT-SA-10 Related: G get bastions n/foreign => N(no relationship found)
CT-SA-10 All: G get bastions n/foreign => A
CT-SA-10: G patch bastions/status n/own => A
CT-SA-10: G update bastions n/foreign => N(no relationship found)
CT-SA-10: G list bastions field:spec.seedName=seed => A
CT-SA-10 Related: G list bastions => N(must specify field or label selector for name seed)
CT-SA-10 All: G list bastions => A
CT-SA-10 Related: G watch bastions field:spec.seedName=other => N(must specify field or label selector for name seed)
CT-SA-10 Related: G watch bastions field:spec.seedName!=seed => N(must specify field or label selector for name seed)
CT-SA-11: G list controllerinstallations field:spec.seedRef.name=seed => A
CT-SA-11 Related: G list controllerinstallations => N(must specify)
CT-SA-11 All: G list controllerinstallations => A
CT-SA-11: G get controllerinstallations own => A
CT-SA-11/BH-SA-16: G patch controllerinstallations/status own => A
CT-SA-11: G create controllerinstallations => N([get list patch update watch])
CT-SA-11: G delete controllerinstallations own => N([get list patch update watch])
CT-SA-12: G list shoots label:name.seed.gardener.cloud/seed=true => A
CT-SA-12: G watch seeds label:name.seed.gardener.cloud/seed=true => A
CT-SA-12: E list managedseeds label:name.seed.gardener.cloud/seed=true => A
CT-SA-12: G list shoots label:name.seed.gardener.cloud/seed => A
CT-SA-12: G list shoots label:name.seed.gardener.cloud/seed_in_(true) => A
CT-SA-12 Related: G list shoots label:name.seed.gardener.cloud/seed_in_(true,false) => N(must specify)
CT-SA-12 Related: G list shoots label:name.seed.gardener.cloud/other=true => N(must specify)
CT-SA-12 Related: G list seeds label:name.seed.gardener.cloud/other=true => N(must specify)
CT-SA-12 Related: G list managedseeds => N(must specify)
CT-SA-12 All: G list managedseeds => A
SR-18/BH-SA-22: G patch managedseeds garden/child => A
SR-18/BH-SA-22: G update managedseeds garden/foreign => N(no relationship found)
SR-18/BH-SA-22: G create managedseeds garden/x => N([get list patch update watch])
CT-SA-12 Related: G list shoots label:!foo => N(must specify)
CT-SA-12 Related: G list shoots label:foo!=bar => N(must specify)
CT-SA-12 Related: G list shoots label:foo_notin_(x) => N(must specify)
CT-SA-12 Related: G list shoots label:name.seed.gardener.cloud/seed!=x => N(must specify)
CT-SA-12 All: G list shoots => A
CT-SA-13 Related: G get gardenlets n/seed => N([garden])
CT-SA-13 Related: G list gardenlets => N([garden])
CT-SA-13 All: G list gardenlets => A
CT-SA-13: G create gardenlets n/ => N([garden])
CT-SA-13: G patch gardenlets n/seed => N([garden])
CT-SA-13: G create gardenlets garden/ => A
CT-SA-13: G list gardenlets garden/ field:metadata.name=seed => A
CT-SA-13: G watch gardenlets garden/seed field:metadata.name=seed => A
CT-SA-13 Related: G list gardenlets garden/other field:metadata.name=other => N(must specify)
CT-SA-13: G patch gardenlets/status garden/seed => A
CT-SA-13: G update gardenlets garden/other => N(no relationship found)
CT-SA-14: G create seeds => A
CT-SA-14: G get seeds seed => A
CT-SA-14: G update seeds seed => A
CT-SA-14: G patch seeds/status seed => A
CT-SA-14: G update seeds other => N(no relationship found)
CT-SA-14 Related: G get seeds other => N(no relationship found)
CT-SA-14 All: G get seeds other => A
CT-SA-14: G get seeds child => A
CT-SA-14: G update seeds child => A
CT-SA-14: G patch seeds child => A
CT-SA-14: G delete seeds child => A
CT-SA-14: G deletecollection seeds => N([create delete get list patch update watch])
CT-SA-14: G update seeds/foo seed => N([status])
CT-SA-15: G get shoots garden/seed => A
CT-SA-15: G get shoots/foo garden/seed => A
CT-SA-15: G create shoots n/ => N([get list patch update watch])
CT-SA-15: G delete shoots n/own => N([get list patch update watch])
CT-SA-15: G deletecollection shoots n/ => N([get list patch update watch])
CT-SA-15: G patch shoots/status n/own => A
CT-SA-15: G update shoots/finalizers n/own => A
CT-SA-15: G create shoots/binding n/own => N([finalizers status])
CT-SA-15: G patch shoots n/foreign => N(no relationship found)
CT-SA-16: G create events n/ => A
CT-SA-16: E patch events n/x => A
CT-SA-16: G create events.events.k8s.io n/ => A
CT-SA-16: G get events n/x => N([create patch])
CT-SA-16: G list events.events.k8s.io => N([create patch])
CT-SA-16: G delete events n/x => N([create patch])
CT-SA-16: G get events/foo n/x => N([create patch])
CT-SA-16: G patch events/foo n/x => N(only the following subresources are allowed for this resource type: [])
CT-SA-17: G get controllerregistrations x => A
CT-SA-17: G list controllerregistrations => A
CT-SA-17: E watch controllerregistrations => A
CT-SA-17: G update controllerregistrations x => N([get list watch])
CT-SA-17: G get controllerregistrations/status x => N([])
CT-SA-18: G get secrets seed-seed/x => A
CT-SA-18: E list secrets seed-seed/ => A
CT-SA-18: E watch secrets seed-seed/ => A
CT-SA-18: G delete secrets seed-seed/own => A
CT-SA-18: G list secrets n/ => N([create delete get patch update])
CT-SA-18: G watch secrets n/own => N([create delete get patch update])
CT-SA-18: G deletecollection secrets seed-seed/ => N([create delete get patch update])
CT-SA-18: G create secrets n/ => A
CT-SA-18: G get secrets n/own => A
CT-SA-18: G get secrets seed-other/x => N(no relationship found)
CT-SA-19: G delete secrets kube-system/bootstrap-token-c3b902 => A
CT-SA-19: E delete secrets kube-system/bootstrap-token-c3b902 => A
CT-SA-19: G get secrets kube-system/bootstrap-token-c3b902 => N(no relationship found)
SP-11: G get secrets kube-system/bootstrap-token-child => A
SP-11: G patch secrets kube-system/bootstrap-token-child => A
SP-11: G update secrets kube-system/bootstrap-token-child => A
SP-11: G delete secrets kube-system/bootstrap-token-child => A
SP-11: E get secrets kube-system/bootstrap-token-child => N(only the gardenlet of a seed needs a bootstrap token)
SP-11: E list secrets kube-system/bootstrap-token-child => N(only the gardenlet of a seed needs a bootstrap token)
SP-11: E watch secrets kube-system/bootstrap-token-child => N(only the gardenlet of a seed needs a bootstrap token)
SP-11: E patch secrets kube-system/bootstrap-token-child => N(only the gardenlet of a seed needs a bootstrap token)
SP-11: E update secrets kube-system/bootstrap-token-child => N(only the gardenlet of a seed needs a bootstrap token)
SP-11: E delete secrets kube-system/bootstrap-token-child => N(only the gardenlet of a seed needs a bootstrap token)
SP-11: E create secrets kube-system/bootstrap-token-child => N(only the gardenlet of a seed needs a bootstrap token)
SP-11: E get secrets kube-system/bootstrap-token-c3b902 => N(only the gardenlet of a seed needs a bootstrap token)
SP-11: E get secrets n/bootstrap-token-child => N(no relationship found)
SP-11: E create secrets kube-system/ => A
SP-11: G get secrets garden/of-account => A
SP-11: E get secrets garden/of-account => N(only the gardenlet of a seed needs a bootstrap token)
SP-11: E update secrets garden/of-account => N(only the gardenlet of a seed needs a bootstrap token)
SP-11: E get secrets n/own => A
CT-SA-20: G delete clusterrolebindings gardener.cloud:system:seed-bootstrapper:garden:seed => A
CT-SA-20: G delete clusterrolebindings gardener.cloud:system:seed-bootstrapper:garden:gardenlet-bootstrap-seed => A
CT-SA-20: G delete clusterrolebindings gardener.cloud:system:seed-bootstrapper:garden:other => N([create get patch update])
CT-SA-20: G delete clusterrolebindings n/gardener.cloud:system:seed-bootstrapper:garden:seed => N([create get patch update])
CT-SA-20: G delete clusterrolebindings gardener.cloud:system:seed-bootstrapper:foo:seed => N([create get patch update])
CT-SA-20: G delete clusterrolebindings gardener.cloud:system:seed-bootstrapper:garden:seed:more => N([create get patch update])
CT-SA-20: G create clusterrolebindings => A
CT-SA-20: G get clusterrolebindings own => A
CT-SA-20: G patch clusterrolebindings own => A
CT-SA-20: G list clusterrolebindings => N([create get patch update])
CT-SA-21: G delete serviceaccounts garden/gardenlet-bootstrap-seed => A
CT-SA-21: G delete serviceaccounts garden/gardenlet-bootstrap-other => N([create get patch update])
CT-SA-21/SP-8: G create serviceaccounts/token seed-seed/x => A
CT-SA-21/SP-8: G deletecollection serviceaccounts seed-seed/ => A
CT-SA-21/SP-8: G list serviceaccounts seed-seed/ => A
CT-SA-21: G list serviceaccounts seed-other/ => N([create get patch update])
CT-SA-21: G get serviceaccounts seed-other/x => N(no relationship found)
CT-SA-21: G create serviceaccounts/token n/own => N([])
CT-SA-21: G patch serviceaccounts n/own => A
CT-SA-22: G create leases n/ => A
CT-SA-22: G get leases n/own => A
CT-SA-22: G list leases n/own => A
CT-SA-22: G update leases n/own => A
CT-SA-22: G patch leases n/foreign => N(no relationship found)
CT-SA-22: G delete leases n/own => N([create get list patch update watch])
CT-SA-22: G deletecollection leases n/ => N([create get list patch update watch])
CT-SA-22/SP-3: E create leases seed-seed/ => A
CT-SA-22/SP-3: E get leases seed-seed/x => A
CT-SA-22/SP-3: E list leases seed-seed/ => A
CT-SA-22/SP-3: E watch leases seed-seed/ => A
CT-SA-22/SP-3: E update leases seed-seed/x => A
CT-SA-22/SP-3: E patch leases seed-seed/x => A
CT-SA-22/SP-3: E delete leases seed-seed/x => A
CT-SA-22/SP-3: E deletecollection leases seed-seed/ => A
CT-SA-22/SP-3: E foo leases seed-seed/x => N([create get list watch update patch delete deletecollection])
CT-SA-22/SP-3: E get leases n/own => N(lease object is not in seed namespace)
C1: G delete leases gardener-system-seed-lease/seed => A
C1: G delete leases gardener-system-seed-lease/other => N([create get list patch update watch])
D-5 All: G update leases n/gardenlet-leader-election => A
D-5: G patch leases n/gardenlet-leader-election => N(no relationship found)
D-5 Related: G update leases n/gardenlet-leader-election => N(no relationship found)
CT-SA-23: G create certificatesigningrequests => A
CT-SA-23: G create certificatesigningrequests/seedclient x => A
CT-SA-23/BH-SA-10: G get certificatesigningrequests own => A
CT-SA-23: G watch certificatesigningrequests own => A
CT-SA-23: G update certificatesigningrequests own => N([create get list watch])
CT-SA-23: G delete certificatesigningrequests own => N([create get list watch])
CT-SA-23: G create certificatesigningrequests/foo => N([seedclient])
CT-SA-23: E get certificatesigningrequests own => A
CT-SA-23: E create certificatesigningrequests => N([get list watch])
CT-SA-24: E get clusterrolebindings own => A
CT-SA-24: E create clusterrolebindings => N([get])
CT-SA-24: E delete clusterrolebindings gardener.cloud:system:seed-bootstrapper:garden:seed => N([get])
CT-SA-24: E get serviceaccounts n/own => A
CT-SA-24: E create serviceaccounts seed-seed/ => N([get])
CT-SA-24: E delete serviceaccounts garden/gardenlet-bootstrap-seed => N([get])
2.4: G get secrets n/own.kubeconfig => A
2.4: G update secrets n/own.kubeconfig => A
2.4: G get secrets n/foreign.kubeconfig => N(no relationship found)
`

func TestNotAResource(t *testing.T) {
	a := ruled()
	if got := decided(a, authorizer.AttributesRecord{User: gardenlet, Verb: "get", Path: "/healthz"}); got != "N()" {
		t.Errorf("CT-SA-1: no resource: got %s", got)
	}
	if got := decided(a, authorizer.AttributesRecord{User: gardenlet, Verb: "get", ResourceRequest: true}); got != "N()" {
		t.Errorf("CT-SA-1: an empty resource: got %s", got)
	}
	if got := decided(a, authorizer.AttributesRecord{}); got != "N()" {
		t.Errorf("CT-AE-12, SA-1: no user: got %s", got)
	}
}

// TestSelectors is section 5: several requirements, API servers that send no selectors, and a question that cannot be answered.
func TestSelectors(t *testing.T) {
	a := ruled()
	several := ask(t, "G list shoots label:other=x,name.seed.gardener.cloud/seed=true,!foo")
	several.LabelSelectorParsingErr = errFake
	if got := decided(a, several); got != "A" {
		t.Errorf("SEL-5, SEL-6: one requirement of several is enough, whatever else could not be parsed: got %s", got)
	}
	a.Selectors = selectors{}
	for question, want := range map[string]string{
		"G list cloudprofiles":       "N(No Object name found)", // Nothing selects CloudProfiles, so that a name is needed (CT-SA-3, SEL-8).
		"G list shoots":              "A",                       // All are shown, as before there were selectors (SEL-7).
		"G list cloudprofiles own":   "A",                       // A name is looked for in the graph (SEL-9).
		"G list gardenlets garden/x": "A",                       // So it is with a name where names are selected (SEL-7).
	} {
		if got := decided(a, ask(t, question)); !matches(got, want) {
			t.Errorf("SEL-7/SEL-8, not possible: %s: got %s, want %s", question, got, want)
		}
	}
	a.Selectors = selectors{err: errFake}
	want := "error(failed checking if authorization with selectors is possible: failed checking whether 'AuthorizeWithSelectors' feature is enabled: fake-err)"
	if got := decided(a, ask(t, "G list shoots")); got != want {
		t.Errorf("SEL-1: got %s, want %s", got, want)
	}
	if got := decided(a, ask(t, "G list cloudprofiles own")); got != "A" {
		t.Errorf("SEL-9: a named list does not ask: got %s", got)
	}
}

func TestLive(t *testing.T) {
	shoot := func(seed string) runtime.Object {
		return &gardencorev1beta1.Shoot{Object: partialmeta.Object{Namespace: "n", Name: "new"}, Spec: gardencorev1beta1.ShootSpec{SeedName: &seed}}
	}
	for name, c := range map[string]struct {
		question, want string
		live           live
	}{
		"CT-SA-5/delete of what is absent":            {"G delete configmaps n/gone", "A", live{}},
		"CT-SA-5/delete of what is there":             {"G delete configmaps n/there", "N(no relationship found)", live{exists: map[string]bool{"configmaps:n/there": true}}},
		"R17/delete of what cannot be read":           {"G delete configmaps n/there", "N(could not be looked up)", live{err: errFake}},
		"CT-SA-19/another seed's token that is there": {"G delete secrets kube-system/bootstrap-token-88264c", "N(no relationship found)", live{exists: map[string]bool{"secrets:kube-system/bootstrap-token-88264c": true}}},
		"B-5/delete of a watched kind that is absent": {"G delete backupentries n/gone", "A", live{}},
		"re-read/own object that is new":              {"G patch shoots n/new", "A", live{objects: map[string]runtime.Object{"shoots:n/new": shoot("seed")}}},
		"re-read/foreign object that is new":          {"G patch shoots n/new", "N(no relationship found)", live{objects: map[string]runtime.Object{"shoots:n/new": shoot("other")}}},
		"re-read/absent":                              {"G patch shoots n/new", "N(no relationship found)", live{}},
		"re-read/unreadable":                          {"G patch shoots n/new", "N(could not be looked up)", live{err: errFake}},
		"T3-2/delete for a Seed that is not known":    {"G delete configmaps n/gone", "N(the client's seed or shoot is not known)", live{}},
		"T3-2/get for a Seed that is not known":       {"E get shoots/status n/new", "N(the client's seed or shoot is not known)", live{}},
		"T3-2/own Seed that is new":                   {"G patch seeds/status seed", "A", live{objects: map[string]runtime.Object{"seeds:/seed": &gardencorev1beta1.Seed{Object: partialmeta.Object{Name: "seed"}}}}},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAuthorizer()
			a.Live = &c.live
			want := 1
			if unknown, _ := strings.CutPrefix(name, "T3-2/"); unknown != name {
				a.Graph.Remove(relation.SeedVertex("seed"))
				want = len(c.live.objects) // Only the Seed itself.
			}
			if got := decided(a, ask(t, c.question)); !matches(got, c.want) {
				t.Errorf("got %s, want %s", got, c.want)
			}
			if c.live.asked != want {
				t.Errorf("looked up %d times, want %d", c.live.asked, want)
			}
		})
	}
	t.Run("B-5/known vertices and what is only referred to are not looked up", func(t *testing.T) {
		a := ruled()
		l := &live{}
		a.Live = l
		for _, question := range []string{"G patch shoots n/foreign", "G get secrets n/x", "G get cloudprofiles x", "G delete shoots n/x", "G delete secrets seed-other/x"} {
			if got := decided(a, ask(t, question)); got == "A" {
				t.Errorf("%s is allowed", question)
			}
		}
		if l.asked != 0 {
			t.Errorf("looked up %d times", l.asked)
		}
	})
}

func TestWriteScope(t *testing.T) {
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
		"G get secrets n/dns":               "A",
		"G update secrets n/dns":            "N(only referred to)",
		"G delete secrets n/dns":            "N(only referred to)",
		"G update secrets n/web.ca-cluster": "A",
		"G patch shoots n/web":              "A",
	} {
		if got := decided(a, ask(t, question)); !matches(got, want) {
			t.Errorf("B-6: %s: got %s, want %s", question, got, want)
		}
	}
	a.WriteOwned = false
	if got := decided(a, ask(t, "G update secrets n/dns")); got != "A" {
		t.Errorf("B-6: as today: got %s", got)
	}
}

func TestExplain(t *testing.T) {
	a := ruled()
	shoot := graph.Vertex{Kind: relation.Shoot, Namespace: "n", Name: "foreign"}
	a.Graph.Set(shoot, []graph.Edge{{From: shoot, To: relation.SeedVertex("other")}, {From: graph.Vertex{Kind: relation.CloudProfile, Name: "wide"}, To: shoot}})
	e := a.Explain(context.Background(), ask(t, "G get cloudprofiles wide"))
	if e.Decision != "NoOpinion" || e.Rule != "SR-5" || e.Step != "SA-14" || len(e.Instead) != 1 || e.Instead[0] != "CloudProfile:wide -> Shoot:n/foreign -> Seed:other" ||
		len(e.Missing) != 1 || e.Missing[0] != "Shoot:n/foreign -> Seed:seed (GE-46: spec.seedName of the Shoot)" {
		t.Errorf("a refusal: got %+v", e)
	}
	e = a.Explain(context.Background(), ask(t, "G get cloudprofiles own"))
	if e.Decision != "Allow" || strings.Join(e.Path, " ") != "CloudProfile:own Seed:seed" || e.Client != "gardenlet" {
		t.Errorf("a path: got %+v", e)
	}
	e = a.Explain(context.Background(), ask(t, "G get exposureclasses x"))
	if len(e.Missing) != 1 || e.Missing[0] != "ExposureClass:x -> Shoot:n/own (GE-48: spec.exposureClassName of the Shoot)" || e.Candidates[0].Links[0].Writer != "members of the project" {
		t.Errorf("an unknown vertex: got %+v", e)
	}
	if e = a.Explain(context.Background(), ask(t, "O get shoots n/x")); e.Step != "SA-1" || e.Client != "" {
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
	if e = a.Explain(context.Background(), ask(t, "G update secrets n/dns")); e.Step != "B-6" || strings.Join(e.Missing, " and ") != first+" and "+second {
		t.Errorf("GE-27: got %+v", e)
	}
}
