package resourcemanager

import (
	"context"

	"github.com/espalier-project/espalier/internal/controller/istioclusterconfiguration"
	"github.com/espalier-project/espalier/internal/controller/networkpolicy"
)

func startNetworkPolicies(_ context.Context, p *Process) error {
	r, err := networkpolicy.New(networkpolicy.Options{
		Config: p.Config.Controllers.NetworkPolicy, Namespaces: p.Config.TargetClientConnection.Namespaces,
		Target: p.Target.Connection, Client: p.Target.Client, Clock: p.Clock, Log: p.Log,
	})
	if err != nil {
		return err
	}
	return r.AddToManager(p.Manager, p.Config.Controllers.CacheSyncTimeout.Duration)
}

func startIstioClusterConfiguration(_ context.Context, p *Process) error {
	return istioclusterconfiguration.New(istioclusterconfiguration.Options{
		Config: p.Config.Controllers.IstioClusterConfiguration, Namespaces: p.Config.TargetClientConnection.Namespaces,
		Target: p.Target.Connection, Client: p.Target.Client, Clock: p.Clock, Log: p.Log,
	}).AddToManager(p.Manager, p.Config.Controllers.CacheSyncTimeout.Duration)
}
