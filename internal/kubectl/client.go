package kubectl

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
)

// page is the number of objects in a page of a list, as in kubectl.
const page = 500

var managedResources = resourcesv1alpha1.SchemeGroupVersion.WithResource("managedresources")

// reader reads a cluster. It counts its requests, and sends no other ones than GET.
type reader struct {
	dynamic  dynamic.Interface
	metadata metadata.Interface
	raw      rest.Interface
	sent     *atomic.Int64
	known    known
}

func newReader(config *rest.Config, sent *atomic.Int64) (*reader, error) {
	config = guarded(config, "reads", func(request *http.Request) bool {
		if request.Method != http.MethodGet {
			return false
		}
		sent.Add(1)
		return true
	})
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
	raw, err := rest.UnversionedRESTClientForConfigAndClient(rawConfig(config), httpClient)
	if err != nil {
		return nil, err
	}
	return &reader{dynamic: client, metadata: metadataClient, raw: raw, sent: sent}, nil
}

func rawConfig(config *rest.Config) *rest.Config {
	config = dynamic.ConfigFor(config)
	config.GroupVersion = nil
	return config
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
	options.Limit = page
	var all []unstructured.Unstructured
	for {
		list, err := r.dynamic.Resource(resource).Namespace(namespace).List(ctx, options)
		if err != nil {
			return nil, err
		}
		all = append(all, list.Items...)
		if options.Continue = list.GetContinue(); options.Continue == "" {
			return all, nil
		}
	}
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

// isUnserved reports whether an API server has nothing at a path: the kind is not served in that version.
func isUnserved(err error) bool {
	var status apierrors.APIStatus
	return apierrors.IsNotFound(err) && errors.As(err, &status) && (status.Status().Details == nil || status.Status().Details.Name == "")
}
