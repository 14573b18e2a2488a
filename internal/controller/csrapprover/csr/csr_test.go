package csr

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"net"
	"net/url"
	"slices"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/gen/builders"
	"github.com/espalier-project/espalier/test/must"
)

// world is what a test says is there; Machines lead to the Node that they have become.
type world struct {
	nodes    map[string][]corev1.NodeAddress
	machines map[string]string
	err      error
}

func (w *world) Node(_ context.Context, name string) ([]corev1.NodeAddress, bool, error) {
	addresses, found := w.nodes[name]
	return addresses, found, w.err
}

func (w *world) Machine(_ context.Context, name string) (string, bool, error) {
	node, found := w.machines[name]
	return node, found, w.err
}

func (w *world) MachinesOf(_ context.Context, node string) (int, error) {
	count := 0
	for _, n := range w.machines {
		if n == node {
			count++
		}
	}
	return count, w.err
}

func address(kind corev1.NodeAddressType, value string) corev1.NodeAddress {
	return corev1.NodeAddress{Type: kind, Address: value}
}

var usual = Rules{Machines: true, MachineNamespace: "shoot--a--b", ServiceAccount: true}

func kubeletRequest(change ...func(*Request)) *Request {
	r := &Request{
		Signer: certificatesv1.KubeletServingSignerName, Username: "system:node:n", Subject: "system:node:n",
		Groups: []string{"system:nodes", "system:authenticated"}, Organization: []string{"system:nodes"}, Usages: servingUsages,
		DNSNames: []string{"n.internal", "n"}, IPAddresses: []string{"10.0.0.1", "2080:1000:1000:8ff0::"},
	}
	for _, c := range change {
		c(r)
	}
	return r
}

func node() []corev1.NodeAddress {
	return []corev1.NodeAddress{address(corev1.NodeHostName, "n"), address(corev1.NodeInternalDNS, "n.internal"), address(corev1.NodeExternalDNS, "n"),
		address(corev1.NodeInternalIP, "10.0.0.1"), address(corev1.NodeExternalIP, "2080:1000:1000:8ff0:0:0:0:0")}
}

func TestKubelet(t *testing.T) {
	const dnsMismatch = "DNS names in CSR do not match addresses of type 'Hostname' or 'InternalDNS' or 'ExternalDNS' in node object"
	const ipMismatch = "IP addresses in CSR do not match addresses of type 'InternalIP' or 'ExternalIP' in node object"
	type c struct {
		change  func(*Request)
		world   func(*world)
		rules   func(*Rules)
		outcome Outcome
		reason  string
	}
	for name, tc := range map[string]c{
		"CSR-17/CSR-18, all equal, IPv6 long and short": {outcome: Approved, reason: "all checks passed"},
		"BH-CSR-10/all requirements are met":            {outcome: Approved, reason: "all checks passed"},
		"BH-CSR-10/one is not":                          {change: func(r *Request) { r.DNSNames = []string{"other"} }, outcome: Denied},
		"CSR-19/duplicates and order": {change: func(r *Request) {
			r.DNSNames = []string{"n", "n.internal", "n"}
			r.IPAddresses = []string{"2080:1000:1000:8ff0::", "10.0.0.1", "10.0.0.1"}
		}, outcome: Approved},
		"CSR-10/BH-CSR-2":                           {change: func(r *Request) { r.Username = "admin" }, outcome: Denied, reason: `username "admin" is not prefixed with "system:node:"`},
		"CSR-11/BH-CSR-3":                           {change: func(r *Request) { r.DNSNames, r.IPAddresses = nil, nil }, outcome: Denied, reason: "no DNS names or IP addresses in the SANs found"},
		"CSR-12/BH-CSR-4":                           {change: func(r *Request) { r.Subject = "system:node:other" }, outcome: Denied, reason: "common name in CSR does not match username"},
		"CSR-13/BH-CSR-5, none":                     {change: func(r *Request) { r.Organization = nil }, outcome: Denied, reason: "organization in CSR does not match nodes group"},
		"CSR-13/two":                                {change: func(r *Request) { r.Organization = []string{"system:nodes", "x"} }, outcome: Denied, reason: "organization in CSR does not match nodes group"},
		"CSR-13/another":                            {change: func(r *Request) { r.Organization = []string{"system:masters"} }, outcome: Denied, reason: "organization in CSR does not match nodes group"},
		"C12/groups":                                {change: func(r *Request) { r.Groups = []string{"system:authenticated"} }, outcome: Denied, reason: `user is not in group "system:nodes"`},
		"C12/other names":                           {change: func(r *Request) { r.Others = 1 }, outcome: Denied, reason: "e-mail addresses or URIs in the SANs found"},
		"C12, CSR-21/usages":                        {change: func(r *Request) { r.Usages = append(slices.Clone(r.Usages), certificatesv1.UsageClientAuth) }, outcome: Denied, reason: `key usage "client auth" is not allowed`},
		"C12, CSR-21/too few usages":                {change: func(r *Request) { r.Usages = []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature} }, outcome: Denied, reason: `key usage "server auth" is missing`},
		"C12/usages of keys that cannot encipher":   {change: func(r *Request) { r.Usages = servingUsages[1:] }, outcome: Approved},
		"CSR-14/BH-CSR-6, the real name":            {world: func(w *world) { w.nodes = nil }, outcome: Denied, reason: `could not find node object with name "n"`},
		"CSR-14/no name":                            {change: func(r *Request) { r.Username, r.Subject = "system:node:", "system:node:" }, outcome: Denied, reason: `could not find node object with name ""`},
		"CSR-14/no name of an object":               {change: func(r *Request) { r.Username, r.Subject = "system:node:../x", "system:node:../x" }, outcome: Denied, reason: `could not find node object with name "../x"`},
		"CSR-15/BH-CSR-7, no Machine":               {world: func(w *world) { w.machines = nil }, outcome: Denied, reason: `Expected exactly one machine in namespace "shoot--a--b" for node "n" but found 0`},
		"CSR-15/two Machines":                       {world: func(w *world) { w.machines["other"] = "n" }, outcome: Denied, reason: `Expected exactly one machine in namespace "shoot--a--b" for node "n" but found 2`},
		"CSR-15/no machine namespace":               {world: func(w *world) { w.machines = nil }, rules: func(r *Rules) { r.Machines = false }, outcome: Approved},
		"CSR-16":                                    {world: func(w *world) { w.nodes["n"] = append(node(), address(corev1.NodeInternalIP, "x")) }, outcome: Denied, reason: `IP address "x" in node.Status.Addresses is invalid: ParseAddr("x"): unable to parse IP`},
		"CSR-17/BH-CSR-8, one more in the request":  {change: func(r *Request) { r.DNSNames = append(r.DNSNames, "x") }, outcome: Denied, reason: dnsMismatch},
		"CSR-17/one more at the Node":               {world: func(w *world) { w.nodes["n"] = append(node(), address(corev1.NodeHostName, "x")) }, outcome: Denied, reason: dnsMismatch},
		"CSR-18/BH-CSR-9, one more in the request":  {change: func(r *Request) { r.IPAddresses = append(r.IPAddresses, "10.0.0.2") }, outcome: Denied, reason: ipMismatch},
		"CSR-18, CSR-19/an ExternalIP at the Node":  {world: func(w *world) { w.nodes["n"] = append(node(), address(corev1.NodeExternalIP, "1.2.3.4")) }, outcome: Denied, reason: ipMismatch},
		"CSR-18/IPv4 in IPv6 at the Node":           {world: func(w *world) { w.nodes["n"][3].Address = "::ffff:10.0.0.1" }, outcome: Approved},
		"CSR-20/no addresses yet":                   {world: func(w *world) { w.nodes["n"] = nil }, outcome: Denied, reason: dnsMismatch},
		"CSR-10 comes first":                        {change: func(r *Request) { r.Username, r.DNSNames, r.IPAddresses = "admin", nil, nil }, outcome: Denied, reason: `username "admin" is not prefixed with "system:node:"`},
		"CSR-14 comes before CSR-15":                {world: func(w *world) { w.nodes, w.machines = nil, nil }, outcome: Denied, reason: `could not find node object with name "n"`},
		"BH-CSR-1/the other signer ignores its CN":  {change: func(r *Request) { r.Signer = certificatesv1.KubeAPIServerClientSignerName }, outcome: Ignored},
		"CSR-1/another signer is somebody else's":   {change: func(r *Request) { r.Signer = "example.org/x" }, outcome: Ignored},
		"SW-5/a kubelet is no bootstrap token here": {rules: func(r *Rules) { r.BootstrapByKubelet = true }, outcome: Approved},
	} {
		t.Run(name, func(t *testing.T) {
			request, w, rules := kubeletRequest(), &world{nodes: map[string][]corev1.NodeAddress{"n": node()}, machines: map[string]string{"m": "n"}}, usual
			if tc.change != nil {
				tc.change(request)
			}
			if tc.world != nil {
				tc.world(w)
			}
			if tc.rules != nil {
				tc.rules(&rules)
			}
			got, err := Decide(t.Context(), rules, request, w)
			if err != nil || got.Outcome != tc.outcome || tc.reason != "" && got.Reason != tc.reason {
				t.Errorf("got %+v, error %v, want %s: %s", got, err, tc.outcome, tc.reason)
			}
		})
	}
}

func agentRequest(user, machine string, change ...func(*Request)) *Request {
	r := &Request{
		Signer: certificatesv1.KubeAPIServerClientSignerName, Username: user, Subject: nodeAgentPrefix + machine,
		Organization: []string{nodeAgentsGroup}, Usages: clientUsages,
	}
	for _, c := range change {
		c(r)
	}
	return r
}

func TestNodeAgent(t *testing.T) {
	const token, agent = "system:bootstrap:abcdef", nodeAgentPrefix + "m"
	bootstrapped := func(machine string) string {
		return `Cannot use bootstrap token since gardener-node-agent for machine "` + machine + `" is already bootstrapped`
	}
	// Of the Machines m has become a Node, fresh will and has the label already, new has nothing.
	w := &world{nodes: map[string][]corev1.NodeAddress{"n": nil, "self": nil}, machines: map[string]string{"m": "n", "fresh": "coming", "new": ""}}
	strict := func(r *Rules) { r.StrictBootstrap = true }
	selfHosted := func(r *Rules) { r.Machines, r.MachineNamespace = false, "" }
	for name, tc := range map[string]struct {
		request *Request
		rules   func(*Rules)
		outcome Outcome
		reason  string
	}{
		"CSR-30/BH-CSR-11, another CN":               {request: agentRequest(token, "m", func(r *Request) { r.Subject = "x" }), outcome: Ignored},
		"CSR-31/no such Machine":                     {request: agentRequest(agent, "x"), outcome: Denied, reason: `machine "x" does not exist`},
		"CSR-31, CSR-36/no such Machine comes first": {request: agentRequest("admin", "x"), outcome: Denied, reason: `machine "x" does not exist`},
		"CSR-31/an empty name":                       {request: agentRequest(token, ""), outcome: Denied, reason: `machine "" does not exist`},
		"CSR-32/BH-CSR-12, no label":                 {request: agentRequest(token, "new"), outcome: Approved, reason: "all checks passed"},
		"CSR-32/SW-6, label but no Node":             {request: agentRequest(token, "fresh"), outcome: Approved},
		"C11/SW-6, strict, label but no Node":        {request: agentRequest(token, "fresh"), rules: strict, outcome: Denied, reason: bootstrapped("fresh")},
		"C11/strict, no label":                       {request: agentRequest(token, "new"), rules: strict, outcome: Approved},
		"CSR-32/BH-CSR-15, label and Node":           {request: agentRequest(token, "m"), outcome: Denied, reason: bootstrapped("m")},
		"CSR-32/self-hosted, no Node":                {request: agentRequest(token, "x"), rules: selfHosted, outcome: Approved},
		"CSR-32/self-hosted, Node":                   {request: agentRequest(token, "self"), rules: selfHosted, outcome: Denied, reason: bootstrapped("self")},
		"CSR-32/self-hosted, strict has no label":    {request: agentRequest(token, "x"), rules: func(r *Rules) { selfHosted(r); strict(r) }, outcome: Approved},
		"CSR-33/BH-CSR-13, own machine":              {request: agentRequest(agent, "m"), outcome: Approved},
		"CSR-33/another's machine":                   {request: agentRequest(agent, "new"), outcome: Denied, reason: `username "gardener.cloud:node-agent:machine:m" and commonName "gardener.cloud:node-agent:machine:new" do not match`},
		"CSR-34/BH-CSR-14, with a label":             {request: agentRequest(nodeAgentServiceAccount, "m"), outcome: Approved},
		"CSR-34/without a label":                     {request: agentRequest(nodeAgentServiceAccount, "new"), outcome: Denied, reason: "gardener-node-agent service account is allowed to create CSRs for machines with existing nodes only"},
		"CSR-34/self-hosted, Node":                   {request: agentRequest(nodeAgentServiceAccount, "self"), rules: selfHosted, outcome: Approved},
		"CSR-34/self-hosted, no Node":                {request: agentRequest(nodeAgentServiceAccount, "x"), rules: selfHosted, outcome: Denied, reason: "gardener-node-agent service account is allowed to create CSRs for machines with existing nodes only"},
		"CSR-35/SW-4, switched off":                  {request: agentRequest(nodeAgentServiceAccount, "m"), rules: func(r *Rules) { r.ServiceAccount = false }, outcome: Denied, reason: `username "system:serviceaccount:kube-system:gardener-node-agent" is not allowed to create CSRs for a gardener-node-agent`},
		"CSR-35/SW-5, a kubelet":                     {request: agentRequest("system:node:n", "new"), outcome: Denied, reason: `username "system:node:n" is not allowed to create CSRs for a gardener-node-agent`},
		"C11/SW-5, a kubelet, switched on":           {request: agentRequest("system:node:n", "new"), rules: func(r *Rules) { r.BootstrapByKubelet = true }, outcome: Approved},
		"C11/a kubelet, switched on, other's Node":   {request: agentRequest("system:node:n", "m"), rules: func(r *Rules) { r.BootstrapByKubelet = true }, outcome: Denied, reason: bootstrapped("m")},
		"4.4/no organization":                        {request: agentRequest(token, "new", func(r *Request) { r.Organization = nil }), outcome: Approved},
		"4.4/another organization":                   {request: agentRequest(token, "new", func(r *Request) { r.Organization = []string{"system:masters"} }), outcome: Denied, reason: `organization in CSR is neither empty nor "gardener.cloud:node-agents"`},
		"C12/another name of an agent":               {request: agentRequest(token, "new", func(r *Request) { r.Others = 1 }), outcome: Denied, reason: "e-mail addresses or URIs in the SANs found"},
		"4.4/one more organization":                  {request: agentRequest(token, "new", func(r *Request) { r.Organization = []string{nodeAgentsGroup, "x"} }), outcome: Denied, reason: `organization in CSR is neither empty nor "gardener.cloud:node-agents"`},
		"C12/other names":                            {request: agentRequest(token, "new", func(r *Request) { r.Others = 2 }), outcome: Denied, reason: "e-mail addresses or URIs in the SANs found"},
		"C12/usages":                                 {request: agentRequest(token, "new", func(r *Request) { r.Usages = servingUsages }), outcome: Denied, reason: `key usage "server auth" is not allowed`},
		"C12/no usage for clients":                   {request: agentRequest(token, "new", func(r *Request) { r.Usages = clientUsages[:2] }), outcome: Denied, reason: `key usage "client auth" is missing`},
		"CSR-37/gardenadm":                           {request: agentRequest(token, "", func(r *Request) { r.Subject, r.Organization = gardenadmPrefix+"a:b", []string{gardenadmGroup} }), outcome: Approved},
		"CSR-37/gardenadm, another user": {request: agentRequest(agent, "", func(r *Request) { r.Subject, r.Organization = gardenadmPrefix+"a:b", []string{gardenadmGroup} }), outcome: Denied,
			reason: `username "gardener.cloud:node-agent:machine:m" is not allowed to create CSRs for a gardenadm client`},
		"CSR-37/gardenadm, another organization": {request: agentRequest(token, "", func(r *Request) { r.Subject = gardenadmPrefix + "a:b" }), outcome: Denied, reason: "organization in CSR does not match nodes group"},
	} {
		t.Run(name, func(t *testing.T) {
			rules := usual
			if tc.rules != nil {
				tc.rules(&rules)
			}
			got, err := Decide(t.Context(), rules, tc.request, w)
			if err != nil || got.Outcome != tc.outcome || tc.reason != "" && got.Reason != tc.reason {
				t.Errorf("got %+v, error %v, want %s: %s", got, err, tc.outcome, tc.reason)
			}
		})
	}
}

// CSR-6: what is not known is neither approved nor denied.
func TestNothingFollowsFromAnError(t *testing.T) {
	broken := &world{err: errors.New("internal error")}
	for want, request := range map[string]*Request{
		`failed when checking for approval conditions: error getting node object with name "n": internal error`:    kubeletRequest(),
		`failed when checking for approval conditions: error getting machine object with name "m": internal error`: agentRequest(nodeAgentPrefix+"m", "m"),
	} {
		if decision, err := Decide(t.Context(), usual, request, broken); err == nil || err.Error() != want || decision.Outcome != "" {
			t.Errorf("got %+v, %v, want %s", decision, err, want)
		}
	}
	rules := usual
	rules.Machines = false
	if decision, err := Decide(t.Context(), rules, agentRequest("system:bootstrap:a", "m"), broken); err == nil || decision.Outcome != "" {
		t.Errorf("CSR-32: got %+v, %v", decision, err)
	}
}

// brokenPart fails one kind of question only.
type brokenPart struct {
	*world
	node, machinesOf error
}

func (b brokenPart) Node(ctx context.Context, name string) ([]corev1.NodeAddress, bool, error) {
	addresses, found, _ := b.world.Node(ctx, name)
	return addresses, found, b.node
}

func (b brokenPart) MachinesOf(ctx context.Context, name string) (int, error) {
	count, _ := b.world.MachinesOf(ctx, name)
	return count, b.machinesOf
}

// CSR-6: one unanswered question is enough, whatever the others are answered with.
func TestOneUnansweredQuestion(t *testing.T) {
	broken := errors.New("internal error")
	for name, tc := range map[string]struct {
		request  *Request
		machines bool
		view     brokenPart
	}{
		"CSR-15/how many Machines":      {kubeletRequest(), true, brokenPart{machinesOf: broken}},
		"CSR-14/which Node":             {kubeletRequest(), false, brokenPart{node: broken}},
		"CSR-32/the Node of an account": {agentRequest(nodeAgentServiceAccount, "n"), false, brokenPart{node: broken}},
	} {
		t.Run(name, func(t *testing.T) {
			tc.view.world = &world{nodes: map[string][]corev1.NodeAddress{"n": node()}, machines: map[string]string{"m": "n"}}
			rules := usual
			rules.Machines = tc.machines
			if decision, err := Decide(t.Context(), rules, tc.request, tc.view); !errors.Is(err, broken) || decision.Outcome != "" {
				t.Errorf("CSR-6: got %+v, %v", decision, err)
			}
		})
	}
}

// CSR-4, CSR-5: type, reason and wording.
func TestConditions(t *testing.T) {
	w := &world{nodes: map[string][]corev1.NodeAddress{"n": node()}, machines: map[string]string{"m": "n"}}
	for want, request := range map[string]*Request{
		"Approved RequestApproved Approving kubelet server certificate CSR (all checks passed)":                                                kubeletRequest(),
		"Denied RequestDenied Denying kubelet server certificate CSR (common name in CSR does not match username)":                             kubeletRequest(func(r *Request) { r.Subject = "x" }),
		"Approved RequestApproved Approving gardener-node-agent certificate CSR (all checks passed)":                                           agentRequest(nodeAgentPrefix+"m", "m"),
		`Denied RequestDenied Denying gardener-node-agent certificate CSR (machine "x" does not exist)`:                                        agentRequest(nodeAgentPrefix+"m", "x"),
		`Denied RequestDenied Denying gardener-node-agent certificate CSR (username "a" is not allowed to create CSRs for a gardenadm client)`: agentRequest("a", "", func(r *Request) { r.Subject = gardenadmPrefix }),
	} {
		decision, err := Decide(t.Context(), usual, request, w)
		must.Succeed(t, err)
		c := decision.Condition()
		if got := string(c.Type) + " " + c.Reason + " " + c.Message; got != want || c.Status != corev1.ConditionTrue {
			t.Errorf("CSR-4/CSR-5: got %s (%s), want %s", got, c.Status, want)
		}
	}
}

// TestPropertyKubelet: a kubelet's request is approved if and only if its names are those of its Node, as sets (CSR-17, CSR-18, CSR-19).
func TestPropertyKubelet(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		names := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c"}), 0, 4)
		ips := rapid.SliceOfN(rapid.SampledFrom([]string{"10.0.0.1", "10.0.0.2", "fd00::1"}), 0, 4)
		nodeNames, nodeIPs := names.Draw(rt, "names of the Node"), ips.Draw(rt, "addresses of the Node")
		var addresses []corev1.NodeAddress
		for _, n := range nodeNames {
			addresses = append(addresses, address(rapid.SampledFrom([]corev1.NodeAddressType{corev1.NodeHostName, corev1.NodeInternalDNS, corev1.NodeExternalDNS}).Draw(rt, "type"), n))
		}
		for _, ip := range nodeIPs {
			addresses = append(addresses, address(rapid.SampledFrom([]corev1.NodeAddressType{corev1.NodeInternalIP, corev1.NodeExternalIP}).Draw(rt, "type"), ip))
		}
		request := kubeletRequest(func(r *Request) { r.DNSNames, r.IPAddresses = names.Draw(rt, "names"), ips.Draw(rt, "addresses") })
		set := func(s []string) []string { s = slices.Clone(s); slices.Sort(s); return slices.Compact(s) }
		want := len(request.DNSNames)+len(request.IPAddresses) > 0 && slices.Equal(set(nodeNames), set(request.DNSNames)) && slices.Equal(set(nodeIPs), set(request.IPAddresses))
		got, err := Decide(context.Background(), usual, request, &world{nodes: map[string][]corev1.NodeAddress{"n": addresses}, machines: map[string]string{"m": "n"}})
		expect.True(rt, err == nil && (got.Outcome == Approved) == want,
			"SW-7/C12: got %+v, %v, want approved: %v", got, err, want)
	})
}

// TestPropertyOwn: nobody gets a certificate of a node or machine other than the own one, but a bootstrap token that of a machine without a Node.
func TestPropertyOwn(t *testing.T) {
	names := rapid.SampledFrom([]string{"n", "m", "o", "", "../x"})
	users := rapid.Custom(func(rt *rapid.T) string {
		prefix := rapid.SampledFrom([]string{"", nodePrefix, nodeAgentPrefix, gardenadmPrefix, bootstrapPrefix, "system:serviceaccount:kube-system:"}).Draw(rt, "prefix")
		return prefix + rapid.SampledFrom([]string{"n", "m", "o", "", "gardener-node-agent"}).Draw(rt, "name")
	})
	rapid.Check(t, func(rt *rapid.T) {
		w := &world{nodes: map[string][]corev1.NodeAddress{}, machines: rapid.MapOf(names, names).Draw(rt, "machines")}
		for _, n := range rapid.SliceOf(names).Draw(rt, "nodes") {
			w.nodes[n] = node()
		}
		rules := Rules{Machines: rapid.Bool().Draw(rt, "machines there"), StrictBootstrap: rapid.Bool().Draw(rt, "strict"), ServiceAccount: rapid.Bool().Draw(rt, "service account")}
		request := kubeletRequest(func(r *Request) {
			r.Username, r.Subject = users.Draw(rt, "user"), users.Draw(rt, "subject")
			r.Organization = rapid.SampledFrom([][]string{nil, {nodesGroup}, {nodeAgentsGroup}, {gardenadmGroup}, {"system:masters"}, {nodesGroup, "x"}}).Draw(rt, "organization")
			if rapid.Bool().Draw(rt, "client") {
				r.Signer, r.Usages = certificatesv1.KubeAPIServerClientSignerName, clientUsages
			}
		})
		got, err := Decide(context.Background(), rules, request, w)
		if err != nil || got.Outcome != Approved {
			return
		}
		expect.True(rt, !slices.Contains(request.Organization, "system:masters") && len(request.Organization) <= 1,
			"approved for %v", request.Organization)
		machine, isAgent := strings.CutPrefix(request.Subject, nodeAgentPrefix)
		switch {
		case request.Username == request.Subject:
		case strings.HasPrefix(request.Username, bootstrapPrefix) && isAgent:
			of := machine
			if rules.Machines {
				of = w.machines[machine]
			}
			if _, found := w.nodes[of]; found && validName(of) {
				rt.Fatalf("%s approved for %s, whose Node is there", request.Username, request.Subject)
			}
		case strings.HasPrefix(request.Username, bootstrapPrefix) && strings.HasPrefix(request.Subject, gardenadmPrefix):
		case request.Username == nodeAgentServiceAccount && isAgent && rules.ServiceAccount:
		default:
			rt.Fatalf("%s approved for %s", request.Username, request.Subject)
		}
	})
}

func TestParse(t *testing.T) {
	object := &certificatesv1.CertificateSigningRequest{Spec: certificatesv1.CertificateSigningRequestSpec{
		SignerName: "s", Username: "u", Groups: []string{"g"}, Usages: []certificatesv1.KeyUsage{certificatesv1.UsageAny},
		Request: builders.Request(&x509.CertificateRequest{
			Subject: pkix.Name{CommonName: "cn", Organization: []string{"o"}}, DNSNames: []string{"d"}, EmailAddresses: []string{"a@b"},
			IPAddresses: []net.IP{net.ParseIP("10.0.0.1"), net.ParseIP("2080:1000:1000:8ff0:0:0:0:0")}, URIs: []*url.URL{{Scheme: "https", Host: "x"}},
		}),
	}}
	got, err := Parse(object)
	must.Succeed(t, err)
	want := &Request{Signer: "s", Username: "u", Groups: []string{"g"}, Usages: []certificatesv1.KeyUsage{certificatesv1.UsageAny}, Subject: "cn", Organization: []string{"o"},
		DNSNames: []string{"d"}, IPAddresses: []string{"10.0.0.1", "2080:1000:1000:8ff0::"}, Others: 2}
	expect.DeepEqual(t, got, want)
	for name, request := range map[string]string{
		"CSR-3/no PEM":          "x",
		"CSR-3/another block":   "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
		"CSR-3/garbage in it":   "-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n",
		"CSR-3/the first block": "-----BEGIN X-----\nAAAA\n-----END X-----\n" + string(object.Spec.Request),
	} {
		if _, err := Parse(&certificatesv1.CertificateSigningRequest{Spec: certificatesv1.CertificateSigningRequestSpec{Request: []byte(request)}}); err == nil || !strings.HasPrefix(err.Error(), "unable to parse csr: ") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestFinal(t *testing.T) {
	condition := func(kind certificatesv1.RequestConditionType, status corev1.ConditionStatus) certificatesv1.CertificateSigningRequestStatus {
		return certificatesv1.CertificateSigningRequestStatus{Conditions: []certificatesv1.CertificateSigningRequestCondition{{Type: kind, Status: status}}}
	}
	for name, tc := range map[string]struct {
		status certificatesv1.CertificateSigningRequestStatus
		want   bool
	}{
		"CSR-2/nothing":               {},
		"CSR-2/approved":              {condition(certificatesv1.CertificateApproved, corev1.ConditionTrue), true},
		"CSR-2/whatever the status":   {condition(certificatesv1.CertificateDenied, corev1.ConditionFalse), true},
		"CSR-2/another condition":     {condition(certificatesv1.CertificateFailed, corev1.ConditionTrue), false},
		"CSR-2/a certificate":         {certificatesv1.CertificateSigningRequestStatus{Certificate: []byte("x")}, true},
		"CSR-2/no certificate, empty": {certificatesv1.CertificateSigningRequestStatus{Certificate: []byte{}}, false},
	} {
		object := &certificatesv1.CertificateSigningRequest{
			ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: "1", Labels: map[string]string{"a": "b"}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}}},
			Spec:       certificatesv1.CertificateSigningRequestSpec{SignerName: certificatesv1.KubeletServingSignerName, Extra: map[string]certificatesv1.ExtraValue{"x": {"y"}}, Request: []byte("r")}, Status: tc.status,
		}
		expect.Equal(t, Final(object), tc.want, "%s", name)
		Strip(object)
		if object.ManagedFields != nil || object.Spec.Extra != nil || tc.want && len(object.Status.Conditions) > 0 {
			t.Errorf("%s: keeps %+v in memory", name, object)
		}
		if Final(object) != tc.want || object.Name != "a" || (len(object.Spec.Request) > 0) == tc.want || (object.Labels != nil) == tc.want {
			t.Errorf("%s: stripped to %+v", name, object)
		}
	}
}

// CSR-1: two signers concern the approver. Of requests of another one only the name stays in memory.
func TestConcerned(t *testing.T) {
	for name, tc := range map[string]struct {
		signer string
		want   bool
	}{
		"CSR-1/kubelets serve":  {certificatesv1.KubeletServingSignerName, true},
		"CSR-1/clients":         {certificatesv1.KubeAPIServerClientSignerName, true},
		"CSR-1/kubelets ask":    {certificatesv1.KubeAPIServerClientKubeletSignerName, false},
		"CSR-1/somebody else's": {"example.org/x", false},
	} {
		object := &certificatesv1.CertificateSigningRequest{Spec: certificatesv1.CertificateSigningRequestSpec{SignerName: tc.signer, Request: []byte("r")}}
		Strip(object)
		if got := Concerned(tc.signer); got != tc.want || (len(object.Spec.Request) > 0) != tc.want {
			t.Errorf("%s: got %v, stripped to %+v", name, got, object)
		}
	}
}

// CSR-14, CSR-32: a name as long as that of any object may have one; a longer one is nobody's and is not asked for.
func TestLengthOfNames(t *testing.T) {
	for length, want := range map[int]bool{0: false, 1: true, 253: true, 254: false} {
		expect.Equal(t, validName(strings.Repeat("a", length)), want, "CSR-14: a name of %d characters", length)
	}
}
