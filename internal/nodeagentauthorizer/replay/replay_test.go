package replay

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/espalier-project/espalier/internal/endpoint/auditlog"
	"github.com/espalier-project/espalier/test/gen/auditgen"
)

func object(kind, namespace, name string, more map[string]any) map[string]any {
	metadata := map[string]any{"name": name, "uid": "u-" + name}
	if namespace != "" {
		metadata["namespace"] = namespace
	}
	o := map[string]any{"apiVersion": "v1", "kind": kind, "metadata": metadata}
	for key, value := range more {
		o[key] = value
	}
	return o
}

func run(t *testing.T, o Options, write func(*auditgen.Log)) *Result {
	t.Helper()
	var text bytes.Buffer
	log := auditgen.New(&text)
	write(log)
	if err := log.Flush(); err != nil {
		t.Fatal(err)
	}
	o.Source = auditlog.Source{Files: []string{"-"}, Stdin: &text}
	r, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func cells(r *Result) []string {
	var all []string
	for _, c := range r.Cells() {
		all = append(all, strings.Join([]string{c.Rule, c.Client, c.Resource, strings.Join(c.Verbs, ","), c.Was + "→" + c.Is, c.Known, c.Example + " (" + c.At + ")", c.Reason}, " | "))
	}
	return all
}

// shoot is how a shoot came to be, and what its agents did.
func shoot(log *auditgen.Log) {
	log.Add(auditgen.Operator("create nodes /node-a", object("Node", "", "node-a", nil)))
	log.Add(auditgen.Operator("create nodes /node-b", object("Node", "", "node-b", nil)))
	log.Add(auditgen.Operator("create pods kube-system/p", object("Pod", "kube-system", "p", map[string]any{"spec": map[string]any{"nodeName": "node-a"}})))
	for range 3 {
		log.Add(auditgen.Agent("node-a", "get nodes /node-a"))
		log.Add(auditgen.Agent("node-a", "get pods kube-system/p"))
		log.Add(auditgen.Agent("node-b", "get pods kube-system/p").But())
		log.Add(auditgen.Agent("node-a", "list pods"))
		selected := auditgen.Agent("node-a", "list pods")
		selected.Query = "?fieldSelector=spec.nodeName%3Dnode-a"
		log.Add(selected)
		log.Add(auditgen.Agent("node-a", "watch nodes").But())
	}
}

// TestPolicies: with one switch set otherwise, the replay of node agents' requests prints what this switch decides, and nothing else.
func TestPolicies(t *testing.T) {
	if r := run(t, Options{}, shoot); r.Total != 0 || r.Decided != 18 || r.Undecided != 0 || r.Writes != 3 {
		t.Errorf("RPL-7: %d of %d undecided, and the log says otherwise: %q", r.Undecided, r.Decided, cells(r))
	}
	for name, c := range map[string]struct {
		second RuleSet
		want   []string
	}{
		"RPL-7/selectors":    {RuleSet{Selectors: true}, []string{"NA-9 | node-agent | pods | list | Allow→Deny |  | machine:node-a list pods (stdin line 7) | can only list/watch pods with spec.nodeName=node-a field selector"}},
		"RPL-7/watch of all": {RuleSet{AllowWatchAll: true}, []string{"NA-8 | node-agent | nodes | watch | Deny→Allow |  | machine:node-a watch nodes (stdin line 9) | this gardener-node-agent can only access node \"node-a\""}},
		"RPL-7/the same":     {RuleSet{}, nil},
		"RPL-7/by Machines":  {RuleSet{ByMachine: true}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := run(t, Options{Second: &c.second}, shoot)
			if diff := cmp.Diff(c.want, cells(r)); diff != "" || len(c.want) > 0 && r.Total != 3 {
				t.Errorf("%d differences: %s", r.Total, diff)
			}
			if c.second.ByMachine && r.Undecided == 0 {
				t.Error("what nobody knows is decided")
			}
		})
	}
}

// TestTimeTravel: agents are decided about by what was there at this time: in files with objects, and then as the log has it.
func TestTimeTravel(t *testing.T) {
	path := filepath.Join(t.TempDir(), "objects.json")
	content := `{"apiVersion":"v1","items":[
		{"kind":"Machine","metadata":{"name":"machine-a","labels":{"node":"node-a"}},"spec":{"nodeTemplate":{"metadata":{"labels":{"worker.gardener.cloud/gardener-node-agent-secret-name":"osc"}}}}},
		{"kind":"Node","metadata":{"name":"node-a"}},{"kind":"Pod","metadata":{"namespace":"n","name":"old"},"spec":{"nodeName":"node-a"}}],"kind":"List"}
		{"kind":"Secret","metadata":{"namespace":"kube-system","name":"osc"}}`
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	binding := auditgen.Operator("create pods/binding n/new", map[string]any{"kind": "Status"})
	binding.Request = map[string]any{"target": map[string]any{"kind": "Node", "name": "node-a"}}
	r := run(t, Options{Objects: []string{path}, First: RuleSet{ByMachine: true}}, func(log *auditgen.Log) {
		log.Add(auditgen.Agent("machine-a", "get secrets kube-system/osc"))
		log.Add(auditgen.Agent("machine-a", "get pods n/old"))
		log.Add(auditgen.Agent("machine-a", "get pods n/new").But()) // Nobody knows.
		log.Add(binding)
		log.Add(auditgen.Agent("machine-a", "get pods n/new"))
		log.Add(auditgen.Operator("delete pods n/old", map[string]any{"kind": "Status", "status": "Success"}))
		log.Add(auditgen.Agent("machine-a", "get pods n/old").But())
		log.Add(auditgen.Agent("machine-a", "get pods n/new").But()) // The log says otherwise.
		log.Add(auditgen.Operator("delete pods n/new", nil))
	})
	want := []string{"NA-9 | node-agent | pods | get | Deny→Allow | log | machine:machine-a get pods n/new (stdin line 8) | "}
	if diff := cmp.Diff(want, cells(r)); diff != "" || r.Objects != 4 || r.Writes != 2 || r.Bodiless != 1 || r.Undecided != 1 {
		t.Errorf("RPL-7, RPL-3: %d objects, %d writes, %d without a body, %d undecided: %s", r.Objects, r.Writes, r.Bodiless, r.Undecided, diff)
	}
}

// TestDryRunsAndCollections: a dry run changes no fact; the deletion of a collection does, of Pods that are gone at once.
func TestDryRunsAndCollections(t *testing.T) {
	pod := object("Pod", "n", "p", map[string]any{"spec": map[string]any{"nodeName": "node-a"}})
	list := map[string]any{"kind": "PodList", "items": []any{pod}}
	get := auditgen.Agent("node-a", "get pods n/p")
	r := run(t, Options{}, func(log *auditgen.Log) {
		log.Add(auditgen.Operator("create nodes /node-a", object("Node", "", "node-a", nil)))
		log.Add(auditgen.Operator("create pods n/p", pod))
		dry := auditgen.Operator("update pods n/p", object("Pod", "n", "p", map[string]any{"spec": map[string]any{"nodeName": "node-b"}}))
		dry.Query = "?dryRun=All"
		log.Add(dry)
		log.Add(auditgen.Operator("deletecollection pods n/", list)) // Their kubelets stop them first.
		log.Add(get)
		log.Add(auditgen.Operator("deletecollection pods n/", nil))
		log.Add(get)
		atOnce := auditgen.Operator("deletecollection pods n/", list)
		atOnce.Request = map[string]any{"kind": "DeleteOptions", "gracePeriodSeconds": 0}
		log.Add(atOnce)
		log.Add(get.But())
	})
	if r.Total != 0 || r.Undecided != 0 || r.Decided != 3 || r.Followed != (auditlog.Followed{Writes: 4, Unlisted: 1}) {
		t.Errorf("RPL-10, RPL-7: %d undecided of %d, %+v: %q", r.Undecided, r.Decided, r.Followed, cells(r))
	}
}

// TestObjects: what is wrong with a file of objects is told by its number, without any content.
func TestObjects(t *testing.T) {
	for name, c := range map[string]struct{ content, want string }{
		"RPL-7/no JSON":       {`{"kind":"Node","metadata":{"name":"a"}} secret`, "object 2: it is no JSON object"},
		"RPL-7/another kind":  {`{"kind":"Deployment"}`, `is a "Deployment"; wanted are`},
		"RPL-7/a wrong field": {`{"items":[{"kind":"Pod","spec":"secret"}]}`, "object 1: it is no object of resource pods"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "objects.json")
			if err := os.WriteFile(path, []byte(c.content), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := Run(t.Context(), Options{Objects: []string{path}})
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}
