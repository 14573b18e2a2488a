package rules

import (
	"context"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
)

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

func find(objects []present, watch *relation.Watch, self graph.Vertex) runtime.Object {
	for _, o := range objects {
		if o.kind == watch.Kind && watch.Owner(o.object) == self {
			return o.object
		}
	}
	return nil
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
