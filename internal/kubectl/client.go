package kubectl

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/pager"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
)

// page is the number of objects in a page of a list, as in kubectl.
const page = 500

var managedResources = resourcesv1alpha1.SchemeGroupVersion.WithResource("managedresources")

// reader reads a cluster. It sends no other requests than GET.
type reader struct {
	dynamic   dynamic.Interface
	metadata  metadata.Interface
	discovery discovery.CachedDiscoveryInterfaceWithContext
	mapper    apimeta.RESTMapperWithContext
}

func newReader(config *rest.Config) (*reader, error) {
	config = guarded(config, "reads", func(request *http.Request) bool { return request.Method == http.MethodGet })
	config.QPS = -1 // The API server limits the rate.
	config.UserAgent = rest.DefaultKubernetesUserAgent()
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	client, err := dynamic.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, err
	}
	metadataClient, err := metadata.NewForConfigAndClient(metadata.ConfigFor(config), httpClient)
	if err != nil {
		return nil, err
	}
	discoveryClient, err := discovery.NewDiscoveryClientForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, err
	}
	cached := memory.NewMemCacheClientWithContext(discoveryClient)
	mapper := restmapper.NewShortcutExpanderWithContext(restmapper.NewDeferredDiscoveryRESTMapperWithContext(cached), cached, nil)
	return &reader{dynamic: client, metadata: metadataClient, discovery: cached, mapper: mapper}, nil
}

// guard refuses requests that a command must not send.
type guard struct {
	next  http.RoundTripper
	only  string // all that the command does
	sends func(*http.Request) bool
}

// guarded returns a configuration whose clients send no other requests.
func guarded(config *rest.Config, only string, sends func(*http.Request) bool) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &guard{next, only, sends} })
	return config
}

func (g *guard) RoundTrip(request *http.Request) (*http.Response, error) {
	if !g.sends(request) {
		return nil, fmt.Errorf("%s %s was not sent: this command only %s", request.Method, request.URL.Path, g.only)
	}
	return g.next.RoundTrip(request)
}

// WrappedRoundTripper lets clients find the wrapped transport.
func (g *guard) WrappedRoundTripper() http.RoundTripper { return g.next }

func (r *reader) get(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) (*unstructured.Unstructured, error) {
	return r.dynamic.Resource(resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
}

// list reads all pages of a list.
func (r *reader) list(ctx context.Context, resource schema.GroupVersionResource, namespace string, options metav1.ListOptions) ([]unstructured.Unstructured, error) {
	var all []unstructured.Unstructured
	pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return r.dynamic.Resource(resource).Namespace(namespace).List(ctx, options)
	})
	err := pages.EachListItem(ctx, options, func(object runtime.Object) error {
		all = append(all, *object.(*unstructured.Unstructured))
		return nil
	})
	return all, err
}

// typed converts an unstructured object into a type.
func typed[T any](object *unstructured.Unstructured) (*T, error) {
	into := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into); err != nil {
		return nil, fmt.Errorf("%s %s/%s: %w", object.GetKind(), object.GetNamespace(), object.GetName(), err)
	}
	return into, nil
}

func typedAll[T any](objects []unstructured.Unstructured) ([]*T, error) {
	all := make([]*T, 0, len(objects))
	for i := range objects {
		object, err := typed[T](&objects[i])
		if err != nil {
			return nil, err
		}
		all = append(all, object)
	}
	return all, nil
}

// isUnserved reports whether the API server does not serve the kind in that version.
func isUnserved(err error) bool {
	var status apierrors.APIStatus
	return apierrors.IsNotFound(err) && errors.As(err, &status) && (status.Status().Details == nil || status.Status().Details.Name == "")
}
