package rules

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	clocktesting "k8s.io/utils/clock/testing"
	"pgregory.net/rapid"

	"github.com/espalier-project/espalier/internal/externalapi/wellknown"
	"github.com/espalier-project/espalier/internal/seedauthorizer/restriction"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/gen/gardengen"
)

// members may create ServiceAccounts, their tokens and Secrets in the namespace of a project, by a role of the project (serviceaccountmanager).
var members = map[string]string{"alice": "garden-n", "operator": wellknown.Garden}

// ways lead to a token of a ServiceAccount: its creation, a request for a token, and a Secret into which kube-controller-manager writes a token.
var ways = []string{"serviceaccounts", "serviceaccounts/token", "secrets"}

// TestPropertyOfIdentities: whoever may create an identity, or get a token for it, reaches all that the identity reaches. Identities are the ServiceAccounts of
// all names that a role lets somebody create; other users of clients have certificates, whose names the restrictions compare with their requestor's.
func TestPropertyOfIdentities(t *testing.T) {
	var worlds []*smallWorld
	var readers []reader
	for _, base := range (small{t}).bases() {
		worlds, readers = append(worlds, newSmallWorld(smallGarden{objects: base})), append(readers, reader{base})
	}
	vertices := slices.DeleteFunc(smallVertices(), func(vertex string) bool { return strings.HasSuffix(vertex, "/x") })
	made, reached := map[string]int{}, 0
	check := func(t *rapid.T) {
		at := rapid.IntRange(0, len(worlds)-1).Draw(t, "world")
		w := worlds[at]
		w.setting(rapid.SampledFrom([]int{0, 1, 2, 3}).Draw(t, "policy"))
		creator := rapid.SampledFrom(append(slices.Clone(smallAskers), &user.DefaultInfo{Name: "alice"}, &user.DefaultInfo{Name: "operator"})).Draw(t, "creator")
		namespace := rapid.SampledFrom([]string{wellknown.Garden, "garden-n", "seed-a", "seed-child", wellknown.KubeSystem}).Draw(t, "namespace")
		name := accountName(t)
		way := rapid.SampledFrom(ways).Draw(t, "way")
		if !w.creates(readers[at], creator, way, namespace, name) {
			return
		}
		made[way]++
		identity := &user.DefaultInfo{Name: "system:serviceaccount:" + namespace + ":" + name, Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace}}
		for _, vertex := range vertices {
			for _, q := range questionsAbout(vertex) {
				q.User = identity
				if !w.allows(q) {
					continue
				}
				reached++
				q.User = creator
				if !w.allows(q) && !w.isOwn(q, identity.Name, creator) {
					t.Fatalf("T4-1, SHI-3, RSA-1: %s makes %s by %s, which may %s %s/%s %s, and its maker may not", creator.Name, identity.Name, way, q.Verb, resourceOf(q), q.Subresource, vertex)
				}
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		for range 20 {
			check(t)
		}
	})
	t.Logf("made %v, %d rights", made, reached)
	for _, way := range ways[:2] {
		expect.True(t, made[way] != 0 && reached != 0, "nothing was made by %s: that says little", way)
	}
}

// accountName draws a name that clients have, or one like it.
func accountName(t *rapid.T) string {
	shoot, installation := rapid.SampledFrom([]string{"child", "t", "new"}).Draw(t, "shoot"), rapid.SampledFrom([]string{"x", "t", ""}).Draw(t, "installation")
	return rapid.OneOf(
		rapid.Just("extension-shoot--"+shoot+"--"+installation),
		rapid.SampledFrom([]string{"extension-x", "extension-shoot--child", "gardenlet-bootstrap-child", "robot"}),
		rapid.StringMatching(`(extension-)?(shoot--)?[a-z]{1,5}(--[a-z]{1,2}){0,3}`),
	).Draw(t, "name")
}

// creates reports whether roles, authorizers and admission let somebody make an identity in a way.
func (w *smallWorld) creates(garden reader, creator *user.DefaultInfo, way, namespace, name string) bool {
	resource, subresource, _ := strings.Cut(way, "/")
	q := authorizer.AttributesRecord{User: creator, Verb: "create", Resource: resource, Subresource: subresource, Namespace: namespace, ResourceRequest: true}
	if subresource != "" {
		q.Name = name
	}
	if members[creator.Name] != namespace && !w.allows(q) {
		return false
	}
	r := &admissionv1.AdmissionRequest{
		UserInfo: authenticationv1.UserInfo{Username: creator.Name, Groups: creator.Groups}, Operation: admissionv1.Create, SubResource: subresource, Namespace: namespace, Name: name,
		Resource: metav1.GroupVersionResource{Version: "v1", Resource: resource},
	}
	r.Object.Raw = []byte(jsonText(jsonMap{"metadata": jsonMap{"name": name, "namespace": namespace}}))
	if way == "secrets" {
		r.Name = "x"
		r.Object.Raw = []byte(jsonText(jsonMap{"metadata": jsonMap{"name": "x", "annotations": jsonMap{"kubernetes.io/service-account.name": name}}, "type": "kubernetes.io/service-account-token"}))
	}
	if restriction.Reserved(context.Background(), r) != nil {
		return false
	}
	h := &restriction.Handler{
		Reader: garden, Graph: w.seedState.Graph, Shoots: w.shootState.Graph, Clock: clocktesting.NewFakePassiveClock(gardengen.Now), Log: logr.Discard(),
	}
	return subresource != "" || h.Decide(context.Background(), r) == nil && restriction.SelfHosted{Handler: h}.Decide(context.Background(), r) == nil
}

// allows asks the authorizer of the user.
func (w *smallWorld) allows(q authorizer.AttributesRecord) bool {
	for _, a := range []*Authorizer{w.world.seeds, w.world.shoots} {
		if decision, _, _ := a.Authorize(context.Background(), q); decision == authorizer.DecisionAllow {
			return true
		}
	}
	return false
}

// isOwn reports whether a right that its maker lacks is about nothing of others: Leases of the extension itself (SP-3, SH-14e), and objects of the seed that
// the shoot of the maker is, and whose gardenlet runs in the same cluster (SH-23).
func (w *smallWorld) isOwn(q authorizer.AttributesRecord, identity string, creator *user.DefaultInfo) bool {
	if resourceOf(q) == "leases.coordination.k8s.io" && (strings.HasPrefix(q.Namespace, "seed-") || strings.HasPrefix(q.Name, "child--") || q.Name == "") {
		return true
	}
	q.User = &user.DefaultInfo{Name: wellknown.SeedUserPrefix + "child", Groups: []string{wellknown.SeedsGroup}}
	return creator.Name == wellknown.ShootUserPrefix+"garden:child" && strings.Contains(identity, "extension-shoot--child--") && w.contract.shoots.leads("Seed:child", "Shoot:garden/child") && w.allows(q)
}
