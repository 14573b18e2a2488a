package garden

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/internal/relation"
	"github.com/espalier-project/espalier/internal/restriction"
	"github.com/espalier-project/espalier/test/gardengen"
)

// TestLawOfOwnHand: a client writes whatever it may write, with any content, and reaches nothing afterwards that it did not reach before,
// but over the edges that ownHand lists.
func TestLawOfOwnHand(t *testing.T) {
	for name, checked := range map[string]bool{"Trusted": false, "Checked": true} {
		t.Run("references "+name, func(t *testing.T) {
			used, written := map[graph.Kind]map[string]bool{relation.Seed: {}, relation.Shoot: {}}, 0
			for seed := range law(150) {
				g := gardengen.New(seed)
				objects := draw(g, 14)
				w := newWorld(gardengen.Now)
				w.populate(objects)
				for _, c := range w.lawClients() {
					written += w.write(t, seed, g, c, objects, checked, used)
				}
			}
			t.Logf("%d writes", written)
			if *lawTimes < 50 {
				return // Too few to say that nothing is reached over an edge.
			}
			for sink, rows := range ownHand {
				for row, self := range rows {
					if !used[sink][row] && (!checked || !self.closed) {
						t.Errorf("nothing that leads to a %s was reached over %s: it does not belong on the list", relation.Schema.Names[sink], row)
					}
				}
			}
		})
	}
}

func (w *world) populate(objects []present) {
	for _, state := range []*relation.State{w.seedState, w.shootState} {
		for namespace, project := range projects {
			state.SetNamespace(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: map[string]string{"project.gardener.cloud/name": project}}})
		}
	}
	for _, o := range objects {
		w.set(o.kind, o.object)
	}
}

var projects = map[string]string{"garden-n": "p", "n": "q"}

// write lets a client write one object of each kind, and returns how many it could.
func (w *world) write(t *testing.T, seed uint64, g gardengen.Gen, c lawClient, objects []present, checked bool, all map[graph.Kind]map[string]bool) (written int) {
	state, table, who, a := w.seedState, relation.Watches, c.user, c.asks
	if a == w.shoots {
		state, table = w.shootState, relation.SelfHosted
	}
	client, ok := a.table.identify(who.Name, who.Groups)
	if !ok {
		t.Fatalf("%s is no client", who.Name)
	}
	sink := client.sink
	list, used := ownHand[sink.Kind], all[sink.Kind]
	before := reached(state.Graph, sink)
	for _, watch := range table {
		object := g.Object(watch.Kind)
		self := watch.Owner(object)
		old := find(objects, watch, self)
		if !w.mayWrite(t, a, who, watch, self, object, old, objects, checked) {
			continue
		}
		written++
		// What the listed edges give is left out; the rest must give nothing.
		listed := slices.DeleteFunc(slices.Collect(maps.Keys(list)), func(row string) bool { return checked && list[row].closed })
		for _, row := range append([]string{""}, listed...) {
			if row != "" && (used[row] || !watch.Has(row)) {
				continue
			}
			without := slices.DeleteFunc(slices.Clone(listed), func(other string) bool { return other == row })
			set := func(watch *relation.Watch, object runtime.Object) { state.Set(watch.Without(without...), object) }
			set(watch, object)
			if watch.Kind == relation.Seed {
				dependents(objects, set)
			}
			for v := range reached(state.Graph, sink) {
				switch {
				case before[v] || v == self || v == sink:
				case row != "":
					used[row] = true
				default:
					t.Fatalf("seed %d, %s writes %s: it reaches %s now\n%s", seed, who.Name, relation.Schema.String(self), relation.Schema.String(v), rowsOf(state, watch, object, v, sink))
				}
			}
		}
		if old != nil {
			state.Set(watch, old)
		} else {
			state.Delete(watch, self.Namespace, self.Name)
		}
		if watch.Kind == relation.Seed {
			dependents(objects, state.Set)
		}
	}
	return written
}

// dependents sets what depends on Seeds.
func dependents(objects []present, set func(*relation.Watch, runtime.Object)) {
	for _, o := range objects {
		if o.kind == relation.ManagedSeed || o.kind == relation.Gardenlet {
			set(relation.WatchOf(o.kind), o.object)
		}
	}
}

// rowsOf names the rows of an object without which a vertex is not reached.
func rowsOf(state *relation.State, watch *relation.Watch, object runtime.Object, v, sink graph.Vertex) string {
	var result []string
	for _, row := range watch.Rows {
		state.Set(watch.Without(row.ID), object)
		if !state.Graph.Check(v, sink).Reached {
			result = append(result, row.ID)
		}
	}
	return "over " + strings.Join(result, ", ")
}

func find(objects []present, watch *relation.Watch, self graph.Vertex) runtime.Object {
	for _, o := range objects {
		if o.kind == watch.Kind && watch.Owner(o.object) == self {
			return o.object
		}
	}
	return nil
}

func reached(g *graph.Graph, sink graph.Vertex) map[graph.Vertex]bool {
	result := map[graph.Vertex]bool{}
	for _, v := range universe {
		if g.Check(v, sink).Reached {
			result[v] = true
		}
	}
	return result
}

var universe = gardengen.Universe()

// mayWrite says whether authorizer and restriction let a client write an object; what it may write of it counts as all of it.
func (w *world) mayWrite(t *testing.T, a *Authorizer, who *user.DefaultInfo, watch *relation.Watch, self graph.Vertex, object, old runtime.Object, objects []present, checked bool) bool {
	t.Helper()
	may := func(verb, subresource, name string) bool {
		decision, _, err := a.Authorize(context.Background(), authorizer.AttributesRecord{
			User: who, Verb: verb, APIGroup: watch.Resource.Group, Resource: watch.Resource.Resource, Subresource: subresource, Namespace: self.Namespace, Name: name, ResourceRequest: true,
		})
		return err == nil && decision == authorizer.DecisionAllow
	}
	operation := admissionv1.Create
	switch {
	case old != nil && (may("update", "", self.Name) || may("patch", "", self.Name) || may("update", "status", self.Name)):
		operation = admissionv1.Update
		keepUID(t, object, old)
	case old != nil || !may("create", "", ""):
		return false
	}
	raw, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	r := &admissionv1.AdmissionRequest{
		UserInfo: authenticationv1.UserInfo{Username: who.Name, Groups: who.Groups}, Operation: operation, Namespace: self.Namespace, Name: self.Name,
		Resource: metav1.GroupVersionResource(watch.Resource), Object: runtime.RawExtension{Raw: raw},
	}
	if old != nil {
		if r.OldObject.Raw, err = json.Marshal(old); err != nil {
			t.Fatal(err)
		}
	}
	h := &restriction.Handler{Reader: reader{objects}, Graph: w.seedState.Graph, Checked: checked, Clock: clocktesting.NewFakePassiveClock(gardengen.Now), Log: logr.Discard()}
	err = h.Decide(context.Background(), r)
	if a == w.shoots {
		err = restriction.SelfHosted{Handler: h}.Decide(context.Background(), r)
	}
	// What is not registered is not asked about.
	return err == nil || operation == admissionv1.Update && strings.HasPrefix(err.Error(), "unexpected ")
}

func keepUID(t *testing.T, object, old runtime.Object) {
	t.Helper()
	accessor, err := meta.Accessor(old)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": accessor.GetUID()}})
	if err == nil {
		err = json.Unmarshal(raw, object)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// reader reads a drawn garden.
type reader struct{ objects []present }

func (r reader) find(resource schema.GroupVersionResource, namespace, name string) (runtime.Object, error) {
	if resource.Resource == "namespaces" {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"project.gardener.cloud/name": projects[name]}}}, nil
	}
	for _, watch := range relation.Watches {
		if watch.Resource.GroupResource() != resource.GroupResource() {
			continue
		}
		if object := find(r.objects, watch, graph.Vertex{Kind: watch.Kind, Namespace: namespace, Name: name}); object != nil {
			return object, nil
		}
	}
	return nil, apierrors.NewNotFound(resource.GroupResource(), name)
}

func (r reader) GetRaw(_ context.Context, resource schema.GroupVersionResource, namespace, name string) ([]byte, error) {
	object, err := r.find(resource, namespace, name)
	if err != nil {
		return nil, err
	}
	return json.Marshal(object)
}

func (r reader) Get(ctx context.Context, resource schema.GroupVersionResource, namespace, name string, into runtime.Object) error {
	raw, err := r.GetRaw(ctx, resource, namespace, name)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, into)
}

func (r reader) Exists(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) (bool, error) {
	_, err := r.GetRaw(ctx, resource, namespace, name)
	return err == nil, nil
}

// selfGiven is why a client may reach something over an edge that it writes itself.
type selfGiven struct {
	// closed says that references Checked closes it for clients of seeds.
	closed bool
	reason string
}

const (
	needed    = "today's gardenlets name their credentials themselves, and must read them"
	byName    = "it follows from the object's own name, and nobody chooses it"
	shootSpec = "today's gardenlets change specs of their Shoots in maintenance; what a Shoot names is in its own namespace or public"
	immutable = "the garden's API lets nobody change the field"

	generated    = "the generated Secret is in the status, which the gardenlet writes"
	bucketName   = immutable + "; the creation is judged by the bucket (RES-13, RES-14)"
	registration = immutable + ", and everybody may read ControllerRegistrations"
	deployment   = "today's gardenlets write the status only, but the rule cannot tell: of a foreign ControllerDeployment they could read the Secrets"
)

// ownHand are the edges by which clients of seeds and of self-hosted shoots give themselves rights, reviewed one by one; nothing else may.
var ownHand = map[graph.Kind]map[string]selfGiven{
	relation.Seed: {
		"GE-1":   {true, needed},
		"GE-3":   {true, generated},
		"GE-5":   {false, bucketName},
		"GE-14":  {false, registration},
		"GE-16":  {false, deployment},
		"GE-21":  {true, needed},
		"GE-22":  {false, byName + "; its own Seed's certificate decides, which the client may call expired"},
		"GE-23":  {true, needed},
		"GE-26":  {true, needed},
		"GE-28":  {true, needed},
		"GE-29":  {false, byName},
		"GE-30":  {false, byName},
		"GE-31":  {false, byName},
		"GE-33":  {true, "the parent's gardenlet reads the token of the bootstrap ServiceAccount that it made"},
		"GE-34":  {false, byName},
		"GE-35":  {false, byName},
		"GE-36":  {false, "it is the same for every Seed"},
		"GE-37":  {true, needed},
		"GE-38":  {true, needed},
		"GE-39":  {true, needed},
		"GE-40":  {true, needed},
		"GE-41":  {true, needed},
		"GE-41a": {true, needed},
		"GE-43":  {false, shootSpec},
		"GE-44":  {false, shootSpec},
		"GE-45":  {false, shootSpec},
		"GE-48":  {false, shootSpec},
		"GE-49":  {false, shootSpec},
		"GE-50":  {false, shootSpec},
		"GE-51":  {false, shootSpec},
		"GE-52":  {false, shootSpec},
		"GE-57":  {false, byName},
	},
	relation.Shoot: {
		"GE-1":  {false, needed},
		"GE-3":  {false, generated},
		"GE-5":  {false, bucketName},
		"GE-14": {false, registration},
		"GE-16": {false, deployment},
		"GE-43": {false, shootSpec},
		"GE-44": {false, shootSpec},
		"GE-45": {false, shootSpec},
		"GE-48": {false, shootSpec},
		"GE-49": {false, shootSpec},
		"GE-50": {false, shootSpec},
		"GE-51": {false, shootSpec},
		"GE-52": {false, shootSpec},
		"GE-57": {false, byName},
		"SHG-4": {false, byName},
	},
}
