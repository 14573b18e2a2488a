package resourcemanager

import (
	"context"
	"encoding/json"

	"k8s.io/client-go/discovery"

	"github.com/espalier-project/espalier/internal/cluster"
	"github.com/espalier-project/espalier/internal/cluster/readthrough"
	"github.com/espalier-project/espalier/internal/endpoint/admission"
	"github.com/espalier-project/espalier/internal/webhook/deletionprotection"
	"github.com/espalier-project/espalier/internal/webhook/endpointslicehints"
)

// reading returns a webhook that reads from the cache of a cluster, and from the API server if the cache lacks an
// object.
func reading(c *cluster.Cluster, decide func(*readthrough.Reader) admission.Func) (admission.Func, error) {
	live, err := c.Live()
	if err != nil {
		return nil, err
	}
	return decide(readthrough.New(c.Cache, live, c.Lookups)), nil
}

// decideProtection reads the source live, because objects that were just created count.
func decideProtection(p *Process) (admission.Func, error) {
	live, err := p.Source.Live()
	if err != nil {
		return nil, err
	}
	return deletionprotection.Decide(readthrough.Shared(live, p.Source.Lookups), p.Clock), nil
}

// decideHints sets hints if the target needs them, or if the configuration requires them (R7).
func decideHints(p *Process) (admission.Func, error) {
	if p.Config.Webhooks.EndpointSliceHints.Force {
		return endpointslicehints.Decide(nil), nil
	}
	target, err := discovery.NewDiscoveryClientForConfigAndClient(p.Target.REST, p.Target.HTTP)
	if err != nil {
		return nil, err
	}
	return endpointslicehints.Decide(&endpointslicehints.Versions{Clock: p.Clock, Ask: func(ctx context.Context) (string, error) {
		body, err := target.RESTClient().Get().AbsPath("/version").Do(ctx).Raw()
		if err != nil {
			return "", err
		}
		var info struct {
			GitVersion string `json:"gitVersion"`
		}
		return info.GitVersion, json.Unmarshal(body, &info)
	}}), nil
}
