package kubectl

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
)

// executables are the names that the names of their webhook configurations contain.
var executables = []string{"resource-manager", "admission-controller", "node-agent-authorizer"}

var (
	leases                 = coordinationv1.SchemeGroupVersion.WithResource("leases")
	services               = corev1.SchemeGroupVersion.WithResource("services")
	endpointSlices         = discoveryv1.SchemeGroupVersion.WithResource("endpointslices")
	reviews                = authorizationv1.SchemeGroupVersion.WithResource("subjectaccessreviews")
	admissionRegistrations = admissionregistrationv1.SchemeGroupVersion
)

// unread records why an object was not read, and reports whether there is an error.
func (c *checker) unread(subject string, err error, ifMissing string) bool {
	switch {
	case err == nil:
		return false
	case apierrors.IsNotFound(err):
		c.say(isWrong, subject, "%s", ifMissing)
	default:
		c.say(isUnknown, subject, "it cannot be read: %v", err)
	}
	return true
}

// version returns the version of an API server.
func (r *reader) version(ctx context.Context) (text string, minor int, err error) {
	info, err := r.discovery.ServerVersionWithContext(ctx)
	if err != nil {
		return "", 0, err
	}
	minor, err = strconv.Atoi(strings.TrimRight(info.Minor, "+"))
	if info.Major != "1" && err == nil {
		err = fmt.Errorf("%s.%s is an unknown version", info.Major, info.Minor)
	}
	return info.GitVersion, minor, err
}

// definition checks the CustomResourceDefinition of ManagedResources.
func (c *checker) definition(ctx context.Context) {
	subject := "CustomResourceDefinition managedresources.resources.gardener.cloud"
	object, err := c.source.get(ctx, definitions, "", "managedresources.resources.gardener.cloud")
	if c.unread(subject, err, "the source does not have it") {
		return
	}
	definition, err := typed[apiextensionsv1.CustomResourceDefinition](object)
	if err != nil {
		c.say(isUnknown, subject, "%v", err)
		return
	}
	wanted, versions := resourcesv1alpha1.SchemeGroupVersion.Version, definition.Spec.Versions
	at := slices.IndexFunc(versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return v.Name == wanted && v.Served
	})
	switch {
	case at < 0:
		c.say(isWrong, subject, "version %s is not served", wanted)
	case versions[at].Subresources == nil || versions[at].Subresources.Status == nil:
		c.say(isWrong, subject, "version %s has no subresource status", wanted)
	default:
		c.say(isOK, subject, "version %s is served, with the subresource status", wanted)
	}
}

// needed are the rights in the namespace without which resource-manager cannot work.
var needed = []authorizationv1.ResourceAttributes{
	{Group: resourcesv1alpha1.SchemeGroupVersion.Group, Resource: "managedresources", Verb: "list"},
	{Group: resourcesv1alpha1.SchemeGroupVersion.Group, Resource: "managedresources", Verb: "watch"},
	{Group: resourcesv1alpha1.SchemeGroupVersion.Group, Resource: "managedresources", Verb: "patch"},
	{Group: resourcesv1alpha1.SchemeGroupVersion.Group, Resource: "managedresources", Subresource: "status", Verb: "patch"},
	{Resource: "secrets", Verb: "get"},
}

// rights checks the rights of the ServiceAccount.
func (c *checker) rights(ctx context.Context, f *checkFlags) error {
	config, _, err := f.source.load()
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(guarded(config, "reads", func(request *http.Request) bool {
		const reviews = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
		return request.Method == http.MethodPost && strings.HasSuffix(request.URL.Path, reviews)
	}))
	if err != nil {
		return err
	}
	subject := "ServiceAccount " + c.namespace + "/" + f.serviceAccount
	var lacks []string
	for _, attributes := range needed {
		attributes.Namespace = c.namespace
		review := &authorizationv1.SubjectAccessReview{
			TypeMeta: metav1.TypeMeta{APIVersion: authorizationv1.SchemeGroupVersion.String(), Kind: "SubjectAccessReview"},
			Spec: authorizationv1.SubjectAccessReviewSpec{
				ResourceAttributes: &attributes, User: "system:serviceaccount:" + c.namespace + ":" + f.serviceAccount,
				Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + c.namespace, "system:authenticated"},
			},
		}
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(review)
		if err != nil {
			return err
		}
		answer, err := client.Resource(reviews).Create(ctx, &unstructured.Unstructured{Object: content}, metav1.CreateOptions{})
		if err != nil {
			c.say(isUnknown, subject, "its rights cannot be asked: %v", err)
			return nil
		}
		if allowed, _, _ := unstructured.NestedBool(answer.Object, "status", "allowed"); !allowed {
			resource := attributes.Resource
			if attributes.Subresource != "" {
				resource += "/" + attributes.Subresource
			}
			lacks = append(lacks, attributes.Verb+" "+resource)
		}
	}
	if len(lacks) > 0 {
		c.say(isWrong, subject, "it lacks the rights to %s in the namespace; resource-manager rights prints all roles", strings.Join(lacks, ", "))
		return nil
	}
	c.say(isOK, subject, "it has the rights for ManagedResources and their Secrets in the namespace")
	return nil
}

// registration checks the Services and CA bundles of one webhook configuration.
func (c *checker) registration(ctx context.Context, subject string, object *unstructured.Unstructured) {
	registered, err := typed[admissionregistrationv1.ValidatingWebhookConfiguration](object) // Both kinds have these fields.
	if err != nil {
		c.say(isUnknown, subject, "%v", err)
		return
	}
	var wrong, unknown []string
	asked := map[string]bool{}
	for i := range registered.Webhooks {
		w := &registered.Webhooks[i]
		if err := checkBundle(w.ClientConfig.CABundle, w.ClientConfig.URL != nil, c.now); err != nil {
			wrong = append(wrong, fmt.Sprintf("webhook %s: %v", w.Name, err))
		}
		service := w.ClientConfig.Service
		if service == nil || asked[service.Namespace+"/"+service.Name] {
			continue
		}
		asked[service.Namespace+"/"+service.Name] = true
		ready, err := c.served(ctx, service)
		switch {
		case err != nil:
			unknown = append(unknown, err.Error())
		case ready != "":
			wrong = append(wrong, ready)
		}
		if c.certificate == "" {
			continue
		}
		object, err := c.target.get(ctx, secretResource, service.Namespace, c.certificate)
		if err != nil {
			unknown = append(unknown, fmt.Sprintf("Secret %s/%s cannot be read: %v", service.Namespace, c.certificate, err))
		} else if err := verifies(w.ClientConfig.CABundle, object, service, c.now); err != nil {
			wrong = append(wrong, fmt.Sprintf("webhook %s does not trust the certificate of Secret %s/%s: %v", w.Name, service.Namespace, c.certificate, err))
		}
	}
	switch {
	case len(wrong) > 0:
		c.say(isWrong, subject, "%s", strings.Join(wrong, "; "))
	case len(unknown) > 0:
		c.say(isUnknown, subject, "%s", strings.Join(unknown, "; "))
	default:
		c.say(isOK, subject, "%d webhooks, with valid CA bundles and ready endpoints", len(registered.Webhooks))
	}
}

// checkBundle checks certificates; webhooks at a URL may have none.
func checkBundle(bundle []byte, optional bool, now time.Time) error {
	if len(bundle) == 0 && optional {
		return nil
	}
	valid := errors.New("it has no CA bundle, so that the API server trusts no certificate")
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return fmt.Errorf("its CA bundle cannot be parsed: %w", err)
		}
		if now.After(certificate.NotAfter) || now.Before(certificate.NotBefore) {
			valid = fmt.Errorf("its CA bundle is valid from %s to %s", certificate.NotBefore.Format(time.RFC3339), certificate.NotAfter.Format(time.RFC3339))
			continue
		}
		return nil // One valid certificate is enough while a CA is rotated.
	}
	return valid
}

// verifies checks that API servers with a CA bundle accept the serving certificate of a Secret for a Service.
func verifies(bundle []byte, object *unstructured.Unstructured, service *admissionregistrationv1.ServiceReference, now time.Time) error {
	secret, err := asSecret(object)
	if err != nil {
		return err
	}
	block, rest := pem.Decode(secret.Data[corev1.TLSCertKey])
	if block == nil {
		return fmt.Errorf("it has no %s", corev1.TLSCertKey)
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return err
	}
	options := x509.VerifyOptions{DNSName: service.Name + "." + service.Namespace + ".svc", Roots: x509.NewCertPool(), Intermediates: x509.NewCertPool(), CurrentTime: now}
	options.Roots.AppendCertsFromPEM(bundle)
	options.Intermediates.AppendCertsFromPEM(rest)
	_, err = certificate.Verify(options)
	return err
}

// served returns the problem of a Service, "" if it has ready endpoints.
func (c *checker) served(ctx context.Context, service *admissionregistrationv1.ServiceReference) (wrong string, err error) {
	name := "Service " + service.Namespace + "/" + service.Name
	if _, err := c.target.get(ctx, services, service.Namespace, service.Name); apierrors.IsNotFound(err) {
		return name + " does not exist", nil
	} else if err != nil {
		return "", fmt.Errorf("%s cannot be read: %w", name, err)
	}
	objects, err := c.target.list(ctx, endpointSlices, service.Namespace, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + service.Name})
	if err != nil {
		return "", fmt.Errorf("the endpoints of %s cannot be read: %w", name, err)
	}
	slicesRead, err := typedAll[discoveryv1.EndpointSlice](objects)
	if err != nil {
		return "", err
	}
	for _, slice := range slicesRead {
		for i := range slice.Endpoints {
			if ready := slice.Endpoints[i].Conditions.Ready; ready == nil || *ready {
				return "", nil
			}
		}
	}
	return name + " has no ready endpoint", nil
}
