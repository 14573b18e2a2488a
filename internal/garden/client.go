package garden

import (
	"context"
	"fmt"
	"net/http"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

	"github.com/espalier-project/espalier/internal/follow"
	gardencorev1 "github.com/espalier-project/espalier/internal/foreign/core/v1"
	"github.com/espalier-project/espalier/internal/foreign/core/v1beta1"
	operationsv1alpha1 "github.com/espalier-project/espalier/internal/foreign/operations/v1alpha1"
	securityv1alpha1 "github.com/espalier-project/espalier/internal/foreign/security/v1alpha1"
	seedmanagementv1alpha1 "github.com/espalier-project/espalier/internal/foreign/seedmanagement/v1alpha1"
	"github.com/espalier-project/espalier/internal/relation"
)

// Client reads objects of the garden cluster.
type Client struct {
	clients map[schema.GroupVersion]rest.Interface
	// bare asks for what has no group: the version and metadata of any resource.
	bare rest.Interface
}

const protobuf = "application/vnd.kubernetes.protobuf,application/json"

// NewClient returns a client that sends everything with one HTTP client and under one rate limit.
func NewClient(config *rest.Config, httpClient *http.Client) (*Client, error) {
	scheme := newScheme()
	c := &Client{clients: map[schema.GroupVersion]rest.Interface{}}
	codecs := serializer.NewCodecFactory(scheme)
	for _, version := range scheme.PrioritizedVersionsAllGroups() {
		if version == metav1.SchemeGroupVersion || version.Version == runtime.APIVersionInternal {
			continue
		}
		of := rest.CopyConfig(config)
		of.GroupVersion, of.APIPath = &version, "/apis"
		of.NegotiatedSerializer = codecs.WithoutConversion()
		of.AcceptContentTypes, of.ContentType = "application/json", "application/json"
		if version == corev1.SchemeGroupVersion {
			of.APIPath = "/api"
		}
		if version == corev1.SchemeGroupVersion || version == certificatesv1.SchemeGroupVersion {
			of.AcceptContentTypes = protobuf
		}
		client, err := rest.RESTClientForConfigAndClient(of, httpClient)
		if err != nil {
			return nil, fmt.Errorf("client of %s: %w", version, err)
		}
		c.clients[version] = client
		if version == corev1.SchemeGroupVersion {
			c.bare = client
		}
	}
	return c, nil
}

// newScheme knows the kinds that are read, and lists of them.
func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, certificatesv1.AddToScheme} {
		if err := add(scheme); err != nil {
			panic(err) // Two of the same kind in one scheme: a mistake in this function.
		}
	}
	addKind[*v1beta1.BackupBucket, v1beta1.BackupBucket](scheme, v1beta1.GroupVersion, "BackupBucket")
	addKind[*v1beta1.BackupEntry, v1beta1.BackupEntry](scheme, v1beta1.GroupVersion, "BackupEntry")
	addKind[*v1beta1.ControllerInstallation, v1beta1.ControllerInstallation](scheme, v1beta1.GroupVersion, "ControllerInstallation")
	addKind[*v1beta1.Project, v1beta1.Project](scheme, v1beta1.GroupVersion, "Project")
	addKind[*v1beta1.SecretBinding, v1beta1.SecretBinding](scheme, v1beta1.GroupVersion, "SecretBinding")
	addKind[*v1beta1.Seed, v1beta1.Seed](scheme, v1beta1.GroupVersion, "Seed")
	addKind[*v1beta1.Shoot, v1beta1.Shoot](scheme, v1beta1.GroupVersion, "Shoot")
	addKind[*gardencorev1.ControllerDeployment, gardencorev1.ControllerDeployment](scheme, gardencorev1.GroupVersion, "ControllerDeployment")
	addKind[*operationsv1alpha1.Bastion, operationsv1alpha1.Bastion](scheme, operationsv1alpha1.GroupVersion, "Bastion")
	addKind[*securityv1alpha1.CredentialsBinding, securityv1alpha1.CredentialsBinding](scheme, securityv1alpha1.GroupVersion, "CredentialsBinding")
	addKind[*seedmanagementv1alpha1.Gardenlet, seedmanagementv1alpha1.Gardenlet](scheme, seedmanagementv1alpha1.GroupVersion, "Gardenlet")
	addKind[*seedmanagementv1alpha1.ManagedSeed, seedmanagementv1alpha1.ManagedSeed](scheme, seedmanagementv1alpha1.GroupVersion, "ManagedSeed")
	return scheme
}

func addKind[P interface {
	*T
	runtime.Object
}, T any](scheme *runtime.Scheme, version schema.GroupVersion, kind string) {
	scheme.AddKnownTypeWithName(version.WithKind(kind), P(new(T)))
	scheme.AddKnownTypeWithName(version.WithKind(kind+"List"), &List[T]{})
	metav1.AddToGroupVersion(scheme, version)
}

// List is a list of slices.
type List[T any] struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []T `json:"items"`
}

// DeepCopyObject implements runtime.Object. Lists are read and given up at once: nobody changes what a copy shares.
func (l *List[T]) DeepCopyObject() runtime.Object {
	copied := *l
	return &copied
}

// Get reads an object.
func (c *Client) Get(ctx context.Context, resource schema.GroupVersionResource, namespace, name string, into runtime.Object) error {
	client, known := c.clients[resource.GroupVersion()]
	if !known {
		return fmt.Errorf("no kind of %s is known", resource.GroupVersion())
	}
	return client.Get().NamespaceIfScoped(namespace, namespace != "").Resource(resource.Resource).Name(name).Do(ctx).Into(into)
}

// Read implements the authorizer's Live.
func (c *Client) Read(ctx context.Context, watch *relation.Watch, namespace, name string) (runtime.Object, error) {
	object := watch.New()
	err := c.Get(ctx, watch.Resource, namespace, name, object)
	if IsAbsent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return object, nil
}

// Exists implements the authorizer's Live: it reads the metadata of an object of any resource.
func (c *Client) Exists(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) (bool, error) {
	path := "/apis/" + resource.Group + "/" + resource.Version
	if resource.Group == "" {
		path = "/api/" + resource.Version
	}
	// The path goes first, or else the resource would be joined to the group of the client.
	request := c.bare.Get().AbsPath(path)
	if namespace != "" {
		request = request.Suffix("namespaces", namespace)
	}
	err := request.Suffix(resource.Resource, name).SetHeader("Accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json").Do(ctx).Error()
	if IsAbsent(err) {
		return false, nil
	}
	return err == nil, err
}

// IsAbsent says whether an error means that the object does not exist, and not that its whole resource does not.
func IsAbsent(err error) bool {
	return apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// ManagedSeeds lists all ManagedSeeds.
func (c *Client) ManagedSeeds(ctx context.Context) ([]seedmanagementv1alpha1.ManagedSeed, error) {
	list := &List[seedmanagementv1alpha1.ManagedSeed]{}
	err := c.clients[seedmanagementv1alpha1.GroupVersion].Get().Resource("managedseeds").Do(ctx).Into(list)
	return list.Items, err
}

// GetRaw reads an object as the garden sends it.
func (c *Client) GetRaw(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) ([]byte, error) {
	client, known := c.clients[resource.GroupVersion()]
	if !known {
		return nil, fmt.Errorf("no kind of %s is known", resource.GroupVersion())
	}
	return follow.Raw(ctx, client.Get().NamespaceIfScoped(namespace, namespace != "").Resource(resource.Resource).Name(name))
}

// Secret implements the authorizer's Live.
func (c *Client) Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := c.Get(ctx, corev1.SchemeGroupVersion.WithResource("secrets"), namespace, name, secret)
	if IsAbsent(err) {
		return nil, nil
	}
	return secret, err
}

// Bare is the client for what has no kind, such as the version.
func (c *Client) Bare() rest.Interface { return c.bare }
