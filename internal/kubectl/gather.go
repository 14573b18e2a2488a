package kubectl

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/inspect"
	"github.com/espalier-project/espalier/internal/managedresource/merge"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/plan"
)

// question collects the facts about an object.
type question struct {
	*clusters
	kind            *kind
	namespace, name string
	// within limits the search for ManagedResources that no origin names to a namespace; "" means all.
	within string
	facts  *inspect.Facts
}

// gather reads the facts about an object.
func (q *question) gather(ctx context.Context, now time.Time) (*inspect.Report, error) {
	q.facts = &inspect.Facts{Now: now, Kind: q.kind.GroupVersionKind, ClusterScoped: !q.kind.namespaced(), Namespace: q.namespace, Name: q.name}
	if err := q.readLive(ctx); err != nil {
		return nil, err
	}
	if err := q.findOwner(ctx); err != nil {
		return nil, err
	}
	if q.facts.ManagedResource == nil {
		if q.facts.Live == nil {
			q.readEvents(ctx, q.within, ownEvents+",reason="+meta.ReasonObjectsWritten)
		}
		return inspect.Explain(ctx, q.facts)
	}
	if err := q.readSource(ctx); err != nil {
		return nil, err
	}
	if err := q.readWantedVersion(ctx); err != nil {
		return nil, err
	}
	report, err := inspect.Explain(ctx, q.facts)
	if err != nil {
		return nil, err
	}
	if report.State == inspect.Differs {
		q.refine(ctx, report)
	}
	return inspect.Explain(ctx, q.facts)
}

// readLive reads the live object.
func (q *question) readLive(ctx context.Context) error {
	live, err := q.target.get(ctx, q.kind.Resource, q.namespace, q.name)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading %s: %w", q.described(), err)
	}
	if err == nil {
		q.facts.Live = live
	}
	return nil
}

func (q *question) described() string {
	return describeObject(q.kind.GroupVersionKind.GroupKind(), q.namespace, q.name)
}

func describeObject(gk schema.GroupKind, namespace, name string) string {
	return gk.String() + " " + fullName(namespace, name)
}

// fullName returns NAMESPACE/NAME, or NAME alone.
func fullName(namespace, name string) string { return strings.TrimPrefix(namespace+"/"+name, "/") }

// findOwner reads the ManagedResource that the object's origin names, and all of them if that one does not have the
// object.
func (q *question) findOwner(ctx context.Context) error {
	var read []*resourcesv1alpha1.ManagedResource
	if origin, found := inspect.OriginOf(q.facts.Live); found {
		mr, err := q.readNamed(ctx, origin.Key)
		if err != nil {
			return err
		}
		if mr != nil {
			read = append(read, mr)
		}
	}
	q.facts.ManagedResource, q.facts.Proof = inspect.FindOwner(q.facts.Key(), q.facts.ClusterScoped, q.facts.Live, read)
	controlled := q.facts.Live != nil && metav1.GetControllerOf(q.facts.Live) != nil
	if q.facts.ManagedResource != nil || controlled && len(read) > 0 {
		return nil
	}
	objects, err := q.source.list(ctx, managedResources, q.within, metav1.ListOptions{})
	if apierrors.IsForbidden(err) && q.within == "" {
		q.facts.Unknown = append(q.facts.Unknown, fmt.Sprintf("the inventories of ManagedResources were not read, so that an owner may be missing: %v; --source-namespace looks in one namespace", err))
		return nil
	}
	if err != nil {
		return fmt.Errorf("looking for the ManagedResource that has %s: %w", q.described(), err)
	}
	all, err := typedAll[resourcesv1alpha1.ManagedResource](objects)
	if err != nil {
		return err
	}
	q.facts.ManagedResource, q.facts.Proof = inspect.FindOwner(q.facts.Key(), q.facts.ClusterScoped, q.facts.Live, all)
	return nil
}

// readNamed reads a ManagedResource, nil if it does not exist.
func (q *question) readNamed(ctx context.Context, key types.NamespacedName) (*resourcesv1alpha1.ManagedResource, error) {
	object, err := q.source.get(ctx, managedResources, key.Namespace, key.Name)
	if isUnserved(err) {
		return nil, fmt.Errorf("the source has no ManagedResources: --context and --kubeconfig lead to it, --target-context and --target-kubeconfig to the target")
	}
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading ManagedResource %s: %w", key, err)
	}
	return typed[resourcesv1alpha1.ManagedResource](object)
}

// ownEvents selects the Events of resource-manager, ownWarnings the Warnings among them.
const (
	ownEvents   = "reportingComponent=gardener-resource-manager"
	ownWarnings = "type=Warning," + ownEvents
)

// readOwnersEvents reads the Events of resource-manager about the owner: only Warnings, but all Events if the object
// does not exist.
func (q *question) readOwnersEvents(ctx context.Context) {
	mr, selector := q.facts.ManagedResource, ownWarnings
	if q.facts.Live == nil {
		selector = ownEvents
	}
	q.readEvents(ctx, mr.Namespace, selector+",involvedObject.kind=ManagedResource,involvedObject.name="+mr.Name)
}

// readEvents reads a page of Events of a namespace, "" for all.
func (q *question) readEvents(ctx context.Context, namespace, selector string) {
	events, err := q.source.events(ctx, namespace, selector)
	if err != nil {
		q.facts.Unknown = append(q.facts.Unknown, fmt.Sprintf("the Events in namespace %q were not read: %v", namespace, err))
		return
	}
	if len(events) == page {
		q.facts.Unknown = append(q.facts.Unknown, fmt.Sprintf("of the Events the first %d were read: --source-namespace looks in one namespace", page))
	}
	q.facts.Events = events
}

var eventResource = schema.GroupVersionResource{Version: "v1", Resource: "events"}

// events returns at most a page of the Events that a selector selects.
func (r *reader) events(ctx context.Context, namespace, selector string) ([]corev1.Event, error) {
	list, err := r.dynamic.Resource(eventResource).Namespace(namespace).List(ctx, metav1.ListOptions{FieldSelector: selector, Limit: page})
	if err != nil {
		return nil, err
	}
	events := make([]corev1.Event, 0, len(list.Items))
	for i := range list.Items {
		event, err := typed[corev1.Event](&list.Items[i])
		if err != nil {
			return nil, err
		}
		events = append(events, *event)
	}
	return events, nil
}

// readSource reads the Secrets that the owner names, and the Events about it.
func (q *question) readSource(ctx context.Context) error {
	mr := q.facts.ManagedResource
	var together sync.WaitGroup
	together.Go(func() { q.readOwnersEvents(ctx) })
	secrets, unread := q.source.secretsOf(ctx, mr)
	together.Wait()
	q.facts.Secrets, q.facts.Unknown = secrets, append(q.facts.Unknown, unread...)
	return ctx.Err()
}

var secretResource = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}

// secretsOf reads the Secrets that a ManagedResource names, and returns the names of those that could not be read.
func (r *reader) secretsOf(ctx context.Context, mr *resourcesv1alpha1.ManagedResource) (found map[string]*corev1.Secret, unread []string) {
	found = map[string]*corev1.Secret{}
	names := map[string]struct{}{}
	for _, ref := range mr.Spec.SecretRefs {
		names[ref.Name] = struct{}{}
	}
	var mu sync.Mutex
	parallel(len(names), sortedKeys(names), func(name string) {
		object, err := r.get(ctx, secretResource, mr.Namespace, name)
		var secret *corev1.Secret
		if err == nil {
			secret, err = asSecret(object)
		}
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			unread = append(unread, fmt.Sprintf("Secret %s/%s was not read: %v", mr.Namespace, name, err))
			return
		}
		found[name] = secret
	})
	slices.Sort(unread)
	return found, unread
}

// asSecret converts a Secret that was read from the cluster or a file.
func asSecret(object *unstructured.Unstructured) (*corev1.Secret, error) {
	secret, err := typed[corev1.Secret](object)
	if err != nil {
		return nil, fmt.Errorf("secret %s/%s cannot be decoded", object.GetNamespace(), object.GetName()) // The error of the decoder may have a value.
	}
	for key, value := range secret.StringData {
		if secret.Data == nil {
			secret.Data = map[string][]byte{}
		}
		secret.Data[key] = []byte(value)
	}
	return secret, nil
}

// readWantedVersion reads the object once more if its manifest has another version, because only forms of one version
// can be compared.
func (q *question) readWantedVersion(ctx context.Context) error {
	wanted := inspect.WantedVersion(ctx, q.facts)
	if q.facts.Live == nil || wanted == "" || wanted == q.kind.GroupVersionKind.Version {
		return nil
	}
	q.kind.GroupVersionKind.Version, q.kind.Resource.Version = wanted, wanted
	live, err := q.target.get(ctx, q.kind.Resource, q.namespace, q.name)
	if err != nil {
		return fmt.Errorf("reading %s in version %s, as its manifest has it: %w", q.described(), wanted, err)
	}
	q.facts.Live, q.facts.Kind = live, q.kind.GroupVersionKind
	return nil
}

// refine reads the objects that may explain a difference.
func (q *question) refine(ctx context.Context, report *inspect.Report) {
	replicas := slices.ContainsFunc(report.Differences, func(d inspect.Difference) bool { return d.Path == "spec.replicas" })
	switch {
	case replicas && merge.HasReplicas(q.kind.GroupVersionKind.Group, q.kind.GroupVersionKind.Kind):
		q.readScaled(ctx)
	case isCustom(q.kind.GroupVersionKind.Group):
		if replicas {
			q.readScaled(ctx)
		}
		q.readDefaults(ctx)
	}
}

func (q *question) readScaled(ctx context.Context) {
	scaled, err := q.target.scaled(ctx, q.namespace)
	if err != nil {
		q.facts.Unknown = append(q.facts.Unknown, fmt.Sprintf("whether an autoscaler has its replicas is not known: %v", err))
		return
	}
	q.facts.Scaled = slices.ContainsFunc(plan.NewEquivalences(q.facts.ManagedResource.Spec.Equivalences).Keys(q.facts.Key()), func(key objects.ID) bool { return scaled[key] })
}

func (q *question) readDefaults(ctx context.Context) {
	definition, err := q.target.definitionOf(ctx, q.kind)
	if err != nil {
		q.facts.Unknown = append(q.facts.Unknown, fmt.Sprintf("the defaults of its CustomResourceDefinition are not known: %v", err))
		return
	}
	if definition != nil {
		q.facts.Defaults = merge.NewCustomDefaults(definition, q.kind.GroupVersionKind.Version)
	}
}

var autoscalers = schema.GroupVersionResource{Group: "autoscaling", Version: "v1", Resource: "horizontalpodautoscalers"}

// scaled returns the objects that autoscalers scale in a namespace, or in all.
func (r *reader) scaled(ctx context.Context, namespace string) (map[objects.ID]bool, error) {
	found, err := r.list(ctx, autoscalers, namespace, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	scaled := map[objects.ID]bool{}
	for i := range found {
		apiVersion, _, _ := unstructured.NestedString(found[i].Object, "spec", "scaleTargetRef", "apiVersion")
		name, _, _ := unstructured.NestedString(found[i].Object, "spec", "scaleTargetRef", "name")
		kind, _, _ := unstructured.NestedString(found[i].Object, "spec", "scaleTargetRef", "kind")
		scaled[objects.NewID(schema.FromAPIVersionAndKind(apiVersion, kind).GroupKind(), found[i].GetNamespace(), name)] = true
	}
	return scaled, nil
}
