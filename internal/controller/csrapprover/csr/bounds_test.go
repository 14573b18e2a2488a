package csr

import (
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/espalier-project/espalier/test/must"
)

// CSR-5: texts of a decision repeat what is asked for, which may be as large as a request; what cannot be the name
// of an object is never asked for.
func TestReasonsAreBounded(t *testing.T) {
	long := strings.Repeat("x", 700<<10)
	w := &world{nodes: map[string][]corev1.NodeAddress{long: node()}, machines: map[string]string{"m": "n", long: "n"}}
	for name, request := range map[string]*Request{
		"CSR-10/user":                  kubeletRequest(func(r *Request) { r.Username, r.Subject = long, long }),
		"CSR-14/Node":                  kubeletRequest(func(r *Request) { r.Username, r.Subject = nodePrefix+long, nodePrefix+long }),
		"C12/usage":                    kubeletRequest(func(r *Request) { r.Usages = []certificatesv1.KeyUsage{certificatesv1.KeyUsage(long)} }),
		"CSR-31/machine":               agentRequest("tenant", long),
		"CSR-33/user and common name":  agentRequest(nodeAgentPrefix+long, "m"),
		"CSR-35/user":                  agentRequest(long, "m"),
		"CSR-37/user of gardenadm":     agentRequest(long, "", func(r *Request) { r.Subject = gardenadmPrefix + long }),
		"CSR-32/bootstrap of anything": agentRequest(bootstrapPrefix+long, long),
	} {
		decision, err := Decide(t.Context(), usual, request, w)
		must.True(t, err == nil && decision.Outcome == Denied,
			"%s: %s, and there is an error: %t", name, decision.Outcome, err != nil)
		if message := decision.Condition().Message; len(decision.Reason) > maxReason || len(message) > maxReason+100 {
			t.Errorf("%s: %d bytes", name, len(message))
		}
	}
}
