package integration

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	decoding "github.com/espalier-project/espalier/internal/managedresource/decode"
	"github.com/espalier-project/espalier/internal/managedresource/merge"
	"github.com/espalier-project/espalier/internal/managedresource/plan"
	"github.com/espalier-project/espalier/internal/managedresource/schema"
	"github.com/espalier-project/espalier/test/env/harness"
	"github.com/espalier-project/espalier/test/expect"
)

// TestEqualMeansNoChange is the property that a write is left out exactly if it would change nothing (MR-26, MRB-8), held against a
// real API server: the objects are created from manifests of real shape, and then
//   - merging the manifest into what the API server made of it is Equal, whatever was filled in, and a PUT of it changes nothing;
//   - after random changes of the manifest, Equal means that a PUT leaves the resource version alone, and for Kubernetes' own
//     kinds unequal means that it does not; writes that change nothing all the same are counted and told. For custom resources
//     the same holds of what is equal once their definition has filled it in.
//
// It runs in the seed, where no controller changes what the test checks. -rapid.checks makes it longer.
func TestEqualMeansNoChange(t *testing.T) {
	t.Parallel()
	e := &equality{fixture: newFixture(t)}
	for _, file := range []string{"workloads", "core", "policy", "extension", "projects", "custom", "devices", "rare"} {
		e.create(filepath.Join("testdata", "equality", file+".yaml"))
	}
	for _, name := range []string{"web/web", "coredns/coredns", "widgets/widgets"} {
		e.create(filepath.Join("..", "..", "docs", "examples", filepath.FromSlash(name)+".yaml"))
	}
	for _, desired := range e.objects {
		e.checkAsCreated(desired)
	}
	if t.Failed() {
		return
	}
	rapid.Check(t, func(rt *rapid.T) {
		original := rapid.SampledFrom(e.objects).Draw(rt, "object")
		if definition := e.definitionOf(original.GroupVersionKind().GroupKind()); definition != nil {
			e.reset(rt, definition) // As it was changed before, it may keep its objects from being served.
		}
		e.reset(rt, original)
		for range 4 {
			changed := original.DeepCopy()
			live := e.get(rt, original)
			for range rapid.IntRange(1, 2).Draw(rt, "changes") {
				e.change(rt, changed.Object, live.Object)
			}
			e.checkPut(rt, e.plan(rt, decoding.Result{Objects: []decoding.Object{{Unstructured: changed}}})[0], live)
		}
	})
	t.Logf("%d writes, of which %d were left out (%d for what definitions fill in), %d were refused, %d changed something, and %d of Kubernetes' own kinds changed nothing (%.1f %%): %v",
		e.writes, e.equal, e.filledIn, e.refused, e.changed, e.needless, 100*float64(e.needless)/float64(max(1, e.changed+e.needless)), e.needlessAt)
	expect.True(t, e.stamped*100 <= e.equal,
		"%d writes of what is equal made a new version, %d did not", e.stamped, e.equal)
	expect.True(t, e.filledIn != 0, "no definition filled in anything")
	expect.True(t, e.needless*10 <= e.changed, "more than one needless write in ten")
}

type equality struct {
	*fixture
	objects []*plan.Desired

	writes, equal, refused, changed, needless, filledIn, stamped int
	needlessAt                                                   map[string]int
}

func (e *equality) options() merge.Options {
	return merge.Options{Origin: e.ns + "/equality"}
}

// create creates the objects of a file as the engine does. $NS is a namespace, and part of the names of what has none.
func (e *equality) create(file string) {
	e.Helper()
	text, err := os.ReadFile(file)
	e.must(err)
	manifests := strings.ReplaceAll(string(text), "$NS", e.ns)
	if strings.Contains(file, "examples") { // These are written for a cluster of their own.
		manifests = strings.NewReplacer("namespace: default", "namespace: "+e.ns, "namespace: kube-system", "namespace: "+e.ns,
			"name: example:coredns", "name: example:coredns-"+e.ns,
			"group: example.org", "group: "+e.ns+".widgets.example.org", "name: widgets.example.org", "name: widgets."+e.ns+".widgets.example.org",
			"apiVersion: example.org/v1", "apiVersion: "+e.ns+".widgets.example.org/v1").Replace(manifests)
	}
	decoded, err := decoding.Decode(e.ctx, []decoding.Source{{Data: map[string][]byte{"data.yaml": []byte(manifests)}}})
	if err != nil || len(decoded.Errors) > 0 {
		e.Fatalf("%s: %v, %v", file, err, decoded.Errors)
	}
	for _, desired := range e.plan(e, decoded) {
		if desired.Ref.Kind == "VolumeAttributesClass" && e.minor() < 34 { // It is not served before.
			continue
		}
		e.eventually(func() error { // A kind is served some moments after its definition.
			err := e.seed.Create(e.ctx, merge.ForCreation(desired, e.options()))
			if err != nil && !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
				e.Fatalf("%s: %v", desired.Name(), err)
			}
			return err
		})
		// The API server writes some objects anew at the first PUT, though nothing is sent that was not there.
		if _, err := e.put(e.get(e, desired)); err != nil && !apierrors.IsConflict(err) {
			e.Fatalf("%s: %v", desired.Name(), err)
		}
		e.objects = append(e.objects, desired)
	}
}

func (e *equality) plan(t tester, decoded decoding.Result) []*plan.Desired {
	t.Helper()
	plan := plan.NewPlan(decoded, nil, plan.Options{
		Spec: &resourcesv1alpha1.ManagedResourceSpec{}, ManagedByLabelValue: "gardener", Scope: e.scope,
	})
	if err := errors.Join(plan.Errors...); err != nil {
		t.Fatalf("%v", err)
	}
	return plan.Apply
}

func (e *equality) scope(kind runtimeschema.GroupVersionKind) (plan.Scope, error) {
	mapping, err := e.seed.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		return plan.ScopeUnknown, nil
	}
	if err != nil {
		return plan.ScopeUnknown, err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		return plan.ScopeNamespaced, nil
	}
	return plan.ScopeCluster, nil
}

type tester interface {
	Helper()
	Fatalf(string, ...any)
}

func (e *equality) get(t tester, desired *plan.Desired) *unstructured.Unstructured {
	t.Helper()
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(desired.GroupVersionKind())
	read := func() error { return e.seed.Get(context.Background(), client.ObjectKeyFromObject(desired), live) }
	err := read()
	if apierrors.IsNotFound(err) && e.definitionOf(live.GroupVersionKind().GroupKind()) != nil {
		err = harness.Poll(context.Background(), patience, read) // Its definition has just been put back.
	}
	if err != nil {
		t.Fatalf("%s: %v", desired.Name(), err)
	}
	return live
}

// definitionOf is the definition of a kind among the objects, if there is one.
func (e *equality) definitionOf(kind runtimeschema.GroupKind) *plan.Desired {
	for _, candidate := range e.objects {
		group, _, _ := unstructured.NestedString(candidate.Object, "spec", "group")
		name, _, _ := unstructured.NestedString(candidate.Object, "spec", "names", "kind")
		if candidate.GetKind() == "CustomResourceDefinition" && (runtimeschema.GroupKind{Group: group, Kind: name}) == kind {
			return candidate
		}
	}
	return nil
}

func (e *equality) put(merged *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	updated := merged.DeepCopy()
	return updated, e.seed.Update(context.Background(), updated)
}

// checkAsCreated is the first half of the property: what the API server made of a manifest needs no write.
func (e *equality) checkAsCreated(desired *plan.Desired) {
	for range 5 { // Only CRDs and the like are changed by somebody else here, and soon no more.
		live := e.get(e, desired)
		merged := merge.Merge(desired, live, e.options())
		updated, err := e.put(merged)
		if apierrors.IsConflict(err) {
			continue
		}
		if err != nil {
			e.Errorf("%s: %v", desired.Name(), err)
		} else if at := e.difference(live, merged); at != "" && !hasNull(desired) {
			e.Errorf("%s: differs from what was made of it at %s", desired.Name(), at)
		} else if content(updated) != content(live) {
			e.Errorf("%s: a PUT of what was there changed something:\n%s\n%s", desired.Name(), content(live), content(updated))
		}
		return
	}
	e.Errorf("%s: never at rest", desired.Name())
}

// hasNull reports whether a custom resource has a null, of which no definition says what becomes of it.
func hasNull(desired *plan.Desired) bool {
	_, known := schema.Of(desired.GroupVersionKind())
	return !known && strings.Contains(fmt.Sprint(desired.Object), "<nil>")
}

// reset makes an object be as its manifest says, so that each check stands for itself.
func (e *equality) reset(t tester, desired *plan.Desired) {
	for range 5 {
		live := e.get(t, desired)
		merged := merge.Merge(desired, live, e.options())
		if merge.Equal(live, merged) {
			return
		}
		_, err := e.put(merged)
		if err == nil || !apierrors.IsConflict(err) {
			return // What can't be taken back stays as it is: the property holds for any state.
		}
	}
}

// difference is what the engine finds: of a custom resource, once its definition has filled in what is left out.
func (e *equality) difference(live, merged *unstructured.Unstructured) string {
	at := merge.Difference(live, merged)
	if definition := e.definitionOf(live.GroupVersionKind().GroupKind()); definition != nil {
		filled := merged.DeepCopy()
		merge.NewCustomDefaults(definition.Unstructured, live.GroupVersionKind().Version).Fill(filled)
		if still := merge.Difference(live, filled); still == "" && at != "" {
			e.filledIn++
			return ""
		}
	}
	return at
}

// checkPut is the second half of the property.
func (e *equality) checkPut(t tester, desired *plan.Desired, live *unstructured.Unstructured) {
	for range 5 {
		merged := merge.Merge(desired, live, e.options())
		at := e.difference(live, merged)
		refusal := merge.CheckUpdate(live, merged)
		updated, err := e.put(merged)
		if apierrors.IsConflict(err) {
			live = e.get(t, desired)
			continue
		}
		e.writes++
		_, own := schema.Of(desired.GroupVersionKind())
		switch {
		case err != nil && at == "":
			t.Fatalf("%s: equal, but a PUT was refused: %v", desired.Name(), err)
		case err != nil:
			e.refused++
		case refusal != nil:
			t.Fatalf("%s: said to be refused, but it was not: %v", desired.Name(), refusal)
		case at == "" && content(updated) != content(live):
			t.Fatalf("%s: equal, but a PUT changed something:\n%s\n%s", desired.Name(), content(live), content(updated))
		case at == "" && updated.GetResourceVersion() != live.GetResourceVersion():
			e.stamped++
		case at == "":
			e.equal++
		case updated.GetResourceVersion() != live.GetResourceVersion():
			e.changed++
		case own:
			e.needless++
			if e.needlessAt == nil {
				e.needlessAt = map[string]int{}
			}
			e.needlessAt[desired.GetKind()+" "+at]++
		}
		return
	}
}

// content is all of an object but who wrote it when: a write that changes nothing else may be noted there, once in many thousand.
func content(object *unstructured.Unstructured) string {
	object = object.DeepCopy()
	object.SetResourceVersion("")
	object.SetManagedFields(nil)
	text, err := object.MarshalJSON()
	if err != nil {
		panic(err)
	}
	return string(text)
}

// change changes one place of a manifest: of those that it has, and those that the API server filled in.
func (e *equality) change(t *rapid.T, desired, live map[string]any) {
	kind, _ := schema.Of(runtimeschema.FromAPIVersionAndKind(desired["apiVersion"].(string), desired["kind"].(string)))
	node := &schema.Field{Type: kind}
	place, other := desired, live
	for depth := 0; ; depth++ {
		names := map[string]bool{}
		for name := range place {
			names[name] = true
		}
		for name := range other {
			names[name] = true
		}
		if node != nil && node.Kind == schema.Struct && depth > 0 && rapid.IntRange(0, 3).Draw(t, "any field") == 0 {
			for _, name := range node.Names() {
				names[name] = true
			}
		}
		for _, name := range []string{"apiVersion", "kind", "metadata", "status"} {
			if depth == 0 {
				delete(names, name)
			}
		}
		if len(names) == 0 {
			return
		}
		name := rapid.SampledFrom(slices.Sorted(maps.Keys(names))).Draw(t, "field")
		var next *schema.Field // None where no type knows it.
		if node != nil && node.Items() != nil {
			next = &schema.Field{Type: node.Items()}
		} else if node != nil {
			next = node.Field(name)
		}
		if child, otherChild, of := inside(place[name], other[name], next); child != nil && rapid.IntRange(0, 9).Draw(t, "further in") > 0 {
			place, other, node = child, otherChild, of
			continue
		}
		if value, keep := newValue(t, place[name], other[name], next); keep {
			place[name] = value
		} else {
			delete(place, name)
		}
		return
	}
}

// inside goes into a mapping, or into the first item of a list of mappings.
func inside(value, other any, of *schema.Field) (map[string]any, map[string]any, *schema.Field) {
	if list, ok := value.([]any); ok && len(list) > 0 {
		others, _ := other.([]any)
		value, other = list[0], any(nil)
		if len(others) > 0 {
			other = others[0]
		}
		if of != nil && of.Items() != nil {
			of = &schema.Field{Type: of.Items()}
		}
	}
	fields, _ := value.(map[string]any)
	others, _ := other.(map[string]any)
	return fields, others, of
}

// newValue is what a person, a template or a tool could write in place of a value: nothing, nothing in other words, what the API
// server filled in, the same spelt differently, or something else.
func newValue(t *rapid.T, value, other any, of *schema.Field) (any, bool) {
	kind := schema.Any
	if of != nil {
		kind = of.Kind
	}
	choices := []any{nil, map[string]any{}, []any{}}
	switch kind {
	case schema.String:
		choices = []any{nil, "", "x"}
	case schema.Bytes:
		choices = []any{nil, "eA=="}
	case schema.Bool:
		choices = []any{nil, true, false}
	case schema.Number:
		choices = []any{nil, int64(0), int64(1), int64(2), int64(443)}
	case schema.IntOrString:
		choices = []any{nil, int64(0), int64(1), "1", "50%", "http"}
	case schema.Quantity:
		choices = []any{nil, "0", "1", "1000m", "1k", int64(1), 0.5, "0.0001", "1Gi", "1024Mi", "1073741824"}
	case schema.Time:
		choices = []any{nil, "2026-01-01T00:00:00Z", "2026-01-01T01:00:00.000000+01:00"}
	case schema.Struct:
		choices = []any{nil, map[string]any{}}
	case schema.Map:
		choices = []any{nil, map[string]any{}}
	case schema.List:
		choices = []any{nil, []any{}}
	}
	if text, ok := value.(string); ok && kind != schema.Bytes {
		choices = append(choices, text+"0", strings.TrimSuffix(text, "0"), text+"m")
	}
	if other != nil {
		choices = append(choices, other, other)
	}
	if list, ok := value.([]any); ok && len(list) > 1 {
		reversed := slices.Clone(list)
		slices.Reverse(reversed)
		choices = append(choices, reversed, list[1:])
	}
	i := rapid.IntRange(-2, len(choices)-1).Draw(t, "value")
	if i < 0 {
		return nil, false
	}
	return runtime.DeepCopyJSONValue(choices[i]), true
}
