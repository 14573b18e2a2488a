package restriction

import (
	"context"
	"maps"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/espalier-project/espalier/internal/foreign/names"
	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/internal/relation"
)

// checked are the rules that also look at references. A client that names an object in one of its own reaches it afterwards; so it may
// name only what it reaches anyway.
var checked = checkedRules()

func checkedRules() map[schema.GroupResource]byOperation {
	result := maps.Clone(rules)
	for kind, operations := range map[graph.Kind][]admissionv1.Operation{
		relation.BackupBucket: {admissionv1.Create, admissionv1.Update},
		relation.Seed:         {admissionv1.Create, admissionv1.Update},
		relation.Gardenlet:    {admissionv1.Create, admissionv1.Update},
		relation.ManagedSeed:  {admissionv1.Create, admissionv1.Update},
		// The ServiceAccounts with which gardenlets are bootstrapped name the Secrets of their tokens.
		relation.ServiceAccount: {admissionv1.Create, admissionv1.Update},
	} {
		w := relation.WatchOf(kind)
		resource := w.Resource.GroupResource()
		before := rules[resource]
		result[resource] = maps.Clone(before)
		if before == nil {
			result[resource] = byOperation{}
		}
		for _, operation := range operations {
			result[resource][operation] = func(q *request, ctx context.Context) error {
				if rule := before[operation]; rule != nil {
					if err := rule(q, ctx); err != nil {
						return err
					}
				}
				return q.namesOnlyReachable(w)
			}
		}
	}
	return result
}

func (q *request) rules() map[schema.GroupResource]byOperation {
	if q.Checked {
		return checked
	}
	return rules
}

// namesOnlyReachable wants all that an object names to lead to the client's seed already, or to have been named by it before.
func (q *request) namesOnlyReachable(w *relation.Watch) error {
	object := w.New()
	if err := q.decode(object); err != nil {
		return err
	}
	before := map[graph.Vertex]bool{}
	if q.Operation == admissionv1.Update && len(q.OldObject.Raw) > 0 {
		old := w.New()
		if err := kjson.UnmarshalCaseSensitivePreserveInts(q.OldObject.Raw, old); err != nil {
			return refuse(http.StatusInternalServerError, "the object as it is cannot be read: %s", err)
		}
		var err error
		if before, err = named(w, old); err != nil {
			return err
		}
	}
	after, err := named(w, object)
	if err != nil {
		return err
	}
	for v := range after {
		switch {
		case before[v] || q.Graph.Check(v, relation.SeedVertex(q.client.Seed)).Reached:
		case w.Kind == relation.BackupBucket && v == generatedSecret(q.Name):
		default:
			return refuse(http.StatusForbidden, "object refers to %s, which does not lead to seed %q", relation.Schema.String(v), q.client.Seed)
		}
	}
	return nil
}

// unnamed stands for the name of an object whose name is still to be generated: what has no name has no edges.
const unnamed = `{"metadata":{"name":"-"}}`

// named returns what an object names.
func named(w *relation.Watch, object runtime.Object) (map[graph.Vertex]bool, error) {
	if w.Owner(object).Name == "" {
		if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(unnamed), object); err != nil {
			return nil, err
		}
	}
	result := map[graph.Vertex]bool{}
	for _, e := range w.Chosen(object) {
		result[e.From] = true
	}
	return result, nil
}

// generatedSecret is what a seed writes for its bucket (RES-29).
func generatedSecret(bucket string) graph.Vertex {
	return graph.Vertex{Kind: relation.Secret, Namespace: names.Garden, Name: names.GeneratedBucketPrefix + bucket}
}
