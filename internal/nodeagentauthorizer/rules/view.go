package rules

import (
	"context"

	"github.com/espalier-project/espalier/internal/nodeagentauthorizer/agent"
)

// View is the known state of the clusters. Each method reports whether the object exists; an error means that this is
// unknown. The context has the agent for which the method is called (ratelimit.WithClient).
type View interface {
	Machine(ctx context.Context, name string) (agent.Machine, bool, error)
	// Node returns the facts about a Node. If there are Machines, the only fact is that it exists.
	Node(ctx context.Context, name string) (agent.Node, bool, error)
	// NodeOfPod returns the Node that a Pod is bound to.
	NodeOfPod(ctx context.Context, namespace, name string) (string, bool, error)
	// UserOfCertificateRequest returns the user that made a request.
	UserOfCertificateRequest(ctx context.Context, name string) (string, bool, error)
	// Configurations returns the names of the Secrets in kube-system that hold configurations of operating systems.
	Configurations(ctx context.Context) ([]string, error)
	// PoolOf returns the pool in the label of such a Secret, and whether the Secret is one of them.
	PoolOf(ctx context.Context, secret string) (pool string, is bool, err error)
	// References returns the references of such a Secret. It returns an error if its content cannot be read.
	References(ctx context.Context, secret string) ([]agent.Reference, bool, error)
	// Selectors reports whether the API server sends selectors and they have to be checked.
	Selectors(ctx context.Context) (bool, error)
}
