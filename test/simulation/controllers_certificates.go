package simulation

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"maps"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/ptr"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	"github.com/espalier-project/espalier/test/fake"
)

// Invariants of the CSR approver.
const (
	approvesOwn    = "no certificate is approved but the asker's own"
	deniesJustly   = "nothing is denied that could have been approved all the time"
	decidesOnce    = "what is decided stays decided, and nothing else changes"
	leavesOthers   = "requests of others get no condition"
	becomesDecided = "every request is decided"
)

const machineNamespace = "machines"

// certificates is a world of Nodes, Machines and requests.
type certificates struct {
	*stage
	asked int
	// past are the Nodes and Machines that there were, each until the next one.
	past []population
}

// population is what there was at a time: the address of each Node, and the Node of each Machine.
type population struct {
	since           time.Time
	nodes, machines map[string]string
}

func newCertificates(s *stage) act { return &certificates{stage: s} }

func (t *certificates) configure(cfg *config.ResourceManagerConfiguration) {
	cfg.Controllers.CSRApprover = config.CSRApproverControllerConfig{Enabled: true, MachineNamespace: ptr.To(machineNamespace)}
}

func (t *certificates) populate() {
	for i := range 2 {
		t.do(Step{Do: "node", A: i})
		t.do(Step{Do: "machine", A: i})
		t.do(Step{Do: "ask", A: i})
	}
}

func nodeKey(i int) fake.Key { return keyOf("", "nodes", "", fmt.Sprintf("n%d", i)) }

func machineKey(i int) fake.Key {
	return keyOf("machine.sapcloud.io", "machines", machineNamespace, fmt.Sprintf("m%d", i))
}

func (t *certificates) do(step Step) {
	i := step.A % 3
	switch step.Do {
	case "node":
		key := nodeKey(i)
		at := key
		at.Name = ""
		t.request(t.target, http.MethodPost, t.pathOf(t.target, at), object{"metadata": object{"name": key.Name}})
		t.status(t.target, key, object{"addresses": []any{object{"type": "Hostname", "address": key.Name}, object{"type": "InternalIP", "address": fmt.Sprintf("10.0.%d.%d", i, step.B%2)}}})
	case "node-delete":
		t.remove(t.target, nodeKey(i))
	case "machine":
		labels := object{}
		if step.B%4 != 3 {
			labels["node"] = nodeKey((i + step.B/4) % 3).Name
		}
		t.remove(t.source, machineKey(i))
		t.put(t.source, machineKey(i), object{"apiVersion": "machine.sapcloud.io/v1alpha1", "kind": "Machine", "metadata": object{"labels": labels}})
	case "machine-delete":
		t.remove(t.source, machineKey(i))
	case "ask":
		t.ask(i, step.B)
	case "decide":
		for key, o := range t.pending() {
			t.request(t.target, http.MethodPut, t.pathOf(t.target, key)+"/approval", withCondition(o, []string{"Approved", "Denied"}[step.B%2]))
		}
	}
}

func (t *certificates) pending() map[fake.Key]object {
	t.lock.Lock()
	defer t.lock.Unlock()
	all := map[fake.Key]object{}
	for key, o := range t.target.AllLocked() {
		if key.Resource == "certificatesigningrequests" && decided(o) == "" {
			all[key] = o
		}
	}
	return all
}

func withCondition(o object, kind string) object {
	o = decode(marshal(o))
	o["status"] = object{"conditions": []any{object{"type": kind, "status": "True", "reason": "ByHand", "message": "by hand"}}}
	return o
}

// ask has somebody ask for a certificate. The request is repeated in annotations, for the oracle.
func (t *certificates) ask(i, variant int) {
	const bootstrap, agent = "system:bootstrap:abcdef", "gardener.cloud:node-agent:machine:"
	serving := variant%9 < 4
	user, subject, address := "system:node:"+nodeKey(i).Name, "system:node:"+nodeKey(i).Name, fmt.Sprintf("10.0.%d.0", i)
	switch variant % 9 {
	case 0, 1:
	case 2: // its neighbour's address
		address = fmt.Sprintf("10.0.%d.0", (i+1)%3)
	case 3: // its neighbour's name
		subject = "system:node:" + nodeKey((i+1)%3).Name
	case 4:
		user, subject = bootstrap, agent+machineKey(i).Name
	case 5:
		user, subject = agent+machineKey(i).Name, agent+machineKey(i).Name
	case 6: // its neighbour's machine
		user, subject = agent+machineKey(i).Name, agent+machineKey((i+1)%3).Name
	case 7:
		subject = agent + machineKey(i).Name
	case 8:
		user, subject = "admin", "somebody"
	}
	t.asked++
	name := fmt.Sprintf("csr-%d", t.asked)
	template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: subject}}
	signer, usages, groups := "kubernetes.io/kube-apiserver-client", []any{"digital signature", "client auth"}, []any{"system:authenticated"}
	if serving {
		signer, usages, groups = "kubernetes.io/kubelet-serving", []any{"digital signature", "server auth"}, []any{"system:nodes", "system:authenticated"}
		template.Subject.Organization = []string{"system:nodes"}
		template.DNSNames, template.IPAddresses = []string{strings.TrimPrefix(subject, "system:node:")}, []net.IP{net.ParseIP(address)}
	}
	t.request(t.target, http.MethodPost, t.pathOf(t.target, keyOf("certificates.k8s.io", "certificatesigningrequests", "", "")), object{
		"metadata": object{"name": name, "annotations": object{"example.org/subject": subject, "example.org/address": address}},
		"spec":     object{"signerName": signer, "username": user, "groups": groups, "usages": usages, "request": requestOf(subject+address, template)},
	})
}

var (
	requestsLock sync.Mutex
	requests     = map[string]string{}
)

// requestOf returns a certificate request in PEM, as it is in JSON. It is made once: that takes longer than all else.
func requestOf(key string, template *x509.CertificateRequest) string {
	requestsLock.Lock()
	defer requestsLock.Unlock()
	if requests[key] == "" {
		der, err := x509.CreateCertificateRequest(rand.Reader, template, ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)))
		if err != nil {
			panic(err)
		}
		requests[key] = base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
	}
	return requests[key]
}

// decided is the condition that decides a request.
func decided(o object) string {
	for _, kind := range []string{"Approved", "Denied"} {
		if condition(o, kind) != "" {
			return kind
		}
	}
	return ""
}

func (t *certificates) look() {
	now := population{since: time.Now(), nodes: map[string]string{}, machines: map[string]string{}}
	for key, o := range t.target.AllLocked() {
		if key.Resource == "nodes" {
			status, _ := o["status"].(map[string]any)
			addresses, _ := status["addresses"].([]any)
			now.nodes[key.Name] = ""
			if len(addresses) == 2 {
				now.nodes[key.Name], _ = addresses[1].(map[string]any)["address"].(string)
			}
		}
	}
	for key, o := range t.source.AllLocked() {
		if key.Resource == "machines" {
			now.machines[key.Name] = fake.Text(o, "metadata", "labels", "node")
		}
	}
	if n := len(t.past); n > 0 && maps.Equal(t.past[n-1].nodes, now.nodes) && maps.Equal(t.past[n-1].machines, now.machines) {
		return
	}
	t.past = append(t.past, now)
}

// from returns what there was at a time or later, also what changed at that time: an object may be deleted in the moment in which it is read.
func (t *certificates) from(at time.Time) []population {
	for i := len(t.past) - 1; i >= 0; i-- {
		if t.past[i].since.Before(at) {
			return t.past[i:]
		}
	}
	return t.past
}

// may reports whether a request may be approved given the Nodes of one moment and the Machines of another: the certificate must be the asker's.
func may(request object, nodes, machines map[string]string) bool {
	user, subject := fake.Text(request, "spec", "username"), fake.Text(request, "metadata", "annotations", "example.org/subject")
	if node, isKubelet := strings.CutPrefix(subject, "system:node:"); isKubelet {
		count := 0
		for _, of := range machines {
			if of == node {
				count++
			}
		}
		address, found := nodes[node]
		return user == subject && found && count == 1 && address == fake.Text(request, "metadata", "annotations", "example.org/address")
	}
	node, found := machines[strings.TrimPrefix(subject, "gardener.cloud:node-agent:machine:")]
	_, registered := nodes[node]
	switch {
	case !found:
		return false
	case strings.HasPrefix(user, "system:bootstrap:"):
		return node == "" || !registered
	}
	return user == subject
}

func (t *certificates) changed(cluster string, c fake.Change) {
	if !isInstance(c.By) {
		return
	}
	what := fmt.Sprintf("%s %ss %s", c.By, c.Verb, c.Key)
	if cluster != "target" || c.Key.Resource != "certificatesigningrequests" || c.Verb != "update" || decided(c.Before) != "" {
		t.violateLocked(decidesOnce, "%s: %s", what, shown(c.Before))
		return
	}
	if rest := onlyChanges(c, "status"); rest != "" {
		t.violateLocked(decidesOnce, "%s: %s", what, rest)
	}
	if fake.Text(c.After, "spec", "username") == "admin" {
		t.violateLocked(leavesOthers, "%s: %s", what, decided(c.After))
		return
	}
	created, err := time.Parse(time.RFC3339, fake.Text(c.After, "metadata", "creationTimestamp"))
	if err != nil {
		panic(err)
	}
	// The objects at its last look, or later.
	readNode, readMachine := created, created
	for _, read := range []struct{ cluster, verb, resource, namespace string }{{"target", "get", "nodes", ""}, {"source", "get", "machines", machineNamespace}, {"source", "list", "machines", machineNamespace}} {
		at := &readNode
		if read.cluster == "source" {
			at = &readMachine
		}
		if heard := t.heardAt(c.By, read.cluster, read.verb, read.resource, read.namespace, ""); heard.After(*at) {
			*at = heard
		}
	}
	could, couldNot := false, false
	for _, nodes := range t.from(readNode) {
		for _, machines := range t.from(readMachine) {
			if may(c.After, nodes.nodes, machines.machines) {
				could = true
			} else {
				couldNot = true
			}
		}
	}
	switch {
	case decided(c.After) == "Approved" && !could:
		t.violateLocked(approvesOwn, "%s: approved for %s: %s", what, fake.Text(c.After, "spec", "username"), shown(c.After))
	case decided(c.After) == "Denied" && !couldNot:
		t.violateLocked(deniesJustly, "%s: denied for %s: %s", what, fake.Text(c.After, "spec", "username"), shown(c.After))
	}
}

func (t *certificates) play(map[fake.Key]object) {}

func (t *certificates) settled() {
	t.lock.Lock()
	defer t.lock.Unlock()
	for key, o := range t.target.AllLocked() {
		if key.Resource == "certificatesigningrequests" && decided(o) == "" && fake.Text(o, "spec", "username") != "admin" {
			t.violateLocked(becomesDecided, "%s is not: %s", key, shown(o))
		}
	}
}
