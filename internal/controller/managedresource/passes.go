package managedresource

import (
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/ledger"
)

// pass is what is remembered of the last run for a ManagedResource. It lives in memory only: after a restart everything is
// looked at once.
type pass struct {
	uid types.UID
	// complete is true if every object was found, or made, as it should be.
	complete   bool
	generation int64
	// secrets are the versions of the Secrets that were read.
	secrets map[string]string
	// readGeneration and checksum belong to them.
	readGeneration int64
	checksum       string
	// secretsInDoubt is true if a Secret may have changed since it was read.
	secretsInDoubt bool
	// changed are the versions of Secrets that a watch told of since they were read.
	changed map[string]string
	// attempted is the content whose apply failed last.
	attempted string
	// tried is the content of the present attempt.
	tried string
}

type passes struct {
	mu      sync.Mutex
	byOwner map[ledger.Owner]*pass
}

// of returns a copy of what is remembered.
func (p *passes) of(mr *resourcesv1alpha1.ManagedResource) pass {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := *p.getLocked(mr)
	known.secretsInDoubt = known.secretsInDoubt || len(known.changed) > 0
	known.changed = nil
	return known
}

func (p *passes) getLocked(mr *resourcesv1alpha1.ManagedResource) *pass {
	if p.byOwner == nil {
		p.byOwner = map[ledger.Owner]*pass{}
	}
	owner := ownerOf(mr)
	if known := p.byOwner[owner]; known != nil && known.uid == mr.UID {
		return known
	}
	fresh := &pass{uid: mr.UID}
	p.byOwner[owner] = fresh
	return fresh
}

func (p *passes) update(mr *resourcesv1alpha1.ManagedResource, change func(*pass)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(p.getLocked(mr))
}

func (p *passes) secretsRead(mr *resourcesv1alpha1.ManagedResource) {
	p.update(mr, func(pass *pass) { pass.secretsInDoubt, pass.changed = false, nil })
}

// finished notes what was read for a run that ended well. What a watch told of in the meantime is no news if it was read.
func (p *passes) finished(mr *resourcesv1alpha1.ManagedResource, versions map[string]string, checksum string) {
	p.update(mr, func(pass *pass) {
		pass.complete, pass.generation, pass.attempted = true, mr.Generation, ""
		pass.secrets, pass.readGeneration, pass.checksum = versions, mr.Generation, checksum
		maps.DeleteFunc(pass.changed, func(name, version string) bool { return versions[name] == version })
	})
}

func (p *passes) incomplete(mr *resourcesv1alpha1.ManagedResource) {
	p.update(mr, func(pass *pass) { pass.generation = -1 })
}

func (p *passes) failed(mr *resourcesv1alpha1.ManagedResource) {
	p.update(mr, func(pass *pass) { pass.attempted, pass.generation = pass.tried, -1 })
}

func (p *passes) forget(owner ledger.Owner) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.byOwner, owner)
}

// secretChanged puts a ManagedResource into doubt if it did not read this version; it reports whether it did not.
func (p *passes) secretChanged(owner ledger.Owner, name, version string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.byOwner[owner]
	if known == nil {
		return true
	}
	if known.secrets[name] == version {
		return false
	}
	if known.changed == nil {
		known.changed = map[string]string{}
	}
	known.changed[name] = version
	return true
}

// owners returns the ManagedResources that were applied completely.
func (p *passes) owners() []ledger.Owner {
	p.mu.Lock()
	defer p.mu.Unlock()
	owners := make([]ledger.Owner, 0, len(p.byOwner))
	for owner, known := range p.byOwner {
		if known.complete {
			owners = append(owners, owner)
		}
	}
	return owners
}

// allInDoubt puts every ManagedResource into doubt, after a gap in the watch of Secrets.
func (p *passes) allInDoubt() []ledger.Owner {
	p.mu.Lock()
	defer p.mu.Unlock()
	owners := make([]ledger.Owner, 0, len(p.byOwner))
	for owner, known := range p.byOwner {
		known.secretsInDoubt = true
		owners = append(owners, owner)
	}
	return owners
}
