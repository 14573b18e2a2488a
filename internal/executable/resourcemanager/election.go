package resourcemanager

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"

	"github.com/espalier-project/espalier/internal/feature"
)

// electionWrites are the Lease and the Events about its holder; with sharding there is no election.
func electionWrites(cfg *configuration) []feature.Write {
	l := &cfg.LeaderElection
	if !ptr.Deref(l.LeaderElect, true) || cfg.Sharded() {
		return nil
	}
	return []feature.Write{
		{Cluster: feature.Source, Group: coordinationv1.GroupName, Resource: "leases", Namespace: l.ResourceNamespace, Verbs: []string{"create"}},
		{Cluster: feature.Source, Group: coordinationv1.GroupName, Resource: "leases", Namespace: l.ResourceNamespace, Names: []string{l.ResourceName}, Verbs: []string{"get", "update"}},
		{Cluster: feature.Source, Resource: "events", Namespace: l.ResourceNamespace, Verbs: []string{"create", "patch"}},
	}
}

// shardingReads are the Leases of all replicas that share targets.
func shardingReads(cfg *configuration) []feature.Read {
	return []feature.Read{{
		Cluster: feature.Source, Kind: coordinationv1.SchemeGroupVersion.WithKind("Lease"), Resource: "leases", Namespace: cfg.LeaderElection.ResourceNamespace, Form: feature.Stream,
	}}
}

// shardingWrites are the own Lease, whose name is drawn, and the expired ones of others.
func shardingWrites(cfg *configuration) []feature.Write {
	return []feature.Write{{
		Cluster: feature.Source, Group: coordinationv1.GroupName, Resource: "leases", Namespace: cfg.LeaderElection.ResourceNamespace, Verbs: []string{"create", "update", "delete"},
	}}
}
