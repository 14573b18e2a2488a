package csr

import (
	"context"
	"fmt"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/espalier-project/espalier/internal/managedresource/meta"
)

// maxReason bounds the reason of a denial, in bytes. The reason has the requested subject, which may be as large as a
// request: the condition has to fit into one object with the request, and people read it.
const maxReason = 1024

// Outcome is the result of a decision about a request.
type Outcome string

// The outcomes.
const (
	// Ignored requests are for other approvers, and get no condition.
	Ignored  Outcome = "ignored"
	Approved Outcome = "approved"
	Denied   Outcome = "denied"
)

// Decision is the outcome for a request, with its reason.
type Decision struct {
	Outcome Outcome
	// Subject is the subject of the certificate, in the form for messages.
	Subject string
	// Reason explains the outcome to people.
	Reason string
}

// Rules are the configured rules of the decision.
type Rules struct {
	// Machines is set if there are Machines. Without them, the Node takes the place of its Machine (CSR-15, CSR-31).
	Machines bool
	// MachineNamespace is the namespace of the Machines. It is used in messages only.
	MachineNamespace string
	// StrictBootstrap refuses a bootstrap token as soon as the Machine has the name of a Node, registered or not
	// (C11, SW-6).
	StrictBootstrap bool
	// BootstrapByKubelet treats kubelets like bootstrap tokens (C11, SW-5).
	BootstrapByKubelet bool
	// ServiceAccount accepts the ServiceAccount of node agents that have no certificate yet (SW-4, R8).
	ServiceAccount bool
}

// View returns the present state. An error means that it is unknown.
type View interface {
	// Node returns the addresses of a Node, and whether there is such a Node.
	Node(ctx context.Context, name string) (addresses []corev1.NodeAddress, found bool, err error)
	// Machine returns the name of the Node that a Machine has become, empty if there is none yet, and whether there
	// is such a Machine.
	Machine(ctx context.Context, name string) (node string, found bool, err error)
	// MachinesOf returns the number of Machines that have become a Node of this name.
	MachinesOf(ctx context.Context, node string) (int, error)
}

// Decide decides about a request. An error means that it cannot be decided now; the request stays as it is (CSR-6).
func Decide(ctx context.Context, rules Rules, request *Request, view View) (Decision, error) {
	var (
		d       = decision{Rules: rules, Request: request, view: view}
		subject string
		reason  string
		err     error
	)
	switch {
	case request.Signer == certificatesv1.KubeletServingSignerName:
		subject = "kubelet server"
		reason, err = d.kubelet(ctx)
	case request.Signer == certificatesv1.KubeAPIServerClientSignerName && d.names(nodeAgentPrefix):
		subject = "gardener-node-agent"
		reason, err = d.nodeAgent(ctx)
	case request.Signer == certificatesv1.KubeAPIServerClientSignerName && d.names(gardenadmPrefix):
		subject = "gardener-node-agent" // The node agent's wording, CSR-37.
		reason = d.gardenadm()
	default:
		return Decision{Outcome: Ignored}, nil
	}
	switch {
	case err != nil:
		return Decision{}, fmt.Errorf("failed when checking for approval conditions: %w", err)
	case reason != "":
		return Decision{Outcome: Denied, Subject: subject, Reason: meta.Shortened(reason, maxReason)}, nil
	}
	return Decision{Outcome: Approved, Subject: subject, Reason: "all checks passed"}, nil
}

// Condition returns the condition that reports a decision (CSR-4, CSR-5).
func (v Decision) Condition() certificatesv1.CertificateSigningRequestCondition {
	c := certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "RequestApproved",
		Message: fmt.Sprintf("Approving %s certificate CSR (%s)", v.Subject, v.Reason),
	}
	if v.Outcome == Denied {
		c.Type, c.Reason = certificatesv1.CertificateDenied, "RequestDenied"
		c.Message = fmt.Sprintf("Denying %s certificate CSR (%s)", v.Subject, v.Reason)
	}
	return c
}

// decision is the decision about a request in progress. Its checks return the reason for a refusal, or an empty text.
type decision struct {
	Rules
	*Request
	view View
}

func (d *decision) names(prefix string) bool {
	return strings.HasPrefix(d.Subject, prefix)
}
