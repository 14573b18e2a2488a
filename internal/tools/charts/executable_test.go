package charts

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// objects are the documents of a text.
func objects(text string) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for documents := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text))); ; {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		object := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict(document, &object.Object); err != nil {
			return nil, err
		}
		if len(object.Object) > 0 {
			all = append(all, object)
		}
	}
}

// rights are those of the roles among objects that are bound to a subject, each verb of each resource in its scope on its own.
func rights(all []*unstructured.Unstructured, bound func(role, subject string) bool) ([]string, error) {
	given := map[string]bool{}
	for _, object := range all {
		if object.GetKind() != "ClusterRoleBinding" && object.GetKind() != "RoleBinding" {
			continue
		}
		binding := rbacv1.RoleBinding{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &binding); err != nil {
			return nil, err
		}
		for _, subject := range binding.Subjects {
			if bound(binding.RoleRef.Name, subject.Name) {
				given[object.GetNamespace()+"/"+binding.RoleRef.Name] = true
			}
		}
	}
	var list []right
	for _, object := range all {
		if (object.GetKind() != "ClusterRole" && object.GetKind() != "Role") || !given[object.GetNamespace()+"/"+object.GetName()] {
			continue
		}
		role := rbacv1.Role{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &role); err != nil {
			return nil, err
		}
		for _, rule := range role.Rules {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, verb := range rule.Verbs {
						names := slices.Sorted(slices.Values(rule.ResourceNames))
						if len(names) == 0 {
							names = []string{""}
						}
						for _, name := range names {
							list = append(list, right{object.GetNamespace(), verb, group, resource, name})
						}
					}
				}
			}
		}
	}
	// Rights that another one gives, too, prove nothing.
	texts := []string{}
	for _, r := range list {
		if !slices.ContainsFunc(list, func(other right) bool { return other != r && other.covers(r) }) {
			texts = append(texts, fmt.Sprintf("%s: %s %s/%s %s", r.namespace, r.verb, r.group, r.resource, r.name))
		}
	}
	slices.Sort(texts)
	return slices.Compact(texts), nil
}

// right is the smallest one; an empty namespace or name is any.
type right struct{ namespace, verb, group, resource, name string }

func (r right) covers(other right) bool {
	within := func(mine, others, all string) bool { return mine == others || mine == all }
	return within(r.namespace, other.namespace, "") && within(r.verb, other.verb, "*") && within(r.group, other.group, "*") && within(r.resource, other.resource, "*") && within(r.name, other.name, "")
}

// agrees: the executable accepts the rendered configuration, and has for it the rights and the webhooks that are rendered.
func agrees(dir, name string, values map[string]any, r *rendered, config string) error {
	file := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return err
	}
	var clusters []string
	for _, cluster := range []string{"source", "target", "garden"} {
		if strings.Contains(config, "kind: AdmissionControllerConfiguration") == (cluster == "garden") {
			clusters = append(clusters, cluster)
		}
	}
	remote := at(values, "install.remote") == true
	content := map[string]any{}
	if err := yaml.Unmarshal([]byte(config), &content); err != nil {
		return err
	}
	for _, cluster := range clusters {
		printed, err := run(name, "rights", "--strict-config", "--config="+file, "--cluster="+cluster, "--service-account=n/a")
		if err != nil {
			return err
		}
		kubeconfig, _ := at(content, cluster+"ClientConnection.kubeconfig").(string)
		want := []string{}
		// The shoots of a folder are other clusters.
		elsewhere := kubeconfig != "" || cluster == "target" && at(content, "shootsDirectory") != nil
		if elsewhere == remote {
			all, err := objects(printed)
			if err != nil {
				return err
			}
			if want, err = rights(all, func(string, string) bool { return true }); err != nil {
				return err
			}
		}
		got, err := rights(r.Objects, func(role, _ string) bool { return strings.HasSuffix(role, ":"+cluster) })
		if err != nil {
			return err
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("rights in the %s: %s", cluster, diff)
		}
	}
	return nil
}

// TestExecutable: the executables accept what is rendered, need the rights that it gives, and serve the webhooks that it registers.
func TestExecutable(t *testing.T) {
	each(t, func(t *testing.T, name, c string, values map[string]any, r *rendered) {
		config := configurationText(t, r)
		expect.Succeed(t, agrees(t.TempDir(), name, values, r, config))
		expect.Succeed(t, registers(t.TempDir(), name, values, r, config))
		// The objects for another cluster come from the same values.
		values = with(with(values, "install.runtime", false), "install.remote", true)
		there := render(t, name, values)
		for _, object := range there.Objects {
			switch object.GetKind() {
			case "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
			default:
				t.Errorf("%s %s belongs into no other cluster", object.GetKind(), object.GetName())
			}
		}
		expect.Succeed(t, agrees(t.TempDir(), name, values, there, config), "in another cluster")
		expect.Succeed(t, registers(t.TempDir(), name, values, there, config), "in another cluster")
	})
}

// registers: the webhook configurations are those that the executable prints.
func registers(dir, name string, values map[string]any, r *rendered, config string) error {
	object, cluster := "gardener-"+name, map[string]string{"resource-manager": "target", "admission-controller": "garden"}[name]
	if cluster == "" {
		return nil // It has none.
	}
	file := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return err
	}
	content := map[string]any{}
	if err := yaml.Unmarshal([]byte(config), &content); err != nil {
		return err
	}
	kubeconfig, _ := at(content, cluster+"ClientConnection.kubeconfig").(string)
	prefix, _ := values["namePrefix"].(string)
	arguments := []string{"webhooks", "--config=" + file}
	registration := prefix + object
	if name == "resource-manager" {
		arguments = append(arguments, "--prefix="+prefix)
		if kubeconfig != "" || at(values, "installation.shoot") == true {
			registration += "-shoot"
			arguments = append(arguments, "--shoot")
		}
		if at(values, "installation.garden") == true {
			arguments = append(arguments, "--garden")
		}
	}
	arguments = append(arguments, "--name="+registration)
	if kubeconfig == "" {
		arguments = append(arguments, "--service="+namespace+"/"+prefix+object+":443")
	} else {
		arguments = append(arguments, "--url=https://"+prefix+object+"."+namespace)
	}
	if ca, ok := at(values, "webhookConfigurations.caBundle").(string); ok {
		bundle := filepath.Join(dir, "ca.crt")
		if err := os.WriteFile(bundle, []byte(ca), 0o600); err != nil {
			return err
		}
		arguments = append(arguments, "--ca-file="+bundle)
	}
	printed := ""
	if (kubeconfig != "") == (at(values, "install.remote") == true) {
		var err error
		if printed, err = run(name, arguments...); err != nil {
			return err
		}
	}
	want, err := objects(printed)
	if err != nil {
		return err
	}
	entries := func(list []*unstructured.Unstructured) map[string]any {
		all := map[string]any{}
		for _, object := range list {
			if strings.HasSuffix(object.GetKind(), "WebhookConfiguration") {
				webhooks, _ := object.Object["webhooks"].([]any)
				kept := []any{}
				for _, webhook := range webhooks {
					tidy(webhook.(map[string]any))
					restricts := strings.HasSuffix(fmt.Sprint(at(webhook.(map[string]any), "name")), "-restriction.gardener.cloud") && !strings.HasPrefix(fmt.Sprint(at(webhook.(map[string]any), "name")), "update-")
					if !restricts || restricted(values) {
						kept = append(kept, webhook)
					}
				}
				all[object.GetKind()+" "+object.GetName()] = kept
			}
		}
		return all
	}
	if diff := cmp.Diff(entries(want), entries(r.Objects)); diff != "" {
		return fmt.Errorf("webhooks: %s", diff)
	}
	return nil
}

// restricted reports whether values register the restrictions, which come with the authorizers.
func restricted(values map[string]any) bool {
	if given, ok := at(values, "global.admission.seedRestriction.enabled").(bool); ok {
		return given
	}
	return at(values, "global.rbac.seedAuthorizer.enabled") != false
}

// tidy removes from an entry what says nothing.
func tidy(entry map[string]any) {
	for _, key := range []string{"namespaceSelector", "objectSelector"} {
		if selector, ok := entry[key].(map[string]any); ok && len(selector) == 0 {
			delete(entry, key)
		}
	}
}

// switches are the paths of all fields "enabled" of a configuration, as the chart's schema has them.
func switches(schema map[string]any, path string) []string {
	var all []string
	properties, _ := schema["properties"].(map[string]any)
	for key, value := range properties {
		section, _ := value.(map[string]any)
		if key == "enabled" {
			all = append(all, path+"."+key)
			continue
		}
		all = append(all, switches(section, strings.TrimPrefix(path+"."+key, "."))...)
	}
	slices.Sort(all)
	return all
}

// TestAnyConfiguration: whatever is switched on, rendered rights and webhooks are those that the executable needs.
func TestAnyConfiguration(t *testing.T) {
	schema := map[string]any{}
	must.Succeed(t, yaml.Unmarshal(load(t, "resource-manager").Schema, &schema))
	configurationSchema, _ := at(schema, "properties.config").(map[string]any)
	paths := switches(configurationSchema, "")
	if len(paths) < 20 {
		t.Fatalf("there are %d switches", len(paths))
	}
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		values := map[string]any{}
		set := func(path string, value any) { values = with(values, path, value) }
		for _, path := range paths {
			// Older spellings are tried by their own, as both at once are refused.
			if !strings.Contains(path, "kubeletCSRApprover") && !strings.Contains(path, "controllers.node.") && !strings.Contains(path, "tokenValidator") && rapid.Bool().Draw(rt, path) {
				set("config."+path, true)
			}
		}
		invalidator := rapid.Bool().Draw(rt, "token invalidator")
		old := rapid.Bool().Draw(rt, "older spellings")
		for _, section := range []string{"controllers", "webhooks"} {
			set("config."+section+".tokenInvalidator.enabled", invalidator)
		}
		if at(values, "config.webhooks.kubernetesServiceHost.enabled") == true {
			set("config.webhooks.kubernetesServiceHost.host", "h")
		}
		if id := rapid.SampledFrom([]string{"", "a", "<cluster>", "<default>"}).Draw(rt, "cluster ID"); id != "" {
			set("config.controllers.clusterID", id)
		}
		if rapid.Bool().Draw(rt, "machines") {
			set("config.controllers.csrApprover.machineNamespace", "machines")
			set("config.webhooks.nodeAgentAuthorizer.machineNamespace", "other-machines")
		}
		if rapid.Bool().Draw(rt, "ingress controller") {
			set("config.controllers.networkPolicy.ingressControllerSelector", map[string]any{"namespace": "garden", "podSelector": map[string]any{}})
		}
		for _, path := range []string{"config.controllers.tokenRequestor.reviewTokens", "config.leaderElection.leaderElect", "config.controllers.networkPolicy.onlyForExistingPods"} {
			if rapid.Bool().Draw(rt, path+" is said") {
				set(path, rapid.Bool().Draw(rt, path))
			}
		}
		if rapid.Bool().Draw(rt, "some namespaces") {
			set("config.sourceClientConnection.namespaces", []any{"a", "b"})
			set("config.targetClientConnection.namespace", "c")
		}
		if rapid.Bool().Draw(rt, "another lease") {
			set("config.leaderElection.resourceNamespace", "leases")
			set("config.leaderElection.resourceName", "own")
		}
		if rapid.Bool().Draw(rt, "prefix") {
			set("namePrefix", "virtual-garden-")
		}
		set("installation", map[string]any{"shoot": rapid.Bool().Draw(rt, "shoot"), "garden": rapid.Bool().Draw(rt, "garden")})
		if old {
			for older, newer := range map[string]string{"controllers.node": "controllers.nodeCriticalComponents", "controllers.kubeletCSRApprover": "controllers.csrApprover"} {
				if value := at(values, "config."+newer); value != nil {
					set("config."+older, value)
					unstructured.RemoveNestedField(values, strings.Split("config."+newer, ".")...)
				}
			}
		}
		r, err := tryRender(t, "resource-manager", values)
		must.Succeed(rt, err)
		config := configurationText(t, r)
		expect.Succeed(rt, agrees(dir, "resource-manager", values, r, config), "%s", config)
		expect.Succeed(rt, registers(dir, "resource-manager", values, r, config), "%s", config)
	})
}
