package garden

import (
	"context"
	"fmt"
	"net/http"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/espalier-project/espalier/internal/reflector"
	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
)

// Client reads objects of the garden cluster.
type Client struct {
	clients map[schema.GroupVersion]rest.Interface
}

// NewClient returns a client that sends everything with one HTTP client and under one rate limit.
func NewClient(config *rest.Config, httpClient *http.Client) (*Client, error) {
	c := &Client{clients: map[schema.GroupVersion]rest.Interface{}}
	if config.QPS > 0 && config.RateLimiter == nil {
		config = rest.CopyConfig(config)
		config.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(config.QPS, config.Burst)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, certificatesv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	for _, version := range []schema.GroupVersion{corev1.SchemeGroupVersion, certificatesv1.SchemeGroupVersion} {
		client, err := reflector.NewWholeClient(config, httpClient, version, scheme)
		if err != nil {
			return nil, err
		}
		c.clients[version] = client
	}
	for _, w := range relation.Watches {
		version := w.Resource.GroupVersion()
		if c.clients[version] != nil {
			continue
		}
		client, err := reflector.NewClient(config, httpClient, version)
		if err != nil {
			return nil, err
		}
		c.clients[version] = client
	}
	return c, nil
}

// isWhole reports whether objects of a version are Kubernetes' own kinds, with their complete types.
func isWhole(version schema.GroupVersion) bool {
	return version == corev1.SchemeGroupVersion || version == certificatesv1.SchemeGroupVersion
}

func (c *Client) of(version schema.GroupVersion) (rest.Interface, error) {
	client, known := c.clients[version]
	if !known {
		return nil, fmt.Errorf("no kind of %s is known", version)
	}
	return client, nil
}

// Bare returns the client for paths without a kind, such as the version.
func (c *Client) Bare() rest.Interface { return c.clients[corev1.SchemeGroupVersion] }

// Get reads an object.
func (c *Client) Get(ctx context.Context, resource schema.GroupVersionResource, namespace, name string, into runtime.Object) error {
	client, err := c.of(resource.GroupVersion())
	if err != nil {
		return err
	}
	if isWhole(resource.GroupVersion()) {
		return client.Get().NamespaceIfScoped(namespace, namespace != "").Resource(resource.Resource).Name(name).Do(ctx).Into(into)
	}
	return reflector.Into(ctx, client, resource.Resource, namespace, name, into)
}

// GetRaw reads an object as the garden sends it.
func (c *Client) GetRaw(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) ([]byte, error) {
	client, err := c.of(resource.GroupVersion())
	if err != nil {
		return nil, err
	}
	return reflector.Get(ctx, client, resource.Resource, namespace, name)
}

// Read implements the authorizer's Live.
func (c *Client) Read(ctx context.Context, watch *relation.Watch, namespace, name string) (runtime.Object, error) {
	object := watch.New()
	err := c.Get(ctx, watch.Resource, namespace, name, object)
	if reflector.IsAbsent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return object, nil
}

// Secret implements the authorizer's Live.
func (c *Client) Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := c.Get(ctx, corev1.SchemeGroupVersion.WithResource("secrets"), namespace, name, secret)
	if reflector.IsAbsent(err) {
		return nil, nil
	}
	return secret, err
}

// Exists implements the authorizer's Live: it reads the metadata of an object of any resource.
func (c *Client) Exists(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) (bool, error) {
	path := "/apis/" + resource.Group + "/" + resource.Version
	if resource.Group == "" {
		path = "/api/" + resource.Version
	}
	// AbsPath must be called first, because otherwise the resource is appended to the path of the client's group.
	request := c.Bare().Get().AbsPath(path)
	if namespace != "" {
		request = request.Suffix("namespaces", namespace)
	}
	err := request.Suffix(resource.Resource, name).SetHeader("Accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json").Do(ctx).Error()
	if reflector.IsAbsent(err) {
		return false, nil
	}
	return err == nil, err
}
