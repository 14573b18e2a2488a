package objects

import (
	"unique"

	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-project/espalier/internal/managedresource/healthcheck"
)

// Deployment is a Deployment, at a resource version, whose Pods decide whether it is rolled out.
type Deployment struct {
	ID              ID
	UID             types.UID
	ResourceVersion string
	Health          healthcheck.Status

	version unique.Handle[string]
}

// Deployments returns the Deployments of a namespace whose Pods must be counted, or counted again.
func (obs *Observations) Deployments(namespace string) (deployments []Deployment) {
	obs.mu.Lock()
	defer obs.mu.Unlock()
	for k, records := range obs.records {
		if k.Value().Kind != "Deployment" {
			continue
		}
		for n, r := range records {
			if n.namespace.Value() != namespace || r.state != present {
				continue
			}
			for _, v := range r.healths {
				if v.status != nil && v.status.CountsPods() && v.status.Pods != healthcheck.PodsExact {
					deployments = append(deployments, Deployment{r.key(), r.uid, r.resourceVersion, *v.status, v.version})
				}
			}
		}
	}
	return deployments
}

// PodsCounted records the number of Pods of a Deployment, unless the Deployment has changed since.
func (obs *Observations) PodsCounted(d Deployment, pods int64) {
	obs.updateObject(d.ID, func(r *record, _ *notices) {
		if r.uid != d.UID || r.resourceVersion != d.ResourceVersion {
			return
		}
		for i, v := range r.healths {
			if v.version == d.version && v.status != nil && v.status.CountsPods() {
				counted := v.status.Counted(pods)
				r.healths[i].status = &counted
			}
		}
	})
}
