package target

import (
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-project/espalier/internal/apply"
	"github.com/espalier-project/espalier/internal/ledger"
)

func autoscaler(uid, apiVersion, kind, name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"scaleTargetRef": map[string]any{"apiVersion": apiVersion, "kind": kind, "name": name}}}}
	object.SetGroupVersionKind(autoscalerKind)
	object.SetNamespace("ns")
	object.SetName(uid)
	object.SetUID(types.UID(uid))
	return object
}

func TestAutoscalers(t *testing.T) {
	a := newAutoscalers(NewWatches(nil, ledger.New(), WatchOptions{Log: logr.Discard()}))
	scales := func(group string) bool {
		return a.Scales(apply.NewEquivalences(nil).Keys(apply.Key{Group: group, Kind: "Deployment", Namespace: "ns", Name: "d"}))
	}
	steps := []struct {
		name string
		do   func() error
		want bool
	}{
		{"MR-20 none", func() error { return nil }, false},
		{"MRB-12/MRV-60 a malformed one", func() error { return a.Add(autoscaler("bad", "a/b/c", "Deployment", "d")) }, false},
		{"MR-21/MRD-16/MRV-50 by an equivalent group", func() error { return a.Add(autoscaler("one", "extensions/v1beta1", "Deployment", "d")) }, true},
		{"MR-20 a second one", func() error { return a.Add(autoscaler("two", "apps/v1", "Deployment", "d")) }, true},
		{"MR-20 one goes", func() error { return a.Delete(autoscaler("one", "extensions/v1beta1", "Deployment", "d")) }, true},
		{"MR-20 the other turns away", func() error { return a.Update(autoscaler("two", "apps/v1", "Deployment", "other")) }, false},
		{"MR-20 a complete list", func() error { return a.Replace([]any{autoscaler("three", "apps/v1", "Deployment", "d")}, "1") }, true},
		{"MR-20 a complete list of none", func() error { return a.Replace(nil, "1") }, false},
	}
	for _, s := range steps {
		if err := s.do(); err != nil {
			t.Fatal(err)
		}
		if got := scales("apps"); got != s.want {
			t.Errorf("%s: got %t", s.name, got)
		}
	}
}
