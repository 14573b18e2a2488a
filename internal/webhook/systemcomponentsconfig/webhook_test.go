package systemcomponentsconfig

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	"github.com/espalier-project/espalier/internal/endpoint/admission/admissiontest"
	"github.com/espalier-project/espalier/internal/feature"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// nodes are those of a target, each with the label of system components unless it is a stranger.
type nodes []node

type node struct {
	stranger bool
	taints   []corev1.Taint
}

func (n nodes) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	asked := client.ListOptions{}
	asked.ApplyOptions(options)
	for _, each := range n {
		label := labels.Set{"worker": "yes"}
		if each.stranger {
			label = nil
		}
		if asked.LabelSelector == nil || asked.LabelSelector.Matches(label) {
			object := corev1.Node{Spec: corev1.NodeSpec{Taints: each.taints}}
			object.Labels = label
			list.(*corev1.NodeList).Items = append(list.(*corev1.NodeList).Items, object)
		}
	}
	return nil
}

// away is a target that does not answer.
type away struct{}

func (away) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("away")
}

var (
	settings = &config.SystemComponentsConfigWebhookConfig{
		NodeSelector: map[string]string{"worker": "yes"}, PodNodeSelector: map[string]string{"place": "here"},
		PodTolerations: []corev1.Toleration{{Key: "c", Operator: corev1.TolerationOpExists}},
	}
	k1 = corev1.Taint{Key: "k1", Value: "v1", Effect: "NoExecute"}
	k2 = corev1.Taint{Key: "k2", Value: "v2", Effect: "NoSchedule"}
	k3 = corev1.Taint{Key: "k3", Effect: "NoSchedule"}
)

var properties = admissiontest.Pods{
	Decide:  Decide(settings, nodes{{taints: []corev1.Taint{k2, k1}}, {taints: []corev1.Taint{k3}}}),
	Touches: []string{"/spec/tolerations", "/spec/nodeSelector"},
	Spares:  []string{"containers", "initContainers", "ephemeralContainers"},
	Draw: func(rt *rapid.T, pod map[string]any) {
		admissiontest.Maybe(rt, pod["metadata"].(map[string]any), "ownerReferences", []any{map[string]any{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "x", "uid": "u", "controller": true}},
			[]any{map[string]any{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "x", "uid": "u", "controller": true}})
		admissiontest.Maybe(rt, pod["spec"].(map[string]any), "tolerations", nil, []any{map[string]any{"key": "c", "operator": "Exists"}}, []any{map[string]any{"key": "k1"}, map[string]any{"key": "k1"}, map[string]any{"key": "k3", "effect": "NoSchedule", "operator": "Exists", "tolerationSeconds": 1}})
		admissiontest.Maybe(rt, pod["spec"].(map[string]any), "nodeSelector", nil, map[string]any{}, map[string]any{"place": "there", "a": "b"})
	},
}

func TestProperties(t *testing.T) { properties.Check(t) }
func FuzzWebhook(f *testing.F)    { properties.Fuzz(f) }
func TestPlaces(t *testing.T) {
	const (
		configured = `{"key":"c","operator":"Exists"}`
		t1         = `{"key":"k1","operator":"Equal","value":"v1","effect":"NoExecute"}`
		t2         = `{"key":"k2","operator":"Equal","value":"v2","effect":"NoSchedule"}`
		t3         = `{"key":"k3","operator":"Exists","effect":"NoSchedule"}`
		here       = `"nodeSelector":{"place":"here"}`
	)
	owned := func(apiVersion, controller string) string {
		return `{"metadata":{"ownerReferences":[{"apiVersion":"` + apiVersion + `","kind":"DaemonSet","name":"x","uid":"u","controller":` + controller + `}]},"spec":{}}`
	}
	state := nodes{{taints: []corev1.Taint{
		{Key: "node.kubernetes.io/memory-pressure"}, {Key: "node.kubernetes.io/disk-pressure"}, {Key: "node.kubernetes.io/pid-pressure"}, {Key: "node.kubernetes.io/network-unavailable"},
		{Key: "node.kubernetes.io/unschedulable"}, {Key: "node.cloudprovider.kubernetes.io/uninitialized"}, {Key: "ToBeDeletedByClusterAutoscaler"},
		{Key: "node-role.kubernetes.io/control-plane", Effect: "NoSchedule"}, {Key: "x.kubernetes.io/y"},
	}}}
	for name, c := range map[string]struct {
		nodes     nodes
		pod, want string
	}{
		"BH-SC-1, no Node":                             {nil, `{"spec":{}}`, `{` + here + `,"tolerations":[` + configured + `]}`},
		"BH-SC-2/SEC-4, a toleration of the Pod":       {nil, `{"spec":{"tolerations":[{"key":"z"}]}}`, `{` + here + `,"tolerations":[{"key":"z"},` + configured + `]}`},
		"SEC-4/SEC-6, taints without and with a value": {nodes{{taints: []corev1.Taint{k3, k1}}}, `{"spec":{}}`, `{` + here + `,"tolerations":[` + configured + `,` + t1 + `,` + t3 + `]}`},
		"SEC-4/no taints":                              {nodes{{}, {}, {}}, `{"spec":{}}`, `{` + here + `,"tolerations":[` + configured + `]}`},
		"BH-SC-3, taints of Nodes":                     {nodes{{taints: []corev1.Taint{k3, k2, k1}}, {taints: []corev1.Taint{k1, k2, k3}}}, `{"spec":{}}`, `{` + here + `,"tolerations":[` + configured + `,` + t1 + `,` + t2 + `,` + t3 + `]}`},
		"SEC-5, states of Nodes":                       {state, `{"spec":{}}`, `{` + here + `,"tolerations":[` + configured + `]}`},
		"SEC-7, a taint that is configured":            {nodes{{taints: []corev1.Taint{{Key: "c"}}}}, `{"spec":{}}`, `{` + here + `,"tolerations":[` + configured + `]}`},
		"SEC-7, the same twice":                        {nil, `{"spec":{"tolerations":[{"key":"k","effect":"NoExecute","tolerationSeconds":10},{"key":"k","effect":"NoExecute","tolerationSeconds":10}]}}`, `{` + here + `,"tolerations":[{"key":"k","effect":"NoExecute","tolerationSeconds":10},` + configured + `]}`},
		"SEC-7/other seconds, another spelling":        {nodes{{taints: []corev1.Taint{k1}}}, `{"spec":{"tolerations":[{"key":"c","operator":"Exists","tolerationSeconds":0},{"key":"k1","value":"v1","effect":"NoExecute"}]}}`, `{` + here + `,"tolerations":[{"key":"c","operator":"Exists","tolerationSeconds":0},{"key":"k1","value":"v1","effect":"NoExecute"},` + configured + `,` + t1 + `]}`},
		"SEC-3, Nodes of others":                       {nodes{{stranger: true, taints: []corev1.Taint{k1}}}, `{"spec":{}}`, `{` + here + `,"tolerations":[` + configured + `]}`},
		"SEC-2, what is configured wins":               {nil, `{"spec":{"nodeSelector":{"place":"there","a":"b"},"tolerations":[` + configured + `]}}`, `{"nodeSelector":{"place":"here","a":"b"},"tolerations":[` + configured + `]}`},
		"SEC-1, Pods of DaemonSets":                    {nil, owned("apps/v1", "true"), `{}`},
		"SEC-1, another version":                       {nil, owned("apps/v1beta2", "true"), `{` + here + `,"tolerations":[` + configured + `]}`},
		"SEC-1, another owner":                         {nil, owned("apps/v1", "false"), `{` + here + `,"tolerations":[` + configured + `]}`},
		"SEC-1, an owner that is no controller":        {nil, owned("apps/v1", "null"), `{` + here + `,"tolerations":[` + configured + `]}`},
		"SEC-7/no seconds and none":                    {nil, `{"spec":{"tolerations":[{"key":"z"},{"key":"z","tolerationSeconds":0}]}}`, `{` + here + `,"tolerations":[{"key":"z"},{"key":"z","tolerationSeconds":0},` + configured + `]}`},
		"SEC-8/the Pod's own come first":               {nodes{{taints: []corev1.Taint{k1}}}, `{"spec":{"tolerations":[{"key":"z"},{"key":"a"}]}}`, `{` + here + `,"tolerations":[{"key":"z"},{"key":"a"},` + configured + `,` + t1 + `]}`},
	} {
		t.Run(name, func(t *testing.T) {
			result, admitted, err := admissiontest.Apply(Decide(settings, c.nodes), []byte(c.pod))
			if err != nil || !admitted {
				t.Fatal(admitted, err)
			}
			var got, want struct{ Spec corev1.PodSpec }
			must.Succeed(t, errors.Join(json.Unmarshal(result, &got), json.Unmarshal([]byte(`{"spec":`+c.want+`}`), &want)))
			expect.DeepEqual(t, got, want, "-want, +got")
		})
	}
}

// TestNothingConfigured: without selectors all Nodes count, and a Pod's selector stays away (SEC-2, SEC-3).
func TestNothingConfigured(t *testing.T) {
	response := admissiontest.Ask(Decide(&config.SystemComponentsConfigWebhookConfig{}, nodes{{stranger: true, taints: []corev1.Taint{k3}}}), admissionv1.Create, []byte(`{"spec":{}}`))
	expect.Equal(t, string(response.Patch), `[{"op":"add","path":"/spec/tolerations","value":[{"effect":"NoSchedule","key":"k3","operator":"Exists"}]}]`)
}

// TestSame: equal requests get the same bytes (WB-12), and a Pod that has all of it already gets none (SEC-9).
func TestSame(t *testing.T) {
	first := ""
	for _, n := range []nodes{{{taints: []corev1.Taint{k3, k2}}, {taints: []corev1.Taint{k1}}}, {{taints: []corev1.Taint{k1}}, {taints: []corev1.Taint{k2, k3}}}} {
		got := string(admissiontest.Ask(Decide(settings, n), admissionv1.Create, []byte(`{"spec":{}}`)).Patch)
		if first == "" {
			first = got
		}
		expect.Equal(t, got, first, "WB-12")
		once, admitted, err := admissiontest.Apply(Decide(settings, n), []byte(`{"spec":{}}`))
		if err != nil || !admitted {
			t.Fatal(admitted, err)
		}
		again := admissiontest.Ask(Decide(settings, n), admissionv1.Update, once)
		expect.True(t, again.Allowed && again.Patch == nil, "SEC-9: a Pod that has all of it gets %s", again.Patch)
	}
}

// TestAway: without the Nodes a Pod is refused (SEC-3), but for one that does not need them.
func TestAway(t *testing.T) {
	if got := admissiontest.Ask(Decide(settings, away{}), admissionv1.Create, []byte(`{"spec":{}}`)); got.Allowed || got.Result.Code != 403 || got.Result.Message != "failed to list nodes: away" {
		t.Errorf("SEC-3: got %+v", got.Result)
	}
	daemon := `{"metadata":{"ownerReferences":[{"apiVersion":"apps/v1","kind":"DaemonSet","name":"x","uid":"u","controller":true}]}}`
	got := admissiontest.Ask(Decide(settings, away{}), admissionv1.Create, []byte(daemon))
	expect.True(t, got.Allowed, "got %+v", got.Result)
}

// TestDocument compares the document with what the webhook does and with its registration (WHC-7, BH-SC-4, BH-SC-5, DEP-4, DEP-5, DEP-7).
func TestDocument(t *testing.T) {
	blocks := admissiontest.Shown(t, admissiontest.Document, Name, 3)
	expect.Contains(t, blocks[0], "systemComponentsConfig", "the first block is the configuration")
	cfg := struct {
		Webhooks struct {
			SystemComponentsConfig config.SystemComponentsConfigWebhookConfig `json:"systemComponentsConfig"`
		} `json:"webhooks"`
	}{}
	admissiontest.Read(t, blocks[0], &cfg)
	object := corev1.Node{}
	admissiontest.Read(t, blocks[1], &object)
	expect.Equal(t, object.Labels["worker.gardener.cloud/system-components"], "true", "the second block is a Node")
	admissiontest.Example(t, Decide(&cfg.Webhooks.SystemComponentsConfig, one{object}), blocks[2])
	t.Run("BH-SC-4/BH-SC-5 registration", func(t *testing.T) { admissiontest.Registered(t, Name, Registration(feature.Installation{})) })
	shoot := Registration(feature.Installation{Shoot: true})
	if shoot.NamespaceSelector.MatchLabels != nil || shoot.ObjectSelector.MatchLabels["resources.gardener.cloud/managed-by"] != "gardener" {
		t.Errorf("WHC-7: got %v, %v", shoot.NamespaceSelector, shoot.ObjectSelector)
	}
}

// one is a target with one Node.
type one struct{ node corev1.Node }

func (o one) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	asked := client.ListOptions{}
	asked.ApplyOptions(options)
	if asked.LabelSelector.Matches(labels.Set(o.node.Labels)) {
		list.(*corev1.NodeList).Items = []corev1.Node{o.node}
	}
	return nil
}

// TestNamespacesOfTheInstallation holds that the webhook's own label is asked for beside those of the installation's selector (DEP-3).
func TestNamespacesOfTheInstallation(t *testing.T) {
	entry := Registration(feature.Installation{Base: feature.Select(map[string]string{"role": "shoot"})})
	got := entry.NamespaceSelector.MatchLabels
	expect.True(t, got["role"] == "shoot" && got[Consider] == "true", "got %v", got)
}
