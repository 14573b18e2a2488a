package targetcluster

import (
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
	if client.FilledIn(t.Context(), live, widget(map[string]any{"name": "x"})) {
		t.Error("without a definition")
	}
	client.definitions.mu.Lock()
	clear(client.definitions.byKind) // As if it had been read long ago.
	client.definitions.mu.Unlock()
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
				if got := client.FilledIn(t.Context(), live, widget(tc.spec)); got != tc.want {
					t.Errorf("%v: got %t", tc.spec, got)
				}
			}
		})
	}
	asking.Wait()
	if gets := s.count("get") - before; gets != 1 {
		t.Errorf("the definition was read %d times", gets)
	}
	core := widget(map[string]any{"size": int64(3)})
	core.SetGroupVersionKind(configMaps)
	if client.FilledIn(t.Context(), core, core) || s.count("get")-before != 1 {
		t.Error("a kind of Kubernetes' own has no definition")
	}
}
