package manifests

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-project/espalier/internal/feature"
	"github.com/espalier-project/espalier/internal/process"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

type settings struct {
	Webhooks struct {
		Names struct {
			Enabled bool `json:"enabled"`
		} `json:"names"`
	} `json:"webhooks"`
}

type row = feature.Row[settings, struct{}]

func rows() []row {
	start := func(context.Context, struct{}) error { return nil }
	return []row{
		{Name: "tokens", Start: start, Reads: func(*settings) []feature.Read {
			return []feature.Read{
				{Cluster: feature.Source, Kind: schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, Resource: "secrets", Form: feature.Metadata},
				{Cluster: feature.Target, Kind: schema.GroupVersionKind{Version: "v1", Kind: "Node"}, Resource: "nodes", ClusterScoped: true, Form: feature.Live},
			}
		}},
		{
			Name: "names", Switch: "webhooks.names.enabled", Path: "/webhooks/names", Start: start,
			Mutating: func(_ *settings, i feature.Installation) []admissionregistrationv1.MutatingWebhook {
				return []admissionregistrationv1.MutatingWebhook{{Name: i.Prefix + "names", NamespaceSelector: i.Namespaces()}, {Name: "own", NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"own": "1"}}}}
			},
			Validating: func(*settings, feature.Installation) []admissionregistrationv1.ValidatingWebhook {
				path := "/judge"
				config := admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Path: &path}}
				return []admissionregistrationv1.ValidatingWebhook{{Name: "judge", ClientConfig: config}}
			},
		},
	}
}

func printed(t *testing.T, command process.Subcommand, arguments ...string) (string, error) {
	t.Helper()
	set := pflag.NewFlagSet(command.Name, pflag.ContinueOnError)
	command.Flags(set)
	must.Succeed(t, set.Parse(arguments))
	var out strings.Builder
	err := command.Run(set, &out)
	return out.String(), err
}

func executable(cfg *settings, err error) Executable[settings, struct{}] {
	return Executable[settings, struct{}]{
		Name: "x", Account: "garden/x", Clusters: []feature.Cluster{feature.Source, feature.Target}, Rows: rows(), Places: true,
		Namespaces: func(*settings) map[feature.Cluster][]string {
			return map[feature.Cluster][]string{feature.Source: {"a"}}
		},
		Flags: func(*pflag.FlagSet) {}, Configuration: func(*pflag.FlagSet) (*settings, error) { return cfg, err },
	}
}

const wanted = `apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata:
  labels:
    app: virtual-garden-gardener-x
    remediation.webhook.shoot.gardener.cloud/exclude: "true"
  name: x
webhooks:
- admissionReviewVersions: null
  clientConfig:
    caBundle: $CA
    service:
      name: s
      namespace: ns
      path: /webhooks/names
      port: 9443
  name: virtual-garden-names
  namespaceSelector:
    matchLabels:
      role: shoot
  sideEffects: null
- admissionReviewVersions: null
  clientConfig:
    caBundle: $CA
    service:
      name: s
      namespace: ns
      path: /webhooks/names
      port: 9443
  name: own
  namespaceSelector:
    matchLabels:
      own: "1"
  sideEffects: null
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata:
  labels:
    app: virtual-garden-gardener-x
    remediation.webhook.shoot.gardener.cloud/exclude: "true"
  name: x
webhooks:
- admissionReviewVersions: null
  clientConfig:
    caBundle: $CA
    service:
      name: s
      namespace: ns
      path: /judge
      port: 9443
  name: judge
  sideEffects: null
`

func TestWebhooks(t *testing.T) {
	cfg := &settings{}
	certificate := signed(t)
	ca := authorityFile(t, certificate)
	got, err := printed(t, executable(cfg, nil).Webhooks(), "--url=https://h")
	expect.True(t, err == nil && got == "", "nothing is switched on: %s, %v", got, err)
	cfg.Webhooks.Names.Enabled = true
	got, err = printed(t, executable(cfg, nil).Webhooks(), "--service=ns/s:9443", "--ca-file="+ca, "--prefix=virtual-garden-", "--namespace-selector=role=shoot", "--name=x")
	must.Succeed(t, err)
	expect.DeepEqual(t, got, strings.ReplaceAll(wanted, "$CA", base64.StdEncoding.EncodeToString(certificate)))
	got, err = printed(t, executable(cfg, nil).Webhooks(), "--url=https://h:1/", "--name=other")
	expect.True(t, err == nil && strings.Contains(got, "url: https://h:1/webhooks/names\n") && strings.Contains(got, "name: other\n"),
		"got %s, %v", got, err)
	if got, err = printed(t, executable(cfg, nil).Webhooks(), "--url=https://h", "--only=names"); err != nil || !strings.Contains(got, "name: gardener-x\n") || !strings.Contains(got, "/webhooks/names") {
		t.Errorf("only one, under the usual name: got %s, %v", got, err)
	}
	for want, arguments := range map[string][]string{
		"--only: no webhook \"tokens\"": {"--url=https://h", "--only=tokens"},
		"either --url or --service":     {},
		"either --url or":               {"--url=https://h", "--service=a/b"},
		"--url: \"h\" is no URL":        {"--url=h"},
		"http://h\" is no URL":          {"--url=http://h"},
		"\"b\" is not <namespace>/":     {"--service=b"},
		"\"a/b/c\" is not":              {"--service=a/b/c"},
		"\"0\" is no port":              {"--service=a/b:0"},
		"\"70000\" is no port":          {"--service=a/b:70000"},
		"--ca-file: open /none":         {"--service=a/b", "--ca-file=/none"},
		"--namespace-selector: coul":    {"--service=a/b", "--namespace-selector=a=b=c"},
	} {
		expect.ErrorContains(t, expect.ErrorOf(printed(t, executable(cfg, nil).Webhooks(), arguments...)), want,
			"%v", arguments)
	}
}

// TestNamesOfConfigurations: the configurations for a shoot have another name than those for the cluster beside it, which may be the same
// one, and both have the labels of A14 (DEP-1, DPL-49).
func TestNamesOfConfigurations(t *testing.T) {
	cfg := &settings{}
	cfg.Webhooks.Names.Enabled = true
	const app, exclude = "  labels:\n    app: ", "    remediation.webhook.shoot.gardener.cloud/exclude: \"true\"\n"
	for name, c := range map[string]struct {
		places    bool
		arguments []string
		want      string
	}{
		"runtime":             {true, nil, app + "gardener-x\n" + exclude + "  name: gardener-x\n"},
		"shoot":               {true, []string{"--shoot"}, app + "gardener-x\n  name: gardener-x-shoot\n"},
		"virtual garden":      {true, []string{"--shoot", "--prefix=virtual-garden-"}, app + "virtual-garden-gardener-x\n  name: virtual-garden-gardener-x-shoot\n"},
		"a name of one's own": {true, []string{"--shoot", "--name=y"}, app + "gardener-x\n  name: \"y\"\n"},
		"one place":           {false, nil, "  name: gardener-x\n"},
	} {
		x := executable(cfg, nil)
		x.Places = c.places
		got, err := printed(t, x.Webhooks(), append([]string{"--url=https://h"}, c.arguments...)...)
		expect.True(t, err == nil && strings.Count(got, "metadata:\n"+c.want+"webhooks:\n") == 2,
			"%s: got %s, %v", name, got, err)
	}
}

// TestSubcommands: who has no webhooks prints none.
func TestSubcommands(t *testing.T) {
	with := executable(&settings{}, nil)
	without := with
	without.Rows = rows()[:1]
	a, b := len(with.Subcommands()), len(without.Subcommands())
	expect.True(t, a == 2 && b == 1, "%d commands with webhooks, %d without", a, b)
}

func TestRights(t *testing.T) {
	command := executable(&settings{}, nil).Rights
	const role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata:\n  name: espalier:x:source\n  namespace: a\nrules:\n- apiGroups:\n  - \"\"\n  resources:\n  - secrets\n  verbs:\n  - list\n  - watch\n---\n"
	got, err := printed(t, command(), "--service-account=ns/n")
	if err != nil || !strings.HasPrefix(got, role) || !strings.HasSuffix(got, "subjects:\n- kind: ServiceAccount\n  name: \"n\"\n  namespace: ns\n") {
		t.Errorf("got %s, %v", got, err)
	}
	got, err = printed(t, command(), "--cluster=target", "--service-account=user")
	if err != nil || !strings.Contains(got, "kind: ClusterRole\n") || !strings.HasSuffix(got, "subjects:\n- apiGroup: rbac.authorization.k8s.io\n  kind: User\n  name: user\n") {
		t.Errorf("got %s, %v", got, err)
	}
	if _, err = printed(t, command(), "--cluster=garden"); err == nil || err.Error() != `--cluster: "garden" is none of source, target` {
		t.Errorf("got %v", err)
	}
	wrong := errors.New("wrong configuration")
	if _, err = printed(t, executable(nil, wrong).Rights()); !errors.Is(err, wrong) {
		t.Errorf("got %v", err)
	}
}
