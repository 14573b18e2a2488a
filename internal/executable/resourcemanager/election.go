package resourcemanager

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"

	"github.com/espalier-project/espalier/internal/feature"
)

// electionWrites are the Lease, and the Events about its holder.
func electionWrites(cfg *configuration) []feature.Write {
	l := &cfg.LeaderElection
	if !ptr.Deref(l.LeaderElect, true) {
		return nil
	}
	return []feature.Write{
		{Cluster: feature.Source, Group: coordinationv1.GroupName, Resource: "leases", Namespace: l.ResourceNamespace, Verbs: []string{"create"}},
		{Cluster: feature.Source, Group: coordinationv1.GroupName, Resource: "leases", Namespace: l.ResourceNamespace, Names: []string{l.ResourceName}, Verbs: []string{"get", "update"}},
		{Cluster: feature.Source, Resource: "events", Namespace: l.ResourceNamespace, Verbs: []string{"create", "patch"}},
	}
}
