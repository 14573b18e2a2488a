package rules

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/espalier-project/espalier/internal/externalapi/wellknown"
	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
	"github.com/espalier-project/espalier/internal/seedauthorizer/restriction"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/gen/gardengen"
)

// TestPropertyOfOwnHand: an identity of a cluster writes whatever authorizers and restrictions let it write, with any content, in any part of an
// object. Afterwards no identity of the cluster reaches in either graph what none of them reached before, except over the edges that ownHand
// lists. A self-hosted shoot and the seed that a ManagedSeed makes of it are one cluster.
func TestPropertyOfOwnHand(t *testing.T) {
	for name, checked := range map[string]bool{"Trusted": false, "Checked": true} {
		t.Run("references "+name, func(t *testing.T) {
			l := &ownHandProperty{t: t, checked: checked, used: map[string]bool{}, writes: map[string]int{}}
			for seed := range property(60) {
				l.seed, l.g = seed, gardengen.New(seed)
				l.objects = drawCluster(l.g)
				l.world = newWorld(gardengen.Now)
				l.populate(l.objects)
				for _, c := range l.clusters() {
					c.before = c.reached()
					for _, who := range c.clients {
						l.writeAll(c, who)
					}
				}
			}
			t.Logf("%v", l.writes)
			for _, part := range parts {
				expect.True(t, l.writes[part] != 0, "no %s was written", part)
			}
			if *propertyTimes < 50 {
				return // Too few to say that nothing is reached over an edge.
			}
			for row, e := range ownHand {
				if !l.used[row] && (!checked || !e.trusted) {
					t.Errorf("nothing was reached over %s: it does not belong on the list", row)
				}
			}
		})
	}
}

// drawCluster draws a garden. In every other one the self-hosted shoot garden/child is the seed child.
func drawCluster(g gardengen.Gen) []present {
	var first []present
	if g.IntN(2) == 0 {
		m := g.ObjectNamed(relation.ManagedSeed, wellknown.Garden, "child")
		mustJSON(merge(jsonOf(m), jsonMap{"spec": jsonMap{"shoot": jsonMap{"name": "child"}}}), m)
		first = append(drawSelfHosted(g, wellknown.Garden, "child"), present{relation.ManagedSeed, m}, present{relation.Seed, g.ObjectNamed(relation.Seed, "", "child")})
	}
	for _, o := range draw(g, 14) {
		watch := relation.WatchOf(o.kind)
		if find(first, watch, watch.Owner(o.object)) == nil {
			first = append(first, o)
		}
	}
	return first
}

// ownHandProperty is a run of the property, with the garden that it is at.
type ownHandProperty struct {
	t       *testing.T
	checked bool
	used    map[string]bool
	writes  map[string]int

	*world
	seed    uint64
	g       gardengen.Gen
	objects []present
}

// cluster is one or more seeds and self-hosted shoots that are the same cluster.
type cluster struct {
	sinks   []sink
	clients []propertyClient
	// before is what the cluster reaches before one of its identities writes; each write is taken back.
	before map[graph.Vertex]bool
}

// sink is a Seed or Shoot with the graph whose goal it is.
type sink struct {
	in *graph.Graph
	at graph.Vertex
}

// clusters returns the clusters of the garden.
func (l *ownHandProperty) clusters() []*cluster {
	var result []*cluster
	seeds := map[string]*cluster{}
	for _, seed := range gardengen.Seeds {
		c := &cluster{sinks: []sink{{l.seedState.Graph, relation.SeedVertex(seed)}}, clients: l.clientsOfSeed(seed)}
		seeds[seed], result = c, append(result, c)
	}
	for _, shoot := range []graph.Vertex{{Kind: relation.Shoot, Namespace: "garden-n", Name: "s"}, {Kind: relation.Shoot, Namespace: wellknown.Garden, Name: "child"}} {
		c := &cluster{sinks: []sink{{l.shootState.Graph, shoot}}, clients: l.clientsOfShoot(shoot)}
		for seed, other := range seeds {
			if l.shootState.Graph.Check(relation.SeedVertex(seed), shoot).Reached {
				c.sinks, c.clients = append(c.sinks, other.sinks...), append(c.clients, other.clients...)
				result = slices.DeleteFunc(result, func(one *cluster) bool { return one == other })
			}
		}
		result = append(result, c)
	}
	return result
}

// reached is what a cluster reaches: true if its identities also write it under writeScope Owned.
func (c *cluster) reached() map[graph.Vertex]bool {
	result := map[graph.Vertex]bool{}
	for _, s := range c.sinks {
		for _, v := range universe {
			if checked := s.in.CheckManaged(v, s.at); checked.Reached {
				result[v] = result[v] || checked.Managed || s.at.Kind == relation.Shoot // There is no writeScope for shoots.
			}
		}
	}
	return result
}

var universe = gardengen.Universe()

// byOwnName reports whether an object is the cluster's by the cluster's own name, which nobody chooses.
func (c *cluster) byOwnName(v graph.Vertex) bool {
	return slices.ContainsFunc(c.sinks, func(s sink) bool {
		own := s.at.Name
		if s.at.Kind == relation.Seed {
			return slices.Contains([]graph.Vertex{
				{Kind: relation.Namespace, Name: wellknown.SeedNamespace(own)}, {Kind: relation.Lease, Namespace: wellknown.SeedLease, Name: own},
				{Kind: relation.ConfigMap, Namespace: wellknown.KubeSystem, Name: wellknown.ClusterIdentity},
				{Kind: relation.Secret, Namespace: wellknown.KubeSystem, Name: wellknown.BootstrapTokenSecret(wellknown.Garden, own)}, // GE-22
			}, v)
		}
		q := &request{client: client{Namespace: s.at.Namespace, Shoot: own}, namespace: v.Namespace, name: v.Name}
		return q.belongsByName(v.Kind) || v == graph.Vertex{Kind: relation.Namespace, Name: s.at.Namespace}
	})
}

// parts of an object that are written alone.
const (
	created = "creation"
	updated = "update"
	status  = "status"
)

var parts = []string{created, updated, status}

// writeAll lets a client write an object of each kind, in each part.
func (l *ownHandProperty) writeAll(c *cluster, who propertyClient) {
	for _, watch := range relation.Watches {
		drawn := l.g.Object(watch.Kind)
		var present []runtime.Object
		for _, o := range l.objects {
			if o.kind == watch.Kind {
				present = append(present, o.object)
			}
		}
		if len(present) > 0 && l.g.IntN(2) == 0 {
			self := watch.Owner(gardengen.One(l.g, present))
			drawn = l.g.ObjectNamed(watch.Kind, self.Namespace, self.Name)
		}
		old := find(l.objects, watch, watch.Owner(drawn))
		for _, part := range parts {
			if (part == created) == (old == nil) {
				l.write(c, who, watch, part, old, drawn)
			}
		}
	}
}

// write lets a client write a part of an object if it may.
func (l *ownHandProperty) write(c *cluster, who propertyClient, watch *relation.Watch, part string, old, drawn runtime.Object) {
	l.t.Helper()
	object := watch.New()
	mustJSON(written(part, old, drawn), object)
	self := watch.Owner(object)
	if !l.may(who, watch, self, part) || l.judge(who, watch, self, part, old, object) != nil {
		return
	}
	l.writes[part]++
	excused := slices.DeleteFunc(slices.Collect(maps.Keys(ownHand)), func(row string) bool { return !ownHand[row].excuses(who, part, watch, l.checked) })
	for _, row := range append([]string{""}, excused...) {
		if row != "" && (l.used[row] || !watch.Has(row) && !hasSelfHosted(watch.Kind, row)) {
			continue
		}
		l.see(watch.Kind, object, slices.DeleteFunc(slices.Clone(excused), func(other string) bool { return other == row }))
		for v, managed := range c.reached() {
			had, reachedBefore := c.before[v]
			switch {
			case reachedBefore && (had || !managed) || v == self || slices.ContainsFunc(c.sinks, func(s sink) bool { return s.at == v }) || c.byOwnName(v):
			case row != "":
				l.used[row] = true
			default:
				l.t.Fatalf("garden %d, %s, %s of %s: %s is reached now (managed %v), by %v\nbefore: %s\nafter: %s", l.seed, who.user.Name, part, relation.Schema.String(self),
					relation.Schema.String(v), managed, l.rowsTo(c, watch.Kind, object, v, excused), jsonText(old), jsonText(object))
			}
		}
	}
	l.forget(watch, old, self)
}

// see lets both graphs see an object without some rows.
func (l *ownHandProperty) see(kind graph.Kind, object runtime.Object, without []string) {
	set := func(kind graph.Kind, object runtime.Object) {
		for state, watch := range map[*relation.State]*relation.Watch{l.seedState: relation.Watches.Of(kind), l.shootState: relation.SelfHosted.Of(kind)} {
			if watch != nil {
				state.Set(watch.Without(without...), object)
			}
		}
	}
	set(kind, object)
	if kind == relation.Seed {
		l.dependents(set)
	}
}

// forget restores the object as it was.
func (l *ownHandProperty) forget(watch *relation.Watch, old runtime.Object, self graph.Vertex) {
	if old != nil {
		l.set(watch.Kind, old)
	} else {
		for state, watch := range map[*relation.State]*relation.Watch{l.seedState: watch, l.shootState: relation.SelfHosted.Of(watch.Kind)} {
			if watch != nil {
				state.Delete(watch, self.Namespace, self.Name)
			}
		}
	}
	if watch.Kind == relation.Seed {
		l.dependents(l.set)
	}
}

// dependents sets what depends on Seeds.
func (l *ownHandProperty) dependents(set func(graph.Kind, runtime.Object)) {
	for _, o := range l.objects {
		if o.kind == relation.ManagedSeed || o.kind == relation.Gardenlet {
			set(o.kind, o.object)
		}
	}
}

// rowsTo names the rows of an object without which a vertex is not reached.
func (l *ownHandProperty) rowsTo(c *cluster, kind graph.Kind, object runtime.Object, v graph.Vertex, excused []string) (result []string) {
	for _, table := range []relation.Table{relation.Watches, relation.SelfHosted} {
		if watch := table.Of(kind); watch != nil {
			for _, row := range watch.Rows {
				l.see(kind, object, append(slices.Clone(excused), row.ID))
				if _, found := c.reached()[v]; !found {
					result = append(result, row.ID)
				}
			}
		}
	}
	return result
}

func hasSelfHosted(kind graph.Kind, row string) bool {
	watch := relation.SelfHosted.Of(kind)
	return watch != nil && watch.Has(row)
}

// may reports whether the client's authorizer lets it write a part of an object.
func (l *ownHandProperty) may(who propertyClient, watch *relation.Watch, self graph.Vertex, part string) bool {
	verbs, subresource, name := []string{"update", "patch"}, "", self.Name
	switch part {
	case created:
		verbs, name = []string{"create"}, ""
	case status:
		subresource = "status"
	}
	return slices.ContainsFunc(verbs, func(verb string) bool {
		decision, _, err := who.asks.Authorize(context.Background(), authorizer.AttributesRecord{
			User: who.user, Verb: verb, APIGroup: watch.Resource.Group, Resource: watch.Resource.Resource, Subresource: subresource, Namespace: self.Namespace, Name: name, ResourceRequest: true,
		})
		return err == nil && decision == authorizer.DecisionAllow
	})
}

// judge asks the restriction that the client's requests are sent to, if its registration has them.
func (l *ownHandProperty) judge(who propertyClient, watch *relation.Watch, self graph.Vertex, part string, old, object runtime.Object) error {
	h := &restriction.Handler{
		Reader: reader{l.objects}, Graph: l.seedState.Graph, Shoots: l.shootState.Graph, Checked: l.checked, Clock: clocktesting.NewFakePassiveClock(gardengen.Now), Log: logr.Discard(),
	}
	decide, registration := h.Decide, restriction.SeedRegistration()
	if who.asks == l.shoots {
		decide, registration = restriction.SelfHosted{Handler: h}.Decide, restriction.ShootRegistration()
	}
	r := &admissionv1.AdmissionRequest{
		UserInfo: authenticationv1.UserInfo{Username: who.user.Name, Groups: who.user.Groups}, Operation: admissionv1.Create, Namespace: self.Namespace, Name: self.Name,
		Resource: metav1.GroupVersionResource(watch.Resource), Object: runtime.RawExtension{Raw: []byte(jsonText(object))},
	}
	resource := watch.Resource.Resource
	if part != created {
		r.Operation, r.OldObject.Raw = admissionv1.Update, []byte(jsonText(old))
	}
	if part == status {
		r.SubResource = status
		resource += "/" + status
	}
	for _, rule := range registration.Rules {
		if slices.Contains(rule.APIGroups, watch.Resource.Group) && slices.Contains(rule.Resources, resource) && slices.Contains(rule.Operations, admissionregistrationv1.OperationType(r.Operation)) {
			return decide(context.Background(), r)
		}
	}
	return nil
}

// written is what the garden's API stores when a client writes a part of an object: an update keeps the status, a write of the status all
// else but labels, annotations and owners, a creation has no status.
func written(part string, old, drawn runtime.Object) jsonMap {
	result := jsonOf(drawn)
	switch part {
	case created:
		delete(result, "status")
	case updated:
		before := jsonOf(old)
		delete(result, "status")
		if before["status"] != nil {
			result["status"] = before["status"]
		}
		merge(result, jsonMap{"metadata": jsonMap{"uid": textAt(before, "metadata.uid")}})
	case status:
		before := jsonOf(old)
		merge(before, jsonMap{"metadata": jsonMap{"annotations": first(values(result, "metadata.annotations")), "ownerReferences": result["metadata"].(jsonMap)["ownerReferences"]}})
		before["status"] = result["status"]
		result = before
	}
	return result
}

type jsonMap = map[string]any

// first returns the first of some values, nil for none.
func first(all []any) any {
	if len(all) == 0 {
		return nil
	}
	return all[0]
}

func merge(into, from jsonMap) jsonMap {
	for key, value := range from {
		if inner, is := value.(jsonMap); is {
			if _, is := into[key].(jsonMap); !is {
				into[key] = jsonMap{}
			}
			merge(into[key].(jsonMap), inner)
		} else {
			into[key] = value
		}
	}
	return into
}

func jsonOf(object runtime.Object) jsonMap {
	result := jsonMap{}
	if err := json.Unmarshal([]byte(jsonText(object)), &result); err != nil {
		panic(err) // It was just made.
	}
	return result
}

func jsonText(object any) string {
	raw, err := json.Marshal(object)
	if err != nil {
		panic(err) // Objects of the garden can be marshalled.
	}
	return string(raw)
}

func mustJSON(from jsonMap, into runtime.Object) {
	if err := json.Unmarshal([]byte(jsonText(from)), into); err != nil {
		panic(err) // It has the same fields.
	}
}

func (w *world) clientsOfSeed(seed string) []propertyClient {
	return []propertyClient{
		{&user.DefaultInfo{Name: wellknown.SeedUserPrefix + seed, Groups: []string{wellknown.SeedsGroup}}, w.seeds},
		{&user.DefaultInfo{Name: "system:serviceaccount:seed-" + seed + ":extension-x", Groups: []string{"system:serviceaccounts", "system:serviceaccounts:seed-" + seed}}, w.seeds},
	}
}

func (w *world) clientsOfShoot(shoot graph.Vertex) []propertyClient {
	return []propertyClient{
		{&user.DefaultInfo{Name: wellknown.ShootUserPrefix + shoot.Namespace + ":" + shoot.Name, Groups: []string{wellknown.ShootsGroup}}, w.shoots},
		{&user.DefaultInfo{Name: gardenadmPrefix + shoot.Namespace + ":" + shoot.Name, Groups: []string{wellknown.ShootsGroup}}, w.shoots},
		{&user.DefaultInfo{
			Name:   "system:serviceaccount:" + shoot.Namespace + ":extension-shoot--" + shoot.Name + "--" + extensionOf(shoot.Name),
			Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + shoot.Namespace},
		}, w.shoots},
	}
}

const gardenadmPrefix = "gardener.cloud:gardenadm:shoot:"
