package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-project/espalier/test/env/harness"
)

// webhooks are those of resource-manager that the tour shows.
var webhooks = map[string]any{
	"highAvailabilityConfig": map[string]any{"enabled": true, "defaultNotReadyTolerationSeconds": 60, "defaultUnreachableTolerationSeconds": 60},
	"kubernetesServiceHost":  map[string]any{"enabled": true, "host": "api.shoot.example"},
	"projectedTokenMount":    map[string]any{"enabled": true},
	"crdDeletionProtection":  map[string]any{"enabled": true},
	"extensionValidation":    map[string]any{"enabled": true},
}

type values = map[string]any

// register registers the webhooks as resource-manager prints them: those that change objects in the shoot, those that judge them in the seed.
func (t *tour) register(ctx context.Context, binary, dir string) error {
	url := fmt.Sprintf("https://127.0.0.1:%d", t.manager.Web)
	for _, to := range []struct {
		name, kind string
		client     client.Client
		arguments  []string
	}{
		{"shoot", "MutatingWebhookConfiguration", t.ShootClient, []string{"--shoot"}},
		{"seed", "ValidatingWebhookConfiguration", t.SeedClient, nil},
	} {
		printed, err := harness.Webhooks(binary, filepath.Join(dir, "config.yaml"), url, filepath.Join(t.Seed.Dir, "ca.crt"), to.arguments...)
		if err != nil {
			return err
		}
		for _, configuration := range printed {
			if configuration.GetKind() != to.kind {
				continue
			}
			if err := to.client.Create(ctx, configuration); err != nil {
				return err
			}
			entries, _, _ := unstructured.NestedSlice(configuration.Object, "webhooks")
			t.step("%d webhooks registered in the %s", len(entries), to.name)
		}
	}
	return nil
}

// showWebhooks shows what becomes of objects that the API servers of shoot and seed ask about.
func (t *tour) showWebhooks(ctx context.Context) error {
	t.heading("The shoot's kube-apiserver has resource-manager complete what is created")
	if err := t.showSpread(ctx); err != nil {
		return err
	}
	if err := t.showToken(ctx); err != nil {
		return err
	}
	t.heading("The seed's kube-apiserver has resource-manager judge extension resources")
	return t.showJudged(ctx)
}

// showSpread creates a Deployment in a namespace that asks for high availability.
func (t *tour) showSpread(ctx context.Context) error {
	const dashboard, prefix = "kubernetes-dashboard", "high-availability-config.resources.gardener.cloud/"
	asks := harness.Object("v1", "Namespace", "", dashboard)
	asks.SetLabels(map[string]string{prefix + "consider": "true"})
	asks.SetAnnotations(map[string]string{prefix + "failure-tolerance-type": "zone", prefix + "zones": "a,b"})
	if err := t.ShootClient.Create(ctx, asks); err != nil {
		return err
	}
	deployment := harness.Object("apps/v1", "Deployment", dashboard, "dashboard")
	deployment.SetLabels(map[string]string{prefix + "type": "server", "resources.gardener.cloud/managed-by": "gardener"})
	labels := values{"app": "dashboard"}
	deployment.Object["spec"] = values{
		"replicas": int64(1), "selector": values{"matchLabels": labels},
		"template": values{"metadata": values{"labels": labels}, "spec": values{"containers": []any{values{"name": "dashboard", "image": "dashboard"}}}},
	}
	created, err := createChanged(ctx, t.ShootClient, deployment, func(o *unstructured.Unstructured) bool {
		_, found, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "topologySpreadConstraints")
		return found
	})
	if err != nil {
		return err
	}
	replicas, _, _ := unstructured.NestedInt64(created.Object, "spec", "replicas")
	constraints, _, _ := unstructured.NestedSlice(created.Object, "spec", "template", "spec", "topologySpreadConstraints")
	var over []string
	for _, constraint := range constraints {
		over = append(over, fmt.Sprint(constraint.(values)["topologyKey"]))
	}
	if replicas != 2 || len(over) != 2 {
		return fmt.Errorf("the Deployment has %d replicas, spread over %v; want 2, over hosts and zones", replicas, over)
	}
	t.step("Deployment %s/dashboard was sent with 1 replica; it has %d, spread over %s", dashboard, replicas, strings.Join(over, " and "))
	return nil
}

// showToken creates a Pod whose ServiceAccount mounts no token.
func (t *tour) showToken(ctx context.Context) error {
	account := harness.Object("v1", "ServiceAccount", "kube-system", "agent")
	account.Object["automountServiceAccountToken"] = false
	if err := t.ShootClient.Create(ctx, account); err != nil {
		return err
	}
	pod := harness.Object("v1", "Pod", "kube-system", "agent")
	pod.Object["spec"] = values{"serviceAccountName": "agent", "containers": []any{values{"name": "agent", "image": "agent"}}}
	created, err := createChanged(ctx, t.ShootClient, pod, func(o *unstructured.Unstructured) bool {
		volumes, _, _ := unstructured.NestedSlice(o.Object, "spec", "volumes")
		return len(volumes) > 0
	})
	if err != nil {
		return err
	}
	volumes, _, _ := unstructured.NestedSlice(created.Object, "spec", "volumes")
	containers, _, _ := unstructured.NestedSlice(created.Object, "spec", "containers")
	env, _, _ := unstructured.NestedSlice(containers[0].(values), "env")
	if len(volumes) != 1 || len(env) != 1 {
		return fmt.Errorf("the Pod has the volumes %v and the environment %v; want one each", volumes, env)
	}
	t.step("Pod kube-system/agent was sent without them; it has the volume %v and the variable %v=%v", volumes[0].(values)["name"], env[0].(values)["name"], env[0].(values)["value"])
	return nil
}

// showJudged writes and deletes DNSRecords.
func (t *tour) showJudged(ctx context.Context) error {
	definition := harness.Object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "dnsrecords.extensions.gardener.cloud")
	definition.SetLabels(map[string]string{"gardener.cloud/deletion-protected": "true"})
	definition.Object["spec"] = values{
		"group": "extensions.gardener.cloud", "scope": "Namespaced",
		"names": values{"kind": "DNSRecord", "listKind": "DNSRecordList", "plural": "dnsrecords", "singular": "dnsrecord"},
		"versions": []any{values{"name": "v1alpha1", "served": true, "storage": true, "schema": values{
			"openAPIV3Schema": values{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}},
	}
	if err := t.SeedClient.Create(ctx, definition); err != nil {
		return err
	}
	record := func(name string) *unstructured.Unstructured {
		r := harness.Object("extensions.gardener.cloud/v1alpha1", "DNSRecord", namespace, "api")
		r.Object["spec"] = values{"type": "local", "secretRef": values{"name": "dns"}, "name": name, "recordType": "A", "values": []any{"10.9.8.7"}}
		return r
	}
	good := record("api.shoot.example")
	const invalid, unconfirmed = "should be a domain with at least two segments", "annotation to delete"
	for _, a := range []attempted{
		{"create a DNSRecord of the name \"api\"", invalid, func(cl client.Client) error { return cl.Create(ctx, record("api")) }},
		{"create a DNSRecord of the name \"api.shoot.example\"", "", func(cl client.Client) error { return cl.Create(ctx, good.DeepCopy()) }},
		{"delete it", unconfirmed, func(cl client.Client) error { return cl.Delete(ctx, good) }},
		{"delete the CustomResourceDefinition of all DNSRecords", unconfirmed, func(cl client.Client) error { return cl.Delete(ctx, definition) }},
		{"confirm the deletion of the DNSRecord", "", func(cl client.Client) error {
			return cl.Patch(ctx, good.DeepCopy(), harness.MergePatch(values{"metadata": values{"annotations": values{"confirmation.gardener.cloud/deletion": "true"}}}))
		}},
		{"delete it", "", func(cl client.Client) error { return cl.Delete(ctx, good) }},
	} {
		if err := a.show(ctx, t.script, t.SeedClient); err != nil {
			return err
		}
	}
	return nil
}

// showWebhooks shows what admission-controller makes of what users write.
func (g *gardenTour) showWebhooks(ctx context.Context) error {
	g.heading("What users write in the garden is judged, too")
	configurations, err := g.Webhooks(g.gatekeeper, "gardener-admission-controller-users")
	if err != nil {
		return err
	}
	const project = "garden-tour"
	inProject := harness.Object("v1", "Namespace", "", project)
	inProject.SetLabels(map[string]string{"gardener.cloud/role": "project", "project.gardener.cloud/name": "tour"})
	owner := harness.Object("core.gardener.cloud/v1beta1", "Project", "", "tour")
	owner.Object["spec"] = values{"namespace": project}
	binding := harness.Object("security.gardener.cloud/v1alpha1", "CredentialsBinding", project, "local")
	binding.Object["provider"] = values{"type": "local"}
	binding.Object["credentialsRef"] = values{"apiVersion": "v1", "kind": "Secret", "namespace": project, "name": "credentials"}
	for _, object := range append([]*unstructured.Unstructured{inProject, owner, binding}, configurations...) {
		if err := g.Client.Create(ctx, object); err != nil {
			return err
		}
	}
	g.step("their webhooks are registered")
	kubeconfig := harness.Object("v1", "Secret", project, "kubeconfig")
	kubeconfig.Object["data"] = values{"kubeconfig": base64.StdEncoding.EncodeToString([]byte(`{"apiVersion":"v1","kind":"Config","users":[{"name":"me","user":{"exec":{"apiVersion":"v1","command":"sh"}}}]}`))}
	for _, a := range []attempted{
		{"create a Secret with a kubeconfig that runs a program", "exec configurations are not supported", func(cl client.Client) error { return cl.Create(ctx, kubeconfig.DeepCopy()) }},
		{"delete the namespace of a project", "direct deletion of namespace", func(cl client.Client) error { return cl.Delete(ctx, inProject) }},
	} {
		if err := a.show(ctx, g.script, g.Client); err != nil {
			return err
		}
	}
	credentials, err := createChanged(ctx, g.Client, harness.Object("v1", "Secret", project, "credentials"), func(o *unstructured.Unstructured) bool { return len(o.GetLabels()) > 0 })
	if err != nil {
		return err
	}
	g.step("Secret %s/credentials was sent without a label; it has %s", project, strings.Join(slices.Sorted(maps.Keys(credentials.GetLabels())), ", "))
	return nil
}

// attempted is what a user does.
type attempted struct {
	what string
	// refused is a part of the reason why it is refused; empty means that it is done.
	refused string
	do      func(client.Client) error
}

// show does it, and says what came of it. An API server learns of registrations and definitions soon, and not at once: it is tried until it
// comes out as it should before it is done.
func (a attempted) show(ctx context.Context, out *script, cl client.Client) error {
	dry := client.NewDryRunClient(cl)
	if err := harness.Poll(ctx, patience, func() error { return a.judge(a.do(dry)) }); err != nil {
		return err
	}
	err := a.do(cl)
	if wrong := a.judge(err); wrong != nil {
		return wrong
	}
	if err == nil {
		out.step("done     %s", a.what)
		return nil
	}
	out.step("refused  %s\n            %s", a.what, err)
	return nil
}

func (a attempted) judge(err error) error {
	switch {
	case a.refused == "" && err != nil:
		return fmt.Errorf("%s: %w", a.what, err)
	case a.refused != "" && err == nil:
		return fmt.Errorf("%s: was not refused", a.what)
	case a.refused != "" && !strings.Contains(err.Error(), a.refused):
		return fmt.Errorf("%s: was refused because of something else: %w", a.what, err)
	}
	return nil
}

// createChanged creates an object once the API server asks the webhook that changes it, and returns what became of it.
func createChanged(ctx context.Context, cl client.Client, object *unstructured.Unstructured, changed func(*unstructured.Unstructured) bool) (*unstructured.Unstructured, error) {
	if err := harness.Poll(ctx, patience, func() error {
		tried := object.DeepCopy()
		if err := cl.Create(ctx, tried, client.DryRunAll); err != nil {
			return err
		}
		if !changed(tried) {
			return fmt.Errorf("%s %s/%s stays as it was sent", object.GetKind(), object.GetNamespace(), object.GetName())
		}
		return nil
	}); err != nil {
		return nil, err
	}
	return object, cl.Create(ctx, object)
}
