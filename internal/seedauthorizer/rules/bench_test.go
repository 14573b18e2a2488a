package rules

import (
	"context"
	"fmt"
	"testing"

	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
)

// BenchmarkAuthorize measures whole decisions on a graph of 10,000 Shoots with one CloudProfile:
//
//	go test -run '^$' -bench Authorize -benchmem -count 6 ./internal/seedauthorizer/rules
func BenchmarkAuthorize(b *testing.B) {
	a := newAuthorizer()
	a.Live = nil
	profile := graph.Vertex{Kind: relation.CloudProfile, Name: "wide"}
	for i := range 10_000 {
		shoot := graph.Vertex{Kind: relation.Shoot, Namespace: fmt.Sprint("garden-", i/10), Name: fmt.Sprint("shoot-", i)}
		secret := graph.Vertex{Kind: relation.Secret, Namespace: shoot.Namespace, Name: shoot.Name + ".ca-cluster"}
		seed := "other"
		if i%100 == 0 {
			seed = "seed"
		}
		a.Graph.Set(shoot, []graph.Edge{{From: shoot, To: relation.SeedVertex(seed)}, {From: profile, To: shoot}, {From: secret, To: shoot}})
	}
	for name, q := range map[string]authorizer.AttributesRecord{
		"always":                 {Verb: "create", Resource: "configmaps", Namespace: "n"},
		"a Secret, allowed":      {Verb: "get", Resource: "secrets", Namespace: "garden-0", Name: "shoot-0.ca-cluster"},
		"a Secret, refused":      {Verb: "get", Resource: "secrets", Namespace: "garden-0", Name: "shoot-1.ca-cluster"},
		"a CloudProfile for all": {Verb: "get", APIGroup: core, Resource: "cloudprofiles", Name: "wide"},
	} {
		q.User, q.ResourceRequest = gardenlet, true
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _, _ = a.Authorize(context.Background(), q)
			}
		})
	}
}
