package target

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/espalier-project/espalier/internal/cluster"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
)

// requestTimeout limits one request; it equals the API server's own limit. A run may last for its sync period,
// perhaps an hour, and must not spend that time on one answer that never arrives.
const requestTimeout = time.Minute

// Client sends requests for single objects to the target cluster.
type Client struct {
	dynamic  dynamic.Interface
	metadata metadata.Interface
	core     corev1client.CoreV1Interface
	// rest sends requests that choose the form of the answer: only metadata, or undecoded text.
	rest     rest.Interface
	mappings *mappings
	metrics  *Metrics
	manager  string
}

// NewClient returns a Client. It does not send a request.
func NewClient(config *rest.Config, httpClient *http.Client, metrics *Metrics) (*Client, error) {
	discoveryClient, err := discovery.NewDiscoveryClientForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, err
	}
	httpClient = outlivingClient(httpClient)
	dynamicClient, err := dynamic.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, err
	}
	protobuf := cluster.Protobuf(config)
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
	return &Client{dynamic: dynamicClient, metadata: metadataClient, core: coreClient, rest: metadataREST,
		mappings: newMappings(discoveryClient.RESTClient(), metrics),
		metrics:  metrics, manager: managerOf(config)}, nil
}

// object returns the client for a recorded object. If the object has a namespace and its kind is cluster-scoped now,
// or the other way round, the object cannot exist: an object of that name is another one.
func (c *Client) object(served *mapping, namespace, name string) (dynamic.ResourceInterface, error) {
	if served.namespaced != (namespace != "") {
		return nil, apierrors.NewNotFound(served.resource.GroupResource(), name)
	}
	return c.dynamic.Resource(served.resource).Namespace(namespace), nil
}

// Get reads an object from the API server.
func (c *Client) Get(ctx context.Context, gvk schema.GroupVersionKind, namespace,
	name string) (*unstructured.Unstructured, error) {
	var object *unstructured.Unstructured
	err := c.request(ctx, gvk, "get", func(ctx context.Context, served *mapping) error {
		if err := served.readable(name); err != nil {
			return err
		}
		resource, err := c.object(served, namespace, name)
		if err == nil {
			object, err = resource.Get(ctx, name, metav1.GetOptions{})
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return object, nil
}

// request calls send with the mapping of a kind and with a time limit. A creation that was sent outlives the context
// for a moment.
func (c *Client) request(ctx context.Context, gvk schema.GroupVersionKind, verb string,
	send func(context.Context, *mapping) error) error {
	return c.mappings.with(ctx, gvk, func(served *mapping) error {
		c.metrics.count(verb)
		limited, cancel := context.WithTimeout(ctx, requestTimeout)
		defer cancel()
		if verb == "create" {
			limited, cancel = outliving(limited, ctx)
			defer cancel()
		}
		return send(limited, served)
	})
}

// Answer is the state of an object that a write returned.
type Answer struct {
	objects.Observation
	// Object is the entire object; nil for kinds of which the API server keeps every field.
	Object *unstructured.Unstructured
}

// Create creates an object and returns its new state.
func (c *Client) Create(ctx context.Context, object *unstructured.Unstructured, view View) (Answer, error) {
	return c.write(ctx, "create", object, view)
}

// Update replaces an object, given its resourceVersion and UID, and returns its new state.
func (c *Client) Update(ctx context.Context, object *unstructured.Unstructured, view View) (Answer, error) {
	return c.write(ctx, "update", object, view)
}

// Resize changes the resources of a Pod as they are in object, given its resourceVersion and UID, and nothing else
// (MRM-18).
func (c *Client) Resize(ctx context.Context, object *unstructured.Unstructured, view View) (answer Answer, err error) {
	ctx, collected := cluster.CollectWarnings(ctx)
	defer func() { c.warned(ctx, object, collected) }()
	err = c.request(ctx, object.GroupVersionKind(), "update", func(ctx context.Context, served *mapping) error {
		resource, err := c.object(served, object.GetNamespace(), object.GetName())
		if err != nil {
			return err
		}
		resized, err := resource.Update(ctx, object, metav1.UpdateOptions{}, "resize")
		if err == nil {
			answer = Answer{view.Observation(resized), resized}
		}
		return err
	})
	return answer, err
}

// ErrMisplaced is the error of a write for an object with a namespace whose kind is cluster-scoped now, or the other
// way round. The object is not written at its new location, because no inventory has it.
var ErrMisplaced = errors.New("the kind of the object is now served with another scope; the next run finds its place")

// write sends an object. If only its metadata is needed afterwards, it requests only that: to build, send and decode
// the rest would be a third of the work on both sides.
func (c *Client) write(ctx context.Context, verb string, object *unstructured.Unstructured,
	view View) (answer Answer, err error) {
	ctx, collected := cluster.CollectWarnings(ctx)
	defer func() { c.warned(ctx, object, collected) }()
	err = c.request(ctx, object.GroupVersionKind(), verb, func(ctx context.Context, served *mapping) error {
		if served.namespaced != (object.GetNamespace() != "") {
			return ErrMisplaced
		}
		if gvk := object.GroupVersionKind(); view.Whole(gvk) || !keepsAll[gvk.Group] {
			answer, err = c.writeWhole(ctx, verb, object, served, view)
		} else {
			answer.Observation, err = c.writeForMetadata(ctx, verb, object, served, view)
		}
		return err
	})
	return answer, err
}

// keepsAll are the groups with the many plain objects, such as ConfigMaps, Secrets and Roles, of which no feature
// gate and no definition drops a field. Objects of all other groups may lose a part.
var keepsAll = map[string]bool{"": true, "rbac.authorization.k8s.io": true}

func (c *Client) writeWhole(ctx context.Context, verb string, object *unstructured.Unstructured, served *mapping,
	view View) (Answer, error) {
	resource := c.dynamic.Resource(served.resource).Namespace(object.GetNamespace())
	var answer *unstructured.Unstructured
	var err error
	if verb == "create" {
		answer, err = resource.Create(ctx, object, metav1.CreateOptions{})
	} else {
		answer, err = resource.Update(ctx, object, metav1.UpdateOptions{})
	}
	if err != nil {
		return Answer{}, err
	}
	return Answer{view.Observation(answer), answer}, nil
}

func (c *Client) writeForMetadata(ctx context.Context, verb string, object *unstructured.Unstructured,
	served *mapping, view View) (objects.Observation, error) {
	body, err := object.MarshalJSON()
	if err != nil {
		return objects.Observation{}, err
	}
	request := c.rest.Post()
	path := resourcePath(served.resource, object.GetNamespace())
	if verb == "update" {
		request = c.rest.Put()
		path = append(path, object.GetName())
	}
	answer, err := request.AbsPath(path...).SetHeader("Accept", metadataOnly).SetHeader("Content-Type",
		"application/json").Body(body).Do(ctx).Get()
	if err != nil {
		return objects.Observation{}, err
	}
	accessor, err := apimeta.Accessor(answer)
	if err != nil {
		return objects.Observation{}, err
	}
	return view.metadata(object.GroupVersionKind(), accessor), nil
}

// metadataOnly requests the metadata of the written object, in the cheapest form.
const metadataOnly = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1," +
	"application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"

func groupPath(gv schema.GroupVersion) []string {
	if gv.Group == "" {
		return []string{"/api", gv.Version}
	}
	return []string{"/apis", gv.Group, gv.Version}
}

func resourcePath(resource schema.GroupVersionResource, namespace string) []string {
	path := groupPath(resource.GroupVersion())
	if namespace != "" {
		path = append(path, "namespaces", namespace)
	}
	return append(path, resource.Resource)
}

// Patch sends a JSON merge patch; a subresource may follow.
func (c *Client) Patch(ctx context.Context, object *unstructured.Unstructured, patch []byte,
	subresources ...string) error {
	ctx, collected := cluster.CollectWarnings(ctx)
	defer c.warned(ctx, object, collected)
	return c.request(ctx, object.GroupVersionKind(), "patch", func(ctx context.Context, served *mapping) error {
		resource, err := c.object(served, object.GetNamespace(), object.GetName())
		if err == nil {
			_, err = resource.Patch(ctx, object.GetName(), types.MergePatchType, patch, metav1.PatchOptions{}, subresources...)
		}
		return err
	})
}

// Put replaces a subresource of an object.
func (c *Client) Put(ctx context.Context, object *unstructured.Unstructured, subresource string) error {
	return c.request(ctx, object.GroupVersionKind(), "update", func(ctx context.Context, served *mapping) error {
		resource, err := c.object(served, object.GetNamespace(), object.GetName())
		if err == nil {
			_, err = resource.Update(ctx, object, metav1.UpdateOptions{}, subresource)
		}
		return err
	})
}

// Delete deletes the object that was read. An object of the same name that was created since is left alone, and one
// that was changed since is a conflict, because it may belong to another owner now (MRB-17). With an empty policy,
// the API server decides how dependents are treated.
func (c *Client) Delete(ctx context.Context, object *unstructured.Unstructured,
	policy metav1.DeletionPropagation) error {
	uid, version := object.GetUID(), object.GetResourceVersion()
	options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}}
	if policy != "" {
		options.PropagationPolicy = &policy
	}
	return c.request(ctx, object.GroupVersionKind(), "delete", func(ctx context.Context, served *mapping) error {
		if err := served.readable(object.GetName()); err != nil {
			return err
		}
		resource, err := c.object(served, object.GetNamespace(), object.GetName())
		if err != nil {
			return err
		}
		return resource.Delete(ctx, object.GetName(), options)
	})
}

// WarningEvents returns the Warning events about an object.
func (c *Client) WarningEvents(ctx context.Context, object *corev1.ObjectReference) ([]corev1.Event, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	selector := fmt.Sprintf("type=Warning,involvedObject.apiVersion=%s,involvedObject.kind=%s,"+
		"involvedObject.name=%s,involvedObject.namespace=%s",
		object.APIVersion, object.Kind, object.Name, object.Namespace)
	c.metrics.count("list")
	list, err := c.core.Events(object.Namespace).List(ctx, metav1.ListOptions{FieldSelector: selector, Limit: 500})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// Claims returns the PersistentVolumeClaims of a namespace that match a selector.
func (c *Client) Claims(ctx context.Context, namespace, selector string) ([]corev1.PersistentVolumeClaim, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	c.metrics.count("list")
	list, err := c.core.PersistentVolumeClaims(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// DeleteClaim deletes a PersistentVolumeClaim that was read.
func (c *Client) DeleteClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	c.metrics.count("delete")
	return c.core.PersistentVolumeClaims(claim.Namespace).Delete(ctx, claim.Name,
		metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &claim.UID, ResourceVersion: &claim.ResourceVersion}})
}
