// Package garden runs admission-controller as a process beside a real kube-apiserver that asks it, and works through that API server
// as gardenlets and extensions do.
package garden

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/espalier-project/espalier/test/env/harness"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

var suite *harness.GardenSuite

const patience = 15 * time.Second

// ordinary is the configuration of the suite's process.
func ordinary() map[string]any {
	return map[string]any{"logLevel": "debug", "server": map[string]any{"enableDebugHandlers": true, "resourceAdmissionConfiguration": limited}}
}

func TestMain(m *testing.M) {
	os.Exit(harness.RunGardenSuite(m, ordinary(), func(s *harness.GardenSuite) { suite = s }))
}

// versions of the kinds that tests name.
var versions = map[string]string{
	"BackupBucket": "core.gardener.cloud/v1beta1", "BackupEntry": "core.gardener.cloud/v1beta1", "CloudProfile": "core.gardener.cloud/v1beta1",
	"ControllerInstallation": "core.gardener.cloud/v1beta1", "ControllerRegistration": "core.gardener.cloud/v1beta1", "ControllerDeployment": "core.gardener.cloud/v1",
	"ExposureClass": "core.gardener.cloud/v1beta1", "InternalSecret": "core.gardener.cloud/v1beta1", "Project": "core.gardener.cloud/v1beta1",
	"SecretBinding": "core.gardener.cloud/v1beta1", "Seed": "core.gardener.cloud/v1beta1", "Shoot": "core.gardener.cloud/v1beta1", "ShootState": "core.gardener.cloud/v1beta1",
	"Bastion": "operations.gardener.cloud/v1alpha1", "CredentialsBinding": "security.gardener.cloud/v1alpha1", "WorkloadIdentity": "security.gardener.cloud/v1alpha1",
	"Gardenlet": "seedmanagement.gardener.cloud/v1alpha1", "ManagedSeed": "seedmanagement.gardener.cloud/v1alpha1",
	"Secret": "v1", "ConfigMap": "v1", "Namespace": "v1", "ServiceAccount": "v1", "Event": "v1",
	"Lease": "coordination.k8s.io/v1", "ClusterRoleBinding": "rbac.authorization.k8s.io/v1", "ClusterRole": "rbac.authorization.k8s.io/v1", "CertificateSigningRequest": "certificates.k8s.io/v1",
}

// object reads "Kind namespace/name" or "Kind name", with more fields as YAML.
func object(t *testing.T, identity, fields string) *unstructured.Unstructured {
	t.Helper()
	kind, name, _ := strings.Cut(identity, " ")
	o := &unstructured.Unstructured{Object: map[string]any{}}
	if fields != "" {
		must.Succeed(t, yaml.Unmarshal([]byte(fields), &o.Object))
	}
	must.True(t, versions[kind] != "", "no version of %s", kind)
	o.SetAPIVersion(versions[kind])
	o.SetKind(kind)
	if namespace, rest, found := strings.Cut(name, "/"); found {
		o.SetNamespace(namespace)
		name = rest
	}
	o.SetName(name)
	return o
}

// create creates an object as the administrator; status is written, too.
func create(t *testing.T, identity, fields string) *unstructured.Unstructured {
	t.Helper()
	o := object(t, identity, fields)
	status, hasStatus := o.Object["status"]
	if err := suite.Client.Create(t.Context(), o); err != nil {
		t.Fatalf("creating %s: %v", identity, err)
	}
	if hasStatus {
		patch := harness.MergePatch(map[string]any{"status": status})
		if err := suite.Client.Status().Patch(t.Context(), o, patch); err != nil {
			t.Fatalf("status of %s: %v", identity, err)
		}
	}
	return o
}

func namespaceOf(t *testing.T, name, project string) {
	t.Helper()
	create(t, "Namespace "+name, "metadata: {labels: {project.gardener.cloud/name: "+project+"}}")
}

// gardenlet returns the client of a seed's gardenlet.
func gardenlet(t *testing.T, seed string) client.Client {
	t.Helper()
	cl, err := suite.Gardenlet(seed)
	must.Succeed(t, err)
	return cl
}

// extension returns the client of an extension on a seed, with a token of its ServiceAccount.
func extension(t *testing.T, seed, name string) client.Client {
	t.Helper()
	return account(t, "seed-"+seed, name)
}

// account returns the client of a new ServiceAccount.
func account(t *testing.T, namespace, name string) client.Client {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	must.Succeed(t, suite.Client.Create(t.Context(), account))
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](3600)}}
	must.Succeed(t, suite.Client.SubResource("token").Create(t.Context(), account, request))
	config := rest.AnonymousClientConfig(suite.REST)
	config.BearerToken = request.Status.Token
	config.QPS = -1
	cl, err := client.New(config, client.Options{Scheme: harness.Scheme()})
	must.Succeed(t, err)
	return cl
}

// do does what a verb says with an object.
func do(ctx context.Context, cl client.Client, verb string, o *unstructured.Unstructured) error {
	verb, subresource, _ := strings.Cut(verb, "/")
	o = o.DeepCopy()
	patch := harness.MergePatch(map[string]any{"metadata": map[string]any{"annotations": map[string]any{"touched": "yes"}}})
	switch verb {
	case "get":
		return cl.Get(ctx, client.ObjectKeyFromObject(o), o)
	case "list":
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(o.GetAPIVersion())
		list.SetKind(o.GetKind() + "List")
		var options []client.ListOption
		if o.GetNamespace() != "" {
			options = append(options, client.InNamespace(o.GetNamespace()))
		}
		if o.GetName() != "" {
			options = append(options, client.MatchingFields{"metadata.name": o.GetName()})
		}
		if labels := o.GetLabels(); labels != nil {
			options = append(options, client.MatchingLabels(labels))
		}
		return cl.List(ctx, list, options...)
	case "create":
		return cl.Create(ctx, o)
	case "patch":
		if subresource == "status" {
			return cl.Status().Patch(ctx, o, harness.MergePatch(map[string]any{"status": map[string]any{"observedGeneration": 1}}))
		}
		return cl.Patch(ctx, o, patch)
	case "delete":
		return cl.Delete(ctx, o)
	}
	return fmt.Errorf("no verb %q", verb)
}

// wantForbidden wants a refusal whose message has a text.
func forbidden(err error, text string) error {
	switch {
	case err == nil:
		return fmt.Errorf("it is allowed")
	case !apierrors.IsForbidden(err):
		return fmt.Errorf("it failed otherwise: %w", err)
	case !strings.Contains(err.Error(), text):
		return fmt.Errorf("it is refused with %q, want %q", err, text)
	}
	return nil
}

// eventually repeats a check: what was just written reaches the graph a moment later.
func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	expect.Succeed(t, harness.Poll(t.Context(), patience, check), "%s", what)
}
