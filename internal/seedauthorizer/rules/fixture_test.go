package rules

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
	"github.com/espalier-project/espalier/test/must"
)

// Clients: a gardenlet, and an extension of its seed.
var (
	gardenlet = &user.DefaultInfo{Name: "gardener.cloud:system:seed:seed", Groups: []string{"gardener.cloud:system:seeds"}}
	extension = &user.DefaultInfo{Name: "system:serviceaccount:seed-seed:extension-provider-local", Groups: []string{"system:serviceaccounts", "system:serviceaccounts:seed-seed"}}
	other     = &user.DefaultInfo{Name: "foo", Groups: []string{"bar"}}
)

var clients = map[string]*user.DefaultInfo{"gardenlet": gardenlet, "extension": extension, "other": other, "shoot-gardenlet": shootGardenlet, "shoot-extension": shootExtension, "gardenadm": shootGardenadm, "garden-extension": gardenExtension}

// The clients of a self-hosted shoot, and an extension of one in namespace garden.
var (
	shootGardenlet  = &user.DefaultInfo{Name: "gardener.cloud:system:shoot:n:s", Groups: []string{"gardener.cloud:system:shoots"}}
	shootGardenadm  = &user.DefaultInfo{Name: "gardener.cloud:gardenadm:shoot:n:s", Groups: []string{"gardener.cloud:system:shoots"}}
	shootExtension  = &user.DefaultInfo{Name: "system:serviceaccount:garden-n:extension-shoot--s--e", Groups: []string{"system:serviceaccounts", "system:serviceaccounts:garden-n"}}
	gardenExtension = &user.DefaultInfo{Name: "system:serviceaccount:garden:extension-shoot--s--e", Groups: []string{"system:serviceaccounts", "system:serviceaccounts:garden"}}
)

// selectors answers the question whether selectors are possible.
type selectors struct {
	possible bool
	err      error
}

func (s selectors) Possible(context.Context) (bool, error) { return s.possible, s.err }
func (s selectors) Known() (bool, bool)                    { return s.possible, s.err == nil }

// live is a garden that is asked for single objects.
type live struct {
	objects map[string]runtime.Object
	exists  map[string]bool
	err     error
	asked   int
}

func (l *live) Exists(_ context.Context, r schema.GroupVersionResource, namespace, name string) (bool, error) {
	l.asked++
	return l.exists[r.Resource+":"+namespace+"/"+name], l.err
}

func (l *live) Read(_ context.Context, w *relation.Watch, namespace, name string) (runtime.Object, error) {
	l.asked++
	return l.objects[w.Resource.Resource+":"+namespace+"/"+name], l.err
}

func (l *live) Secret(_ context.Context, namespace, name string) (*corev1.Secret, error) {
	l.asked++
	secret, _ := l.objects["secrets:"+namespace+"/"+name].(*corev1.Secret)
	return secret, l.err
}

type noFacts struct{}

func (noFacts) Seed(string) (bool, time.Time) { return true, time.Time{} }
func (noFacts) ProjectOf(string) string       { return "" }
func (noFacts) Now() time.Time                { return time.Time{} }

func newAuthorizer() *Authorizer {
	a := NewSeedAuthorizer(Options{Graph: graph.New(relation.Schema), Watches: relation.Watches, Facts: noFacts{}, Selectors: selectors{possible: true}, Live: &live{}, Log: logr.Discard()})
	for _, name := range []string{"seed", "second"} { // For a Seed that is not known nothing is looked up (T3-2).
		a.Graph.Set(relation.SeedVertex(name), nil)
	}
	return a
}

// lead makes a vertex lead to a seed.
func lead(a *Authorizer, kind graph.Kind, namespace, name, seed string) {
	v := graph.Vertex{Kind: kind, Namespace: namespace, Name: name}
	a.Graph.Set(v, []graph.Edge{{From: v, To: relation.SeedVertex(seed)}})
}

var groups = map[string]string{
	"certificatesigningrequests": "certificates.k8s.io", "clusterrolebindings": rbac, "configmaps": "", "events": "", "leases": "coordination.k8s.io",
	"namespaces": "", "secrets": "", "serviceaccounts": "", "bastions": operations, "gardenlets": seedManagement, "managedseeds": seedManagement,
	"credentialsbindings": security, "workloadidentities": security,
}

// ask reads "<client> <verb> <resource>[/subresource] [namespace/]name [field:<selector>] [label:<selector>]".
func ask(t *testing.T, text string) authorizer.AttributesRecord {
	t.Helper()
	words := strings.Fields(text)
	client := clients[words[0]]
	must.True(t, client != nil, "%q begins with no client", text)
	a := authorizer.AttributesRecord{User: client, Verb: words[1], ResourceRequest: true}
	a.Resource, a.Subresource, _ = strings.Cut(words[2], "/")
	if resource, group, found := strings.Cut(a.Resource, "."); found {
		a.Resource, a.APIGroup = resource, group
	} else if group, known := groups[a.Resource]; known {
		a.APIGroup = group
	} else {
		a.APIGroup = core
	}
	for _, word := range words[3:] {
		switch {
		case strings.HasPrefix(word, "field:"):
			selector, err := fields.ParseSelector(word[6:])
			must.Succeed(t, err)
			a.FieldSelectorRequirements = selector.Requirements()
		case strings.HasPrefix(word, "label:"):
			selector, err := labels.Parse(strings.ReplaceAll(word[6:], "_", " "))
			must.Succeed(t, err)
			a.LabelSelectorRequirements, _ = selector.Requirements()
		case strings.Contains(word, "/"):
			a.Namespace, a.Name, _ = strings.Cut(word, "/")
		default:
			a.Name = word
		}
	}
	return a
}

// bySelfHostedShoot reports whether the client of a question is one of a self-hosted shoot.
func bySelfHostedShoot(question string) bool {
	return strings.HasPrefix(question, "shoot-") || strings.HasPrefix(question, "gardenadm")
}

// decided is "allowed", "denied", "no opinion", "no opinion: <reason>" or "error: <text>".
func decided(a *Authorizer, attributes authorizer.Attributes) string {
	decision, reason, err := a.Authorize(context.Background(), attributes)
	switch {
	case err != nil:
		return "error: " + err.Error()
	case decision == authorizer.DecisionAllow:
		return "allowed"
	case decision == authorizer.DecisionDeny:
		return "denied"
	}
	if reason == "" {
		return "no opinion"
	}
	return "no opinion: " + reason
}

// matches reports whether a decision is as wanted; after "no opinion: " want has a part of the reason.
func matches(got, want string) bool {
	if part, anyReason := strings.CutPrefix(want, "no opinion: "); anyReason {
		reason, undecided := strings.CutPrefix(got, "no opinion: ")
		return undecided && strings.Contains(reason, part)
	}
	return got == want
}

var errFake = errors.New("fake-err")
