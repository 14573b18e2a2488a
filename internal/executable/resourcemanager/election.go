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

// targetLeaseReads are the Leases of all replicas of a process with many targets, and those of its targets.
func targetLeaseReads(cfg *configuration) []feature.Read {
	kind := coordinationv1.SchemeGroupVersion.WithKind("Lease")
	return []feature.Read{
		{Cluster: feature.Source, Kind: kind, Resource: "leases", Namespace: cfg.LeaderElection.ResourceNamespace, Form: feature.List},
		{Cluster: feature.Source, Kind: kind, Resource: "leases", Names: []string{*cfg.Targets.AwaitLease}, Form: feature.List},
		{Cluster: feature.Source, Kind: kind, Resource: "leases", Names: []string{*cfg.Targets.AwaitLease}, Form: feature.Live},
	}
}

// targetLeaseWrites are the replica's own Lease, whose name is drawn, those of replicas that are gone, and those of targets.
func targetLeaseWrites(cfg *configuration) []feature.Write {
	return []feature.Write{
		{Cluster: feature.Source, Group: coordinationv1.GroupName, Resource: "leases", Namespace: cfg.LeaderElection.ResourceNamespace, Verbs: []string{"create", "get", "update", "delete"}},
		{Cluster: feature.Source, Group: coordinationv1.GroupName, Resource: "leases", Verbs: []string{"create"}},
		{Cluster: feature.Source, Group: coordinationv1.GroupName, Resource: "leases", Names: []string{*cfg.Targets.AwaitLease}, Verbs: []string{"update"}},
	}
}
