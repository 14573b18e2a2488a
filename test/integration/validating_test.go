package integration

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-project/espalier/internal/webhook/extensionvalidation"
	"github.com/espalier-project/espalier/test/env/harness"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// judgedKinds are the kinds that the validating webhooks judge, with an object of each that is refused, one that is admitted, and what the
// refusal says. The objects are given by what follows their metadata.
var judgedKinds = []struct{ kind, resource, scope, bad, good, why string }{
	{"BackupBucket", "backupbuckets", "Cluster", `{type: p, region: r}`, `{type: p, region: r, secretRef: {name: s}}`, "spec.secretRef.name: Required value: field is required"},
	{"BackupEntry", "backupentries", "Cluster", `{type: p, region: r, secretRef: {name: s}}`, `{type: p, bucketName: b, region: r, secretRef: {name: s}}`, "spec.bucketName: Required value: field is required"},
	{"Bastion", "bastions", "Namespaced", `{type: p, userData: aGk=}`, `{type: p, userData: aGk=, ingress: [{ipBlock: {cidr: 1.2.3.4/32}}]}`, "spec.ingress: Required value: field is required"},
	{"ContainerRuntime", "containerruntimes", "Namespaced", `{type: p, binaryPath: /b}`, `{type: p, binaryPath: /b, workerPool: {name: w}}`, "spec.workerPool.name: Required value: field is required"},
	{"ControlPlane", "controlplanes", "Namespaced", `{type: p, secretRef: {name: s}}`, `{type: p, region: r, secretRef: {name: s}}`, "spec.region: Required value: field is required"},
	{"DNSRecord", "dnsrecords", "Namespaced", `{type: p, secretRef: {name: s}, name: test, recordType: A, values: [1.2.3.4]}`, `{type: p, secretRef: {name: s}, name: a.example.com, recordType: A, values: [1.2.3.4]}`, `spec.name: Invalid value: "test": should be a domain`},
	{"Etcd", "etcds", "Namespaced", `{backup: {store: {prefix: x}}}`, `{backup: {store: {prefix: judged--x/judged}}}`, `spec.backup.store.prefix: Invalid value: "x": must contain object name and namespace`},
	{"Extension", "extensions", "Namespaced", `{}`, `{type: p}`, "spec.type: Required value: field is required"},
	{"Infrastructure", "infrastructures", "Namespaced", `{type: p, region: r}`, `{type: p, region: r, secretRef: {name: s}}`, "spec.secretRef.name: Required value: field is required"},
	{"Network", "networks", "Namespaced", `{type: p, podCIDR: 10.0.0.0/8, serviceCIDR: 10.0.0.0/16}`, `{type: p, podCIDR: 10.0.0.0/16, serviceCIDR: 10.1.0.0/16}`, `spec.serviceCIDR: Invalid value: "10.0.0.0/16": must not overlap`},
	{"OperatingSystemConfig", "operatingsystemconfigs", "Namespaced", `{purpose: foo}`, `{purpose: reconcile, files: [{path: /a, content: {inline: {data: x}}}]}`, `spec.purpose: Unsupported value: "foo": supported values: "provision", "reconcile"`},
	{"SelfHostedShootExposure", "selfhostedshootexposures", "Namespaced", `{type: p, port: 70000, endpoints: [{nodeName: a}]}`, `{type: p, port: 443, endpoints: [{nodeName: a}]}`, "spec.port: Invalid value: 70000: must be between 1 and 65535, inclusive"},
	{"Worker", "workers", "Namespaced", `{type: p, region: r, secretRef: {name: s}, pools: [{}]}`, `{type: p, region: r, secretRef: {name: s}, pools: []}`, "spec.pools[0].machineType: Required value: field is required"},
}

func groupOf(kind string) string {
	if kind == "Etcd" {
		return "druid.gardener.cloud"
	}
	return "extensions.gardener.cloud"
}

// extensionObject is one of a kind in the namespace "judged", or without one.
func extensionObject(t *testing.T, kind, scope, name, metadata, spec string) *unstructured.Unstructured {
	t.Helper()
	namespace := ""
	if scope == "Namespaced" {
		namespace = ", namespace: judged"
	}
	return decode(t, fmt.Sprintf("{apiVersion: %s/v1alpha1, kind: %s, metadata: {name: %s%s%s}, spec: %s}", groupOf(kind), kind, name, namespace, metadata, spec))
}

// TestValidatingWebhooks: an API server with the validating webhooks registered as resource-manager prints their configuration (WHC-13 to
// WHC-16): each kind is judged on creation and update, and nothing protected is deleted without a confirmation.
func TestValidatingWebhooks(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	t.Cleanup(cancel)
	create(ctx, t, "{apiVersion: v1, kind: Namespace, metadata: {name: judged}}")
	for _, k := range judgedKinds {
		installKind(ctx, t, k.kind, k.resource, groupOf(k.kind), k.scope)
	}
	process := startValidating(ctx, t)
	for _, k := range judgedKinds {
		t.Run(k.kind, func(t *testing.T) {
			bad := extensionObject(t, k.kind, k.scope, "judged", "", k.bad)
			if err := landscape.SeedClient.Create(ctx, bad); err == nil || !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), k.why) {
				t.Errorf("EV-1: created: %v, want %s", err, k.why)
			}
			good := extensionObject(t, k.kind, k.scope, "judged", "", k.good)
			if err := landscape.SeedClient.Create(ctx, good); err != nil {
				t.Fatalf("A13.3: %v", err)
			}
			worse := extensionObject(t, k.kind, k.scope, "judged", "", k.bad)
			worse.SetResourceVersion(good.GetResourceVersion())
			if err := landscape.SeedClient.Update(ctx, worse); err == nil || !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), k.why) {
				t.Errorf("EV-1: updated: %v, want %s", err, k.why)
			}
			checkDeletion(ctx, t, k.kind, good)
		})
	}
	t.Run("collections", func(t *testing.T) { checkCollections(ctx, t) })
	t.Run("definitions", func(t *testing.T) { checkDefinitions(ctx, t) })
	t.Run("nobody answers", func(t *testing.T) {
		expect.Equal(t, process.Stop(), 0, "resource-manager ended with")
		object := extensionObject(t, "Extension", "Namespaced", "unjudged", "", "{type: p}")
		if err := landscape.SeedClient.Create(ctx, object); err == nil || !apierrors.IsInternalError(err) {
			t.Errorf("DEP-5: without an answer an object was treated with %v", err)
		}
	})
}

// installKind installs a CRD that keeps whatever it is given.
func installKind(ctx context.Context, t *testing.T, kind, resource, group, scope string) {
	t.Helper()
	definition := decode(t, fmt.Sprintf(`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: %[2]s.%[3]s}, spec: {group: %[3]s, scope: %[4]s, names: {kind: %[1]s, listKind: %[1]sList, plural: %[2]s, singular: %[5]s}, versions: [{name: v1alpha1, served: true, storage: true, subresources: {status: {}}, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}`, kind, resource, group, scope, strings.ToLower(kind)))
	must.Succeed(t, landscape.SeedClient.Create(ctx, definition))
	t.Cleanup(func() { _ = landscape.SeedClient.Delete(context.WithoutCancel(ctx), definition) })
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(group + "/v1alpha1")
	list.SetKind(kind + "List")
	must.Succeed(t, harness.Poll(ctx, patience, func() error { return landscape.SeedClient.List(ctx, list) }))
}

func startValidating(ctx context.Context, t *testing.T) *harness.Process {
	t.Helper()
	dir := t.TempDir()
	process, err := harness.Run(harness.ProcessOptions{
		Binary: binary, Dir: dir, Source: landscape.Seed, Target: landscape.Seed,
		Config: map[string]any{
			"webhooks":    map[string]any{"crdDeletionProtection": map[string]any{"enabled": true}, "extensionValidation": map[string]any{"enabled": true}},
			"controllers": map[string]any{"clusterID": "seed-1", "resourceClass": "judged"},
		},
	})
	must.Succeed(t, err)
	t.Cleanup(func() { process.Stop() })
	must.Succeed(t, process.AwaitReady(ctx))
	command := exec.Command(binary, "webhooks", "--config="+filepath.Join(dir, "config.yaml"), "--url=https://127.0.0.1:"+strconv.Itoa(process.Web), "--ca-file="+filepath.Join(landscape.Seed.Dir, "ca.crt"), "--name=judged")
	command.Stderr = os.Stderr
	printed, err := command.Output()
	must.Succeed(t, err)
	if got, want := strings.Count(string(printed), "- admissionReviewVersions"), 2+len(extensionvalidation.Webhooks()); got != want {
		t.Fatalf("%d webhooks are registered, want %d:\n%s", got, want, printed)
	}
	create(ctx, t, string(printed))
	err = harness.Poll(ctx, patience, func() error {
		for _, k := range judgedKinds { // An API server learns of them soon, and not at once.
			if landscape.SeedClient.Create(ctx, extensionObject(t, k.kind, k.scope, "early", "", k.bad), client.DryRunAll) == nil {
				return fmt.Errorf("%s is not judged yet", k.kind)
			}
		}
		return nil
	})
	must.Succeed(t, err)
	return process
}

const unconfirmed = `must have a "confirmation.gardener.cloud/deletion" annotation to delete`

func confirm(ctx context.Context, t *testing.T, object client.Object) {
	t.Helper()
	patch := harness.MergePatch(map[string]any{"metadata": map[string]any{"annotations": map[string]any{"confirmation.gardener.cloud/deletion": "true"}}})
	must.Succeed(t, landscape.SeedClient.Patch(ctx, object, patch))
}

// checkDeletion: an object goes once its deletion is confirmed (DP-14), and a Bastion without that (DP-1).
func checkDeletion(ctx context.Context, t *testing.T, kind string, object *unstructured.Unstructured) {
	t.Helper()
	if kind != "Bastion" {
		for _, options := range [][]client.DeleteOption{nil, {client.DryRunAll}, {client.GracePeriodSeconds(0)}} {
			if err := landscape.SeedClient.Delete(ctx, object, options...); err == nil || !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), unconfirmed) {
				t.Errorf("DP-19: deleted with %v: %v", options, err)
			}
		}
		confirm(ctx, t, object)
	}
	expect.Succeed(t, landscape.SeedClient.Delete(ctx, object), "DP-1")
}

// checkCollections: an unconfirmed object of the namespace refuses a collection whole, whatever was selected (DP-12).
func checkCollections(ctx context.Context, t *testing.T) {
	names := map[string]string{"confirmed": `, labels: {going: "yes"}, annotations: {confirmation.gardener.cloud/deletion: "true"}`, "other": `, labels: {going: "no"}`}
	for name, metadata := range names {
		must.Succeed(t, landscape.SeedClient.Create(ctx, extensionObject(t, "Extension", "Namespaced", name, metadata, "{type: p}")))
	}
	kind := extensionObject(t, "Extension", "Namespaced", "", "", "{}")
	for what, options := range map[string][]client.DeleteAllOfOption{
		"all":               {client.InNamespace("judged")},
		"the confirmed one": {client.InNamespace("judged"), client.MatchingLabels{"going": "yes"}},
	} {
		err := landscape.SeedClient.DeleteAllOf(ctx, kind, options...)
		expect.ErrorContains(t, err, unconfirmed+": extensions.extensions.gardener.cloud judged/other", "WB-16: %s", what)
	}
	for name := range names {
		object := extensionObject(t, "Extension", "Namespaced", name, "", "{}")
		if err := landscape.SeedClient.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil || object.GetDeletionTimestamp() != nil {
			t.Errorf("DP-12: %s is not there any more: %v", name, err)
		}
	}
	confirm(ctx, t, extensionObject(t, "Extension", "Namespaced", "other", "", "{}"))
	if err := landscape.SeedClient.DeleteAllOf(ctx, kind, client.InNamespace("judged"), client.MatchingLabels{"going": "yes"}); err != nil {
		t.Errorf("DP-15: %v", err)
	}
	expect.Succeed(t, landscape.SeedClient.DeleteAllOf(ctx, kind, client.InNamespace("judged")), "DP-15")
}

// checkDefinitions: definitions with the label are protected, others are not (R13).
func checkDefinitions(ctx context.Context, t *testing.T) {
	installKind(ctx, t, "Plain", "plains", "judged.example", "Namespaced")
	installKind(ctx, t, "Guarded", "guardeds", "judged.example", "Namespaced")
	plain := decode(t, "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: plains.judged.example}}")
	guarded := decode(t, "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: guardeds.judged.example}}")
	must.Succeed(t, landscape.SeedClient.Patch(ctx, guarded, harness.MergePatch(map[string]any{"metadata": map[string]any{"labels": map[string]any{"gardener.cloud/deletion-protected": "true"}}})))
	expect.Succeed(t, landscape.SeedClient.Delete(ctx, plain), "R13")
	expect.ErrorContains(t, landscape.SeedClient.Delete(ctx, guarded), unconfirmed, "BH-DEL-1")
	confirm(ctx, t, guarded)
	expect.Succeed(t, landscape.SeedClient.Delete(ctx, guarded), "BH-DEL-1")
}
