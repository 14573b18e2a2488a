package simulation

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	"github.com/espalier-project/espalier/test/fake"
)

// Invariants of the Node controllers.
const (
	waitsForAll     = "a Node keeps the taint until all that is critical is ready"
	touchesTaint    = "of a Node one taint and one annotation change"
	becomesFree     = "a Node whose critical components are ready is free"
	becomesDelayed  = "each Node has its delay"
	criticalTaint   = "node.gardener.cloud/critical-components-not-ready"
	criticalLabel   = "node.gardener.cloud/critical-component"
	delayAnnotation = "node-agent.gardener.cloud/reconciliation-delay"
	serialSecret    = "serial"
)

// nodes is a world of Nodes that wait for their critical components.
type nodes struct {
	*stage
	// waiting are the Nodes of which a critical component is not ready.
	waiting since
}

func newNodes(s *stage) act { return &nodes{stage: s, waiting: since{}} }

func (n *nodes) configure(cfg *config.ResourceManagerConfiguration) {
	cfg.Controllers.NodeCriticalComponents = config.NodeCriticalComponentsControllerConfig{Enabled: true}
	cfg.Controllers.NodeAgentReconciliationDelay = config.NodeAgentReconciliationDelayControllerConfig{Enabled: true, MaxDelay: &metav1.Duration{Duration: 5 * time.Minute}}
}

var criticalSet = keyOf("apps", "daemonsets", "kube-system", "critical")

func podOn(node string) fake.Key {
	return keyOf("", "pods", "kube-system", "critical-"+node)
}

func (n *nodes) populate() {
	n.do(Step{Do: "daemonset"})
	n.do(Step{Do: "node"})
	n.do(Step{Do: "node", A: 1})
}

func (n *nodes) do(step Step) {
	node := nodeKey(step.A % 3)
	critical := object{criticalLabel: "true"}
	switch step.Do {
	case "node":
		at := node
		at.Name = ""
		set := object{}
		if step.B%4 == 3 {
			set["worker.gardener.cloud/gardener-node-agent-secret-name"] = serialSecret
		}
		n.request(n.target, http.MethodPost, n.pathOf(n.target, at), object{"metadata": object{"name": node.Name, "labels": set}, "spec": object{"taints": []any{
			object{"key": "first", "effect": "PreferNoSchedule"}, object{"key": criticalTaint, "effect": "NoSchedule"}, object{"key": "last", "effect": "PreferNoSchedule"},
		}}})
	case "node-delete":
		n.remove(n.target, node)
	case "taint":
		n.lock.Lock()
		o := n.target.GetLocked(node)
		n.lock.Unlock()
		if o == nil {
			return
		}
		o = runtime.DeepCopyJSON(o)
		spec, _ := o["spec"].(map[string]any)
		taints, _ := spec["taints"].([]any)
		key := []string{criticalTaint, fmt.Sprintf("more%d", step.B)}[step.B%2]
		if !strings.Contains(marshal(taints), `"`+key+`"`) {
			spec["taints"] = append(taints, object{"key": key, "effect": "PreferNoSchedule"})
			n.request(n.target, http.MethodPut, n.pathOf(n.target, node), o)
		}
	case "daemonset":
		n.put(n.target, criticalSet, object{"metadata": object{"labels": critical}, "spec": object{
			"selector": object{"matchLabels": critical}, "template": object{"metadata": object{"labels": critical}, "spec": object{
				"tolerations": []any{object{"operator": "Exists"}}, "containers": []any{object{"name": "c", "image": "i"}}}},
		}})
	case "daemonset-delete":
		n.remove(n.target, criticalSet)
	case "ready":
		n.status(n.target, podOn(node.Name), object{"phase": "Running", "conditions": []any{object{"type": "Ready", "status": []string{"True", "True", "False"}[step.B%3]}}})
	case "pod-delete":
		n.remove(n.target, podOn(node.Name))
	case "csi":
		switch step.B % 3 {
		case 0:
			n.patch(n.target, podOn(node.Name), object{"metadata": object{"annotations": object{"node.gardener.cloud/wait-for-csi-node-x": "x.example.org"}}})
		case 1:
			n.put(n.target, keyOf("storage.k8s.io", "csinodes", "", node.Name), object{"spec": object{"drivers": []any{object{"name": "x.example.org", "nodeID": node.Name}}}})
		case 2:
			n.remove(n.target, keyOf("storage.k8s.io", "csinodes", "", node.Name))
		}
	case "serial":
		n.put(n.target, keyOf("", "secrets", "kube-system", serialSecret), object{"metadata": object{
			"labels": object{"gardener.cloud/role": "operating-system-config"}, "annotations": object{"reconciliation.osc.node-agent.gardener.cloud/serial": strconv.FormatBool(step.B%2 == 0)},
		}})
	}
}

// play makes a Pod of the DaemonSet for each Node, and removes what has neither.
func (n *nodes) play(objects map[fake.Key]object) {
	set := objects[criticalSet]
	for key, o := range objects {
		if key.Resource != "nodes" {
			continue
		}
		if pod := podOn(key.Name); set != nil && objects[pod] == nil {
			n.put(n.target, pod, object{"metadata": object{
				"labels":          object{criticalLabel: "true"},
				"ownerReferences": []any{object{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": criticalSet.Name, "uid": fake.Text(set, "metadata", "uid"), "controller": true}},
			}, "spec": object{"nodeName": fake.Text(o, "metadata", "name"), "containers": []any{object{"name": "c", "image": "i"}}}})
		}
	}
	for key, o := range objects {
		if name, isPod := strings.CutPrefix(key.Name, "critical-"); isPod && key.Resource == "pods" && (objects[nodeKeyOf(name)] == nil || set == nil || owner(o) != fake.Text(set, "metadata", "uid")) {
			n.remove(n.target, key)
		}
	}
}

func nodeKeyOf(name string) fake.Key { return keyOf("", "nodes", "", name) }

func owner(o object) string {
	references, _ := fake.Meta(o)["ownerReferences"].([]any)
	if len(references) == 0 {
		return ""
	}
	uid, _ := references[0].(map[string]any)["uid"].(string)
	return uid
}

// ready reports whether all that is critical on a Node is ready.
func (n *nodes) ready(node string) bool {
	set, pod := n.target.GetLocked(criticalSet), n.target.GetLocked(podOn(node))
	if pod == nil {
		return set == nil
	}
	if set != nil && owner(pod) != fake.Text(set, "metadata", "uid") || condition(pod, "Ready") != "True" {
		return false
	}
	driver := fake.Text(pod, "metadata", "annotations", "node.gardener.cloud/wait-for-csi-node-x")
	return driver == "" || strings.Contains(marshal(n.target.GetLocked(keyOf("storage.k8s.io", "csinodes", "", node))), driver)
}

func (n *nodes) look() {
	for i := range 3 {
		key := nodeKey(i)
		n.waiting.note(key, n.target.GetLocked(key) != nil && !n.ready(key.Name))
	}
}

func taintsOf(o object) (critical bool, others string) {
	spec, _ := o["spec"].(map[string]any)
	taints, _ := spec["taints"].([]any)
	for _, taint := range taints {
		key, _ := taint.(map[string]any)["key"].(string)
		if key == criticalTaint {
			critical = true
			continue
		}
		others += key + " "
	}
	return critical, others
}

func (n *nodes) changed(cluster string, c fake.Change) {
	if !isInstance(c.By) || c.Key.Resource == "events" && c.Verb == "create" {
		return
	}
	what := fmt.Sprintf("%s %ss %s %s", c.By, c.Verb, cluster, c.Key)
	if cluster != "target" || c.Key.Resource != "nodes" || c.Verb != "patch" {
		n.violateLocked(touchesTaint, "%s", what)
		return
	}
	was, before := taintsOf(c.Before)
	is, after := taintsOf(c.After)
	if rest := onlyChanges(c, "metadata annotations "+delayAnnotation, "spec taints"); rest != "" || before != after || is && !was {
		n.violateLocked(touchesTaint, "%s: %s -> %s: %s", what, before, after, rest)
	}
	if was && !is && n.waiting.before(c.Key, time.Now().Add(-patience-n.lag)) && !n.excused() {
		n.violateLocked(waitsForAll, "%s: what is critical is not ready since %v", what, n.waiting[c.Key].Sub(n.begin))
	}
}

func (n *nodes) settled() {
	n.lock.Lock()
	defer n.lock.Unlock()
	secret := n.target.GetLocked(keyOf("", "secrets", "kube-system", serialSecret))
	serial := fake.Text(secret, "metadata", "annotations", "reconciliation.osc.node-agent.gardener.cloud/serial") == "true"
	isSerial := func(o object) bool {
		return serial && fake.Text(o, "metadata", "labels", "worker.gardener.cloud/gardener-node-agent-secret-name") == serialSecret
	}
	count, next := 0, 0
	for i := range 3 {
		if o := n.target.GetLocked(nodeKey(i)); o != nil && !isSerial(o) {
			count++
		}
	}
	for i := range 3 {
		o := n.target.GetLocked(nodeKey(i))
		if o == nil {
			continue
		}
		if tainted, _ := taintsOf(o); tainted && n.ready(nodeKey(i).Name) {
			n.violateLocked(becomesFree, "%s has the taint: %s", nodeKey(i), shown(o))
		}
		want := ""
		if !isSerial(o) {
			want = time.Duration(float64(next) * (300 / float64(count)) * float64(time.Second)).String()
			next++
		}
		if got := fake.Text(o, "metadata", "annotations", delayAnnotation); got != want {
			n.violateLocked(becomesDelayed, "%s has the delay %q and should have %q", nodeKey(i), got, want)
		}
	}
}
