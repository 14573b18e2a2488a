package target

import (
	"strconv"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/test/expect"
)

// TestFilledIn holds that what a CustomResourceDefinition fills in needs no write, that it is read once for many objects, and that
// what is not known fills in nothing.
func TestFilledIn(t *testing.T) {
	s, client := newServer(t)
	s.serve(definitionKind, "customresourcedefinitions", false)
	widget := func(spec map[string]any) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"namespace": "n", "name": "w"}, "spec": spec}}
		o.SetGroupVersionKind(widgets)
		return o
	}
	live := widget(map[string]any{"size": int64(3), "name": "x"})
	expect.False(t, client.FilledIn(t.Context(), live, widget(map[string]any{"name": "x"})), "without a definition")
	client.mappings.mu.Lock()
	clear(client.mappings.definitions.byKind) // As if it had been read long ago.
	client.mappings.mu.Unlock()
	s.put(definitionKind, "", "widgets.example.com", map[string]any{"spec": map[string]any{"versions": []any{map[string]any{"name": "v1", "storage": true,
		"schema": map[string]any{"openAPIV3Schema": map[string]any{"properties": map[string]any{"spec": map[string]any{"properties": map[string]any{
			"size": map[string]any{"default": int64(3)}}}}}}}}}})
	before := s.count("get")
	var asking sync.WaitGroup
	for range 20 {
		asking.Go(func() {
			for _, tc := range []struct {
				spec map[string]any
				want bool
			}{
				{map[string]any{"name": "x"}, true}, {map[string]any{"name": "y"}, false},
				{map[string]any{"name": "x", "size": int64(4)}, false}, {map[string]any{"name": "x", "more": "z"}, false},
			} {
				expect.Equal(t, client.FilledIn(t.Context(), live, widget(tc.spec)), tc.want, "%v", tc.spec)
			}
		})
	}
	asking.Wait()
	gets := s.count("get") - before
	expect.Equal(t, gets, 1, "the definition was read %d times", gets)
	core := widget(map[string]any{"size": int64(3)})
	core.SetGroupVersionKind(configMaps)
	expect.True(t, !client.FilledIn(t.Context(), core, core) && s.count("get")-before == 1,
		"a kind of Kubernetes' own has no definition")
}

// MRB-8: a definition that is seen in another form marks objects of its kind as out of sync of which the API server kept only a part: at once, and
// again after the time that API servers may take to learn of it. Other kinds, and other changes of the definition, are no reason.
func TestAnotherDefinition(t *testing.T) {
	s, client := newServer(t)
	s.serve(definitionKind, "customresourcedefinitions", false)
	l := objects.New()
	w := started(t, client, l)
	timers := make(chan func(), 10)
	w.after = func(_ time.Duration, do func()) { timers <- do }
	run(t, w)
	define := func(generation int64, label string) {
		s.mu.Lock()
		version := strconv.Itoa(s.version + 1)
		s.mu.Unlock()
		s.put(definitionKind, "", "widgets.example.com", map[string]any{
			"metadata": map[string]any{"name": "widgets.example.com", "resourceVersion": version, "generation": generation, "uid": "d", "labels": map[string]any{"managed": "yes", "theirs": label}},
			"spec":     map[string]any{"group": widgets.Group, "names": map[string]any{"kind": widgets.Kind}}})
	}
	define(1, "a")
	definition, partial, whole, other := refTo(definitionKind, "", "widgets.example.com"), refTo(widgets, "n", "partly"), refTo(widgets, "n", "whole"), refTo(configMaps, "n", "other")
	w.Track(owner, []objects.Ref{definition})
	eventually(t, "the definition is covered", func() bool { return w.Covered(definition) })
	l.Track(owner, []objects.Ref{definition, partial, whole, other})
	again := time.Now().Add(time.Hour)
	verified := func(ref objects.Ref, again time.Time) {
		l.MarkInSync(owner, objects.Observation{ID: ref.ID, UID: "u", ResourceVersion: "1", RetryPartial: again})
	}
	for _, ref := range []objects.Ref{partial, other} {
		verified(ref, again)
	}
	verified(whole, time.Time{})
	tried := func() bool { return l.Get(partial.ID).RetryPartial }
	timer := func() func() {
		eventually(t, "a timer is set", func() bool { return len(timers) > 0 })
		return <-timers
	}
	timer() // It was new to us.

	version := l.Get(definition.ID).ResourceVersion
	define(1, "b")
	eventually(t, "the label is seen", func() bool { return l.Get(definition.ID).ResourceVersion != version })
	expect.False(t, tried(), "a label of the definition is no reason")
	define(2, "b")
	eventually(t, "the object is out of sync", tried)
	verified(partial, again) // It was written, and the field dropped, as the definition is not known everywhere.
	timer()()
	expect.True(t, tried(), "it is not out of sync once more")
	expect.True(t, !l.Get(whole.ID).OutOfSync && !l.Get(other.ID).OutOfSync && len(timers) == 0,
		"objects are out of sync that the definition does not concern")
}
