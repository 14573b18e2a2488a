package rules

import (
	"context"
	"flag"
	"fmt"
	"iter"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/espalier-project/espalier/internal/externalapi/wellknown"
	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/gen/gardengen"
	"github.com/espalier-project/espalier/test/must"
)

// propertyClient is a client of drawn gardens, and the authorizer that decides about it.
type propertyClient struct {
	user *user.DefaultInfo
	asks *Authorizer
}

func (w *world) propertyClients() []propertyClient {
	result := w.clientsOfShoot(graph.Vertex{Kind: relation.Shoot, Namespace: "garden-n", Name: "s"})
	for _, seed := range gardengen.Seeds {
		result = append(result, w.clientsOfSeed(seed)...)
	}
	return result
}

// present are the objects of a drawn garden, in the order in which they come.
type present struct {
	kind   graph.Kind
	object runtime.Object
}

// drawSelfHosted draws a self-hosted Shoot, and the ControllerInstallation of its extension.
func drawSelfHosted(g gardengen.Gen, namespace, name string) []present {
	shoot, installation := g.ObjectNamed(relation.Shoot, namespace, name), g.ObjectNamed(relation.ControllerInstallation, "", extensionOf(name))
	mustJSON(merge(jsonOf(shoot), jsonMap{"spec": jsonMap{"provider": jsonMap{"workers": []any{jsonMap{"controlPlane": jsonMap{}}}}}}), shoot)
	mustJSON(merge(jsonOf(installation), jsonMap{"spec": jsonMap{"shootRef": jsonMap{"namespace": namespace, "name": name}}}), installation)
	return []present{{relation.Shoot, shoot}, {relation.ControllerInstallation, installation}}
}

// extensionOf is the name of the ControllerInstallation of a self-hosted Shoot's extension.
func extensionOf(shoot string) string { return map[string]string{"s": "x", "child": "s"}[shoot] }

// draw draws a garden: objects of all watched kinds, each name once. In most gardens both Shoots that have clients are self-hosted.
func draw(g gardengen.Gen, n int) (objects []present) {
	if g.IntN(4) > 0 {
		objects = drawSelfHosted(g, "garden-n", "s")
	}
	if g.IntN(4) > 0 {
		objects = append(objects, drawSelfHosted(g, wellknown.Garden, "child")...)
	}
	seen := map[graph.Vertex]bool{}
	for _, o := range objects {
		seen[relation.WatchOf(o.kind).Owner(o.object)] = true
	}
	for range n {
		watch := gardengen.One(g, relation.Watches)
		object := g.Object(watch.Kind)
		if owner := watch.Owner(object); !seen[owner] {
			seen[owner] = true
			objects = append(objects, present{watch.Kind, object})
		}
	}
	return objects
}

// TestPropertyOfUnseen: what a look-up finds is judged as it will be after its event, for any object, client and verb, whatever else has come
// before it and whatever comes after. For a client whose Seed has not come nothing is looked up but that Seed (T3-2), and for one whose self-hosted
// Shoot has not come nothing at all (SHI-3).
func TestPropertyOfUnseen(t *testing.T) {
	checked, allowed := 0, 0
	for seed := range property(1000) {
		g := gardengen.New(seed)
		objects := draw(g, 14)
		if len(objects) == 0 {
			continue
		}
		late := g.IntN(len(objects))
		w := newWorld(gardengen.Now)
		w.seeds.WriteOwned = g.IntN(2) == 0
		for i, o := range objects {
			if i != late {
				w.set(o.kind, o.object)
			}
		}
		kind, object := objects[late].kind, objects[late].object
		watch := relation.WatchOf(kind)
		self := watch.Owner(object)
		w.live.objects[watch.Resource.Resource+":"+self.Namespace+"/"+self.Name] = object
		known := w.known(self)
		before := decisions(w, watch, self, known)
		w.set(kind, object)
		after := decisions(w, watch, self, known)
		for question, got := range before {
			want := after[question]
			if checked++; want {
				allowed++
			}
			must.True(t, got == want,
				"seed %d: %s of %s: %v when it is looked up, %v after its event", seed, question, relation.Schema.String(self), got, want)
		}
	}
	expect.True(t, allowed >= checked/20, "only %d of %d are allowed: the gardens say little", allowed, checked)
}

// known are the clients for which an object is looked up.
func (w *world) known(v graph.Vertex) (clients []propertyClient) {
	for _, c := range w.propertyClients() {
		identified, counts := c.asks.identify(c.user)
		sink := identified.sink
		if c.asks == w.shoots && counts && sink != v || c.asks == w.seeds && (sink == v || c.asks.Graph.Check(sink, sink).Watched) {
			clients = append(clients, c)
		}
	}
	return clients
}

// decisions are what each client may do with an object.
func decisions(w *world, watch *relation.Watch, v graph.Vertex, clients []propertyClient) map[string]bool {
	result := map[string]bool{}
	for _, c := range clients {
		for _, verb := range []string{"get", "update", "delete"} {
			decision, _, _ := c.asks.Authorize(context.Background(), authorizer.AttributesRecord{
				User: c.user, Verb: verb, APIGroup: watch.Resource.Group, Resource: watch.Resource.Resource, Namespace: v.Namespace, Name: v.Name, ResourceRequest: true,
			})
			result[fmt.Sprint(verb, " by ", c.user.Name)] = decision == authorizer.DecisionAllow
		}
	}
	return result
}

var (
	propertyTimes = flag.Uint64("property-times", 1, "how many times as many gardens the properties draw")
	propertyFirst = flag.Uint64("property-first", 0, "the seed of the first garden")
)

// property yields the seeds of the gardens of a property.
func property(n uint64) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for seed := *propertyFirst; seed < *propertyFirst+n**propertyTimes && yield(seed); seed++ {
		}
	}
}
