package relation

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"

	gardencorev1beta1 "github.com/espalier-project/espalier/internal/externalapi/core/v1beta1"
	"github.com/espalier-project/espalier/internal/externalapi/partialmeta"
	seedmanagementv1alpha1 "github.com/espalier-project/espalier/internal/externalapi/seedmanagement/v1alpha1"
	"github.com/espalier-project/espalier/internal/externalapi/wellknown"
	"github.com/espalier-project/espalier/internal/graph"
)

// State turns events into changes of a graph. It stores no objects, except for the deciding fields of the few objects
// whose edges depend on another object. It does no I/O; it is safe for concurrent use.
type State struct {
	Graph *graph.Graph
	// Observe is called after each change of the graph, with the time that it took, locks included.
	Observe func(kind graph.Kind, operation string, took time.Duration)
	Clock   clock.PassiveClock

	mu    sync.Mutex
	seeds map[string]time.Time // existing Seeds and when their certificates expire
	// bootstrapping are the ManagedSeeds and Gardenlets by the name of their Seed.
	bootstrapping map[string]map[graph.Vertex]dependent
	projects      map[string]string // by namespace
	// issuers are the Shoots with a managed issuer by namespace.
	issuers map[string]map[string]*gardencorev1beta1.Shoot
}

// dependent is an object whose edges depend on a Seed.
type dependent struct {
	watch  *Watch
	object runtime.Object
}

// NewState returns the state of an empty garden.
func NewState(g *graph.Graph, c clock.PassiveClock, observe func(graph.Kind, string, time.Duration)) *State {
	return &State{
		Graph: g, Observe: observe, Clock: c, seeds: map[string]time.Time{}, bootstrapping: map[string]map[graph.Vertex]dependent{},
		projects: map[string]string{}, issuers: map[string]map[string]*gardencorev1beta1.Shoot{},
	}
}

// Set records an object that was added or changed.
func (s *State) Set(w *Watch, object runtime.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setLocked(w, object)
}

// Delete records that an object was deleted.
func (s *State) Delete(w *Watch, namespace, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deleteLocked(w, graph.Vertex{Kind: w.Kind, Namespace: namespace, Name: name})
}

// Retain removes the objects of a kind that no longer exist.
func (s *State) Retain(w *Watch, there func(namespace, name string) bool) {
	for _, owner := range s.Graph.Owners(w.Kind) {
		if !there(owner.Namespace, owner.Name) {
			s.Delete(w, owner.Namespace, owner.Name)
		}
	}
}

func (s *State) setLocked(w *Watch, object runtime.Object) {
	switch typed := object.(type) {
	case *gardencorev1beta1.Seed:
		s.seedLocked(typed)
	case *gardencorev1beta1.Shoot:
		s.issuerLocked(typed)
	case *seedmanagementv1alpha1.ManagedSeed:
		s.dependLocked(typed.Name, w, typed)
	case *seedmanagementv1alpha1.Gardenlet:
		s.dependLocked(typed.Name, w, typed)
	}
	s.contributeLocked(w, object)
	if seed, ok := object.(*gardencorev1beta1.Seed); ok {
		s.reconsiderLocked(seed.Name)
	}
}

func (s *State) contributeLocked(w *Watch, object runtime.Object) {
	started := s.Clock.Now()
	owner, edges, keep := w.Contribute(object, facts{s})
	changed, operation := false, w.Update
	if keep {
		changed = s.Graph.Set(owner, edges)
	} else {
		changed = s.Graph.Remove(owner)
	}
	s.observe(changed, w.Kind, operation, started)
}

func (s *State) observe(changed bool, kind graph.Kind, operation string, started time.Time) {
	if changed && s.Observe != nil {
		s.Observe(kind, operation, s.Clock.Since(started))
	}
}

func (s *State) deleteLocked(w *Watch, owner graph.Vertex) {
	started := s.Clock.Now()
	s.observe(s.Graph.Remove(owner), w.Kind, "Delete", started)
	switch w.Kind {
	case Seed:
		delete(s.seeds, owner.Name)
		s.reconsiderLocked(owner.Name)
	case Shoot:
		s.forgetIssuerLocked(owner.Namespace, owner.Name)
	case ManagedSeed, Gardenlet:
		delete(s.bootstrapping[owner.Name], owner)
		if len(s.bootstrapping[owner.Name]) == 0 {
			delete(s.bootstrapping, owner.Name)
		}
	}
}

func (s *State) seedLocked(seed *gardencorev1beta1.Seed) {
	var expires time.Time
	if timestamp := seed.Status.ClientCertificateExpirationTimestamp; timestamp != nil {
		expires = timestamp.Time
	}
	s.seeds[seed.Name] = expires
}

func (s *State) dependLocked(seed string, w *Watch, object runtime.Object) {
	owner := w.Owner(object)
	if s.bootstrapping[seed] == nil {
		s.bootstrapping[seed] = map[graph.Vertex]dependent{}
	}
	s.bootstrapping[seed][owner] = dependent{w, object}
}

// reconsiderLocked recomputes the edges that depend on a Seed (B-11).
func (s *State) reconsiderLocked(seed string) {
	for _, d := range s.bootstrapping[seed] {
		s.contributeLocked(d.watch, d.object)
	}
}

// Expire recomputes the edges that depend on certificates that have expired, and returns when the next certificate
// expires; zero means that no expiry is known (B-11).
func (s *State) Expire() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.Clock.Now()
	var next time.Time
	for seed := range s.bootstrapping {
		expires := s.seeds[seed]
		switch {
		case expires.IsZero():
		case expires.Before(now):
			s.reconsiderLocked(seed)
		case next.IsZero() || expires.Before(next):
			next = expires
		}
	}
	return next
}

// SetNamespace records the labels of a namespace.
func (s *State) SetNamespace(namespace *corev1.Namespace) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.namespaceLocked(namespace.Name, namespace.Labels[wellknown.Project])
}

// DeleteNamespace records that a namespace was deleted.
func (s *State) DeleteNamespace(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.namespaceLocked(name, "")
}

// RetainNamespaces removes the namespaces that no longer exist.
func (s *State) RetainNamespaces(there func(name string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.projects {
		if !there(name) {
			s.namespaceLocked(name, "")
		}
	}
}

func (s *State) namespaceLocked(name, project string) {
	if s.projects[name] == project {
		return
	}
	if project == "" {
		delete(s.projects, name)
	} else {
		s.projects[name] = project
	}
	for _, shoot := range s.issuers[name] {
		s.replaceRowLocked(shoot)
	}
}

// issuerLocked stores the fields of a Shoot that the issuer's row needs.
func (s *State) issuerLocked(shoot *gardencorev1beta1.Shoot) {
	if !hasManagedIssuer(shoot) {
		s.forgetIssuerLocked(shoot.Namespace, shoot.Name)
		return
	}
	if s.issuers[shoot.Namespace] == nil {
		s.issuers[shoot.Namespace] = map[string]*gardencorev1beta1.Shoot{}
	}
	if known := s.issuers[shoot.Namespace][shoot.Name]; known == nil || known.UID != shoot.UID {
		s.issuers[shoot.Namespace][shoot.Name] = &gardencorev1beta1.Shoot{Object: partialmeta.Object{
			Namespace: shoot.Namespace, Name: shoot.Name, UID: shoot.UID, Annotations: managedIssuer,
		}}
	}
}

var managedIssuer = map[string]string{wellknown.Issuer: wellknown.ManagedIssuer}

func (s *State) forgetIssuerLocked(namespace, name string) {
	delete(s.issuers[namespace], name)
	if len(s.issuers[namespace]) == 0 {
		delete(s.issuers, namespace)
	}
}

// replaceRowLocked replaces the edges of the issuer's row. It does not change the Shoot's other edges, because the
// Shoot is not stored.
func (s *State) replaceRowLocked(shoot *gardencorev1beta1.Shoot) {
	started := s.Clock.Now()
	self := graph.Vertex{Kind: Shoot, Namespace: shoot.Namespace, Name: shoot.Name}
	edges, watched := s.Graph.Contribution(self)
	if !watched {
		return
	}
	c := &collector{self: self, class: issuerRow.Class, facts: facts{s}}
	for _, e := range edges {
		if e.From.Kind != Secret || e.From.Namespace != wellknown.ShootIssuer {
			c.edges = append(c.edges, e)
		}
	}
	issuerRow.edges(shoot, c)
	s.observe(s.Graph.Set(self, c.edges), Shoot, shoots.Update, started)
}

// Facts returns the facts about other objects, for computing the edges of an object that no watch has delivered.
func (s *State) Facts() Facts { return lockedFacts{s} }

// facts are read while the state is locked.
type facts struct{ *State }

func (f facts) Seed(name string) (bool, time.Time) {
	expires, exists := f.seeds[name]
	return exists, expires
}
func (f facts) ProjectOf(namespace string) string { return f.projects[namespace] }
func (f facts) Now() time.Time                    { return f.Clock.Now() }

type lockedFacts struct{ *State }

func (f lockedFacts) Seed(name string) (bool, time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return facts(f).Seed(name)
}

func (f lockedFacts) ProjectOf(namespace string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.projects[namespace]
}

func (f lockedFacts) Now() time.Time { return f.Clock.Now() }
