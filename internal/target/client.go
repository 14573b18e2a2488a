package target

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/espalier-project/espalier/internal/apply"
	"github.com/espalier-project/espalier/internal/ledger"
)

// requestTimeout limits one request: as long as the API server itself works on one. A reconciliation may take as long as its
// sync period, an hour perhaps, and must not spend that on one answer that never comes.
const requestTimeout = time.Minute

// Client sends requests for single objects to the target cluster.
type Client struct {
	dynamic  dynamic.Interface
	metadata metadata.Interface
	core     corev1client.CoreV1Interface
	mapper   meta.RESTMapper
	// rest answers with metadata.
	rest rest.Interface
	// mappings are those that were used before: the mapper builds each answer anew, which is as costly as a request.
	mappings sync.Map
}

// NewClient returns a client; it sends nothing yet.
func NewClient(config *rest.Config, httpClient *http.Client) (*Client, error) {
	mapper, err := apiutil.NewDynamicRESTMapper(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("REST mapper of the target cluster: %w", err)
	}
	dynamicClient, err := dynamic.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, err
	}
	protobuf := rest.CopyConfig(config)
	if protobuf.ContentType == "" {
		protobuf.ContentType = "application/vnd.kubernetes.protobuf"
		protobuf.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	}
	metadataClient, err := metadata.NewForConfigAndClient(metadata.ConfigFor(protobuf), httpClient)
	if err != nil {
		return nil, err
	}
	metadataConfig := metadata.ConfigFor(protobuf)
	metadataConfig.GroupVersion = &schema.GroupVersion{}
	metadataConfig.APIPath = "/this-value-should-never-be-sent"
	metadataREST, err := rest.RESTClientForConfigAndClient(metadataConfig, httpClient)
	if err != nil {
		return nil, err
	}
	coreClient, err := corev1client.NewForConfigAndClient(protobuf, httpClient)
	if err != nil {
		return nil, err
	}
	return &Client{dynamic: dynamicClient, metadata: metadataClient, core: coreClient, mapper: mapper, rest: metadataREST}, nil
}

// Scope tells where the objects of a kind live; unknown if the target does not serve it (MRD-9).
func (c *Client) Scope(gvk schema.GroupVersionKind) (apply.Scope, error) {
	mapping, err := c.mapping(gvk)
	switch {
	case meta.IsNoMatchError(err):
		return apply.ScopeUnknown, nil
	case err != nil:
		return apply.ScopeUnknown, err
	case mapping.Scope.Name() == meta.RESTScopeNameNamespace:
		return apply.ScopeNamespaced, nil
	}
	return apply.ScopeCluster, nil
}

func (c *Client) mapping(gvk schema.GroupVersionKind) (*meta.RESTMapping, error) {
	if known, found := c.mappings.Load(gvk); found {
		return known.(*meta.RESTMapping), nil
	}
	mapping, err := c.lookUp(gvk)
	if err == nil {
		c.mappings.Store(gvk, mapping)
	}
	return mapping, err
}

// forget drops a mapping after an answer that may mean that the kind is not served any more.
func (c *Client) forget(gvk schema.GroupVersionKind, err error) {
	if isNotFound(err) {
		c.mappings.Delete(gvk)
	}
}

func (c *Client) lookUp(gvk schema.GroupVersionKind) (*meta.RESTMapping, error) {
	mapping, err := c.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	var discovery *apiutil.ErrResourceDiscoveryFailed
	if errors.As(err, &discovery) {
		// A version that is not served is no match; anything else is a failure to ask.
		for _, cause := range *discovery {
			if !isNotFound(cause) {
				return nil, err
			}
		}
		return nil, &meta.NoKindMatchError{GroupKind: gvk.GroupKind(), SearchedVersions: []string{gvk.Version}}
	}
	return mapping, err
}

func (c *Client) resource(gvk schema.GroupVersionKind, namespace string) (dynamic.ResourceInterface, error) {
	mapping, err := c.mapping(gvk)
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		return c.dynamic.Resource(mapping.Resource).Namespace(namespace), nil
	}
	return c.dynamic.Resource(mapping.Resource), nil
}

// Get reads an object.
func (c *Client) Get(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) (*unstructured.Unstructured, error) {
	resource, err := c.resource(gvk, namespace)
	if err != nil {
		return nil, err
	}
	count("get")
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	object, err := resource.Get(ctx, name, metav1.GetOptions{})
	if unserved(err) {
		c.forget(gvk, err)
	}
	return object, err
}

// Create creates an object and returns what it says then.
func (c *Client) Create(ctx context.Context, object *unstructured.Unstructured, view View) (ledger.Sighting, error) {
	return c.write(ctx, "create", object, view)
}

// Update replaces an object, given its resourceVersion and UID, and returns what it says then.
func (c *Client) Update(ctx context.Context, object *unstructured.Unstructured, view View) (ledger.Sighting, error) {
	return c.write(ctx, "update", object, view)
}

// write sends an object. Where its metadata is all that is needed afterwards, only that is asked for: building, sending and
// decoding the rest would be a third of the work on both sides.
func (c *Client) write(ctx context.Context, verb string, object *unstructured.Unstructured, view View) (ledger.Sighting, error) {
	gvk := object.GroupVersionKind()
	mapping, err := c.mapping(gvk)
	if err != nil {
		return ledger.Sighting{}, err
	}
	count(verb)
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if view.Whole(gvk) {
		resource := c.dynamic.Resource(mapping.Resource).Namespace(object.GetNamespace())
		var answer *unstructured.Unstructured
		if verb == "create" {
			answer, err = resource.Create(ctx, object, metav1.CreateOptions{})
		} else {
			answer, err = resource.Update(ctx, object, metav1.UpdateOptions{})
		}
		if err != nil {
			c.forget(gvk, err)
			return ledger.Sighting{}, err
		}
		return view.Sighting(answer), nil
	}
	body, err := object.MarshalJSON()
	if err != nil {
		return ledger.Sighting{}, err
	}
	request := c.rest.Post()
	path := resourcePath(mapping.Resource, object.GetNamespace())
	if verb == "update" {
		request = c.rest.Put()
		path = append(path, object.GetName())
	}
	answer, err := request.AbsPath(path...).SetHeader("Accept", metadataOnly).SetHeader("Content-Type", "application/json").Body(body).Do(ctx).Get()
	if err != nil {
		c.forget(gvk, err)
		return ledger.Sighting{}, err
	}
	accessor, err := meta.Accessor(answer)
	if err != nil {
		return ledger.Sighting{}, err
	}
	return sightingOf(gvk, accessor), nil
}

// metadataOnly asks for the metadata of what was written, in the form that costs least.
const metadataOnly = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"

func resourcePath(resource schema.GroupVersionResource, namespace string) []string {
	path := []string{"/apis", resource.Group, resource.Version}
	if resource.Group == "" {
		path = []string{"/api", resource.Version}
	}
	if namespace != "" {
		path = append(path, "namespaces", namespace)
	}
	return append(path, resource.Resource)
}

// Patch sends a JSON merge patch; a subresource may follow.
func (c *Client) Patch(ctx context.Context, object *unstructured.Unstructured, patch []byte, subresources ...string) error {
	resource, err := c.resource(object.GroupVersionKind(), object.GetNamespace())
	if err != nil {
		return err
	}
	count("patch")
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	_, err = resource.Patch(ctx, object.GetName(), types.MergePatchType, patch, metav1.PatchOptions{}, subresources...)
	return err
}

// Put replaces a subresource of an object.
func (c *Client) Put(ctx context.Context, object *unstructured.Unstructured, subresource string) error {
	resource, err := c.resource(object.GroupVersionKind(), object.GetNamespace())
	if err != nil {
		return err
	}
	count("update")
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	_, err = resource.Update(ctx, object, metav1.UpdateOptions{}, subresource)
	return err
}

// Delete deletes the object that was read: one of the same name that was created since is left alone, and one that was changed
// since is a conflict, for it may belong to somebody else by now (MRB-17). An empty policy leaves it to the API server how
// dependants are treated.
func (c *Client) Delete(ctx context.Context, object *unstructured.Unstructured, policy metav1.DeletionPropagation) error {
	resource, err := c.resource(object.GroupVersionKind(), object.GetNamespace())
	if err != nil {
		return err
	}
	uid, version := object.GetUID(), object.GetResourceVersion()
	options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}}
	if policy != "" {
		options.PropagationPolicy = &policy
	}
	count("delete")
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return resource.Delete(ctx, object.GetName(), options)
}

// WarningEvents returns the Warning events about an object.
func (c *Client) WarningEvents(ctx context.Context, object *unstructured.Unstructured) ([]corev1.Event, error) {
	selector := fmt.Sprintf("type=Warning,involvedObject.apiVersion=%s,involvedObject.kind=%s,involvedObject.name=%s,involvedObject.namespace=%s",
		object.GetAPIVersion(), object.GetKind(), object.GetName(), object.GetNamespace())
	count("list")
	list, err := c.core.Events(object.GetNamespace()).List(ctx, metav1.ListOptions{FieldSelector: selector, Limit: 500})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// Claims returns the PersistentVolumeClaims of a namespace that match a selector.
func (c *Client) Claims(ctx context.Context, namespace, selector string) ([]corev1.PersistentVolumeClaim, error) {
	count("list")
	list, err := c.core.PersistentVolumeClaims(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// DeleteClaim deletes a PersistentVolumeClaim that was read.
func (c *Client) DeleteClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	count("delete")
	return c.core.PersistentVolumeClaims(claim.Namespace).Delete(ctx, claim.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &claim.UID, ResourceVersion: &claim.ResourceVersion}})
}

// PodsOf counts the Pods of a Deployment by asking the target, for when the watches can't tell (MRP-10).
func (c *Client) PodsOf(ctx context.Context, deployment *unstructured.Unstructured, counts func(*corev1.PodStatus) bool) (int64, error) {
	selector, err := SelectorOf(deployment)
	if err != nil {
		return 0, err
	}
	count("list")
	sets, err := c.metadata.Resource(replicaSets).Namespace(deployment.GetNamespace()).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return 0, err
	}
	own := map[types.UID]bool{}
	for i := range sets.Items {
		if owner := metav1.GetControllerOf(&sets.Items[i]); owner != nil && owner.UID == deployment.GetUID() {
			own[sets.Items[i].UID] = true
		}
	}
	count("list")
	pods, err := c.core.Pods(deployment.GetNamespace()).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return 0, err
	}
	var number int64
	for i := range pods.Items {
		pod := &pods.Items[i]
		// A Pod that nobody controls is about to be adopted.
		if owner := metav1.GetControllerOf(pod); (owner == nil || own[owner.UID]) && counts(&pod.Status) {
			number++
		}
	}
	return number, nil
}

// Gone says whether the error means that the object can't be there: not found, or its kind is not served.
func Gone(err error) bool { return isNotFound(err) || meta.IsNoMatchError(err) }
