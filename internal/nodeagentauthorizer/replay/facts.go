// Package replay decides about the requests of node agents in an audit log once more: by one policy, compared with the
// log's decisions, or by two.
//
// Facts about Machines, Nodes, Pods, certificate requests and configurations come from files with objects, and from
// writes that the log has with their bodies, each before the next request is decided. Nothing is read from a cluster:
// about unknown objects, replay is undecided.
package replay

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	kjson "sigs.k8s.io/json"

	"github.com/espalier-project/espalier/internal/endpoint/auditlog"
	"github.com/espalier-project/espalier/internal/externalapi/kubernetes"
	machinev1alpha1 "github.com/espalier-project/espalier/internal/externalapi/machine/v1alpha1"
	"github.com/espalier-project/espalier/internal/nodeagentauthorizer/agent"
)

// known is a fact about an object: that it is there, or that it is gone.
type known[W any] struct {
	word W
	gone bool
}

// configuration is the state of a Secret with a configuration.
type configuration struct {
	references []agent.Reference
	pool       string
	marked     bool
	err        error
}

// facts are the known objects of a shoot.
type facts struct {
	machines       map[string]known[agent.Machine]
	nodes          map[string]known[agent.Node]
	pods           map[string]known[string]
	requests       map[string]known[string]
	configurations map[string]known[configuration]
	fromLog        map[string]bool
}

func newFacts() *facts {
	return &facts{
		machines: map[string]known[agent.Machine]{}, nodes: map[string]known[agent.Node]{}, pods: map[string]known[string]{},
		requests: map[string]known[string]{}, configurations: map[string]known[configuration]{}, fromLog: map[string]bool{},
	}
}

// view is the facts as an authorizer sees them.
type view struct {
	*facts
	selectors bool
}

func find[W any](in map[string]known[W], name string) (W, bool, error) {
	k, found := in[name]
	if !found {
		return k.word, false, agent.ErrUnseen
	}
	return k.word, !k.gone, nil
}

func (v view) Machine(_ context.Context, name string) (agent.Machine, bool, error) {
	return find(v.machines, name)
}

func (v view) Node(_ context.Context, name string) (agent.Node, bool, error) {
	return find(v.nodes, name)
}

func (v view) NodeOfPod(_ context.Context, namespace, name string) (string, bool, error) {
	return find(v.pods, namespace+"/"+name)
}

func (v view) UserOfCertificateRequest(_ context.Context, name string) (string, bool, error) {
	return find(v.requests, name)
}

func (v view) Configurations(context.Context) ([]string, error) {
	var names []string
	for name, k := range v.configurations {
		if !k.gone && k.word.marked {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

func (v view) PoolOf(_ context.Context, secret string) (string, bool, error) {
	c, found, err := find(v.configurations, secret)
	return c.pool, found && c.marked, err
}

func (v view) References(_ context.Context, secret string) ([]agent.Reference, bool, error) {
	c, found, err := find(v.configurations, secret)
	if err == nil {
		err = c.err
	}
	return c.references, found, err
}

func (v view) Selectors(context.Context) (bool, error) { return v.selectors, nil }

// set records an object of a resource; others change nothing. It reports whether there was a fact in it.
func (f *facts) set(resource string, body []byte) (key string, err error) {
	decode := func(into any) error { return kjson.UnmarshalCaseSensitivePreserveInts(body, into) }
	switch resource {
	case "machines":
		m := &machinev1alpha1.Machine{}
		err = decode(m)
		f.machines[m.Name] = known[agent.Machine]{word: agent.MachineOf(m)}
		key = m.Name
	case "nodes":
		n := &kubernetes.Node{}
		err = decode(n)
		now := agent.NodeOf(n)
		if before, found := f.nodes[n.Name]; found && !before.gone {
			now = now.After(before.word)
		}
		f.nodes[n.Name] = known[agent.Node]{word: now}
		key = n.Name
	case "pods":
		p := &kubernetes.Pod{}
		err = decode(p)
		key = p.Namespace + "/" + p.Name
		f.pods[key] = known[string]{word: p.Spec.NodeName}
	case "certificatesigningrequests":
		c := &kubernetes.CertificateSigningRequest{}
		err = decode(c)
		f.requests[c.Name] = known[string]{word: c.Spec.Username}
		key = c.Name
	case "secrets":
		s := &kubernetes.Secret{}
		err = decode(s)
		key = s.Name
		f.secret(s)
	}
	if err != nil {
		return "", errors.New("is no object of resource " + resource) // The decoder's error may repeat a part of the content.
	}
	return key, nil
}

func (f *facts) secret(s *kubernetes.Secret) {
	if s.Namespace != "kube-system" {
		return
	}
	c := configuration{}
	c.references, c.err = agent.ReferencesOf(s)
	c.pool, c.marked = s.Labels[agent.PoolLabel]
	f.configurations[s.Name] = known[configuration]{word: c}
}

// forget records that an object is gone.
func (f *facts) forget(resource, namespace, name string) {
	switch resource {
	case "machines":
		f.machines[name] = known[agent.Machine]{gone: true}
	case "nodes":
		f.nodes[name] = known[agent.Node]{gone: true}
	case "pods":
		f.pods[namespace+"/"+name] = known[string]{gone: true}
	case "certificatesigningrequests":
		f.requests[name] = known[string]{gone: true}
	case "secrets":
		if namespace == "kube-system" {
			f.configurations[name] = known[configuration]{gone: true}
		}
	}
}

// resources are those of which there are facts, by kind.
var resources = map[string]string{
	"Machine": "machines", "Node": "nodes", "Pod": "pods", "CertificateSigningRequest": "certificatesigningrequests", "Secret": "secrets",
}

// load reads the objects of a file: objects and lists of them as JSON, as kubectl get -o json prints them. It holds one object at a time: thirty
// thousand Pods are some 300 MB.
func (f *facts) load(path string) (int, error) {
	file, err := os.Open(path) //nolint:gosec // The caller names the file.
	if err != nil {
		return 0, err
	}
	defer func() { _ = file.Close() }()
	l := loader{facts: f, decoder: json.NewDecoder(bufio.NewReaderSize(file, 1<<20))}
	for {
		switch err := l.value(); {
		case errors.Is(err, io.EOF):
			return l.count, nil
		case err != nil:
			return l.count, fmt.Errorf("%s: object %d: it %w", path, l.count+1, err)
		}
	}
}

var errNoJSON = errors.New("is no JSON object")

// loader reads a file of objects.
type loader struct {
	facts   *facts
	decoder *json.Decoder
	count   int
}

// value reads an object, or the items of a list.
func (l *loader) value() error {
	start, err := l.decoder.Token()
	if errors.Is(err, io.EOF) {
		return io.EOF
	}
	if err != nil || start != json.Delim('{') {
		return errNoJSON
	}
	members, isList := map[string]json.RawMessage{}, false
	for l.decoder.More() {
		name, err := l.decoder.Token()
		if err != nil {
			return errNoJSON
		}
		if name == "items" {
			isList = true
			if err := l.items(); err != nil {
				return err
			}
			continue
		}
		var member json.RawMessage
		if err := l.decoder.Decode(&member); err != nil {
			return errNoJSON
		}
		members[name.(string)] = member //nolint:forcetypeassert // Names of members are texts.
	}
	if _, err := l.decoder.Token(); err != nil {
		return errNoJSON
	}
	if isList {
		return nil
	}
	object, err := json.Marshal(members)
	if err != nil {
		return errNoJSON
	}
	l.count++
	return l.facts.add(object)
}

func (l *loader) items() error {
	if start, err := l.decoder.Token(); err != nil || start != json.Delim('[') {
		return errNoJSON
	}
	for l.decoder.More() {
		var object json.RawMessage
		if err := l.decoder.Decode(&object); err != nil {
			return errNoJSON
		}
		if err := l.facts.add(object); err != nil {
			return err
		}
		l.count++
	}
	if _, err := l.decoder.Token(); err != nil {
		return errNoJSON
	}
	return nil
}

func (f *facts) add(object []byte) error {
	var said struct {
		Kind string `json:"kind"`
	}
	if err := json.Unmarshal(object, &said); err != nil {
		return errors.New("has no kind")
	}
	resource, wanted := resources[said.Kind]
	if !wanted {
		return fmt.Errorf("is a %q; wanted are %s", said.Kind, strings.Join(slices.Sorted(maps.Keys(resources)), ", "))
	}
	_, err := f.set(resource, object)
	return err
}

// isWrite reports whether an event changed an object of which there are facts.
func isWrite(e *auditlog.Event) bool {
	for _, resource := range resources {
		if e.Resource == resource {
			return e.Over() && e.Wrote("status", "binding")
		}
	}
	return false
}

// write records a write, and reports whether the log contains its result.
func (f *facts) write(e *auditlog.Event) bool {
	if e.Subresource == "binding" {
		return f.bind(e)
	}
	changes, isKnown := e.Changes()
	for i := range changes {
		if !f.change(e.Resource, &changes[i]) {
			return false
		}
	}
	return isKnown
}

func (f *facts) change(resource string, c *auditlog.Change) bool {
	if c.Gone {
		f.forget(strings.Clone(resource), c.Namespace, c.Name)
		return true
	}
	if c.Kind != "" && resources[c.Kind] != resource {
		return false
	}
	key, err := f.set(resource, c.Body)
	if err != nil || key == "" {
		return false
	}
	f.fromLog[resource+" "+key] = true
	return true
}

// bind records the Node that a scheduler has chosen.
func (f *facts) bind(e *auditlog.Event) bool {
	var binding struct {
		Target struct {
			Name string `json:"name"`
		} `json:"target"`
	}
	if e.RequestObject == "" || kjson.UnmarshalCaseSensitivePreserveInts([]byte(e.RequestObject), &binding) != nil || binding.Target.Name == "" {
		return false
	}
	key := strings.Clone(e.Namespace + "/" + e.Name)
	f.pods[key] = known[string]{word: binding.Target.Name}
	f.fromLog["pods "+key] = true
	return true
}
