package controller

import (
	"context"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/plan"
)

// moves are the objects that runs are about to take out of their inventories, and those that runs are about to put into theirs. A
// ManagedResource that is about to lose an object does not count as one that has it: else two that lose it at the same time would each
// leave it to the other. One that is about to get it counts, though its inventory does not say so yet.
//
// Invariant: no object is deleted that another run enters at any time between its judgement and the answer to its deletion. A run enters what it
// loses before it looks who else has it, and what it gets before it writes its inventory; it takes both out when its inventory was written
// or it ended otherwise. Whoever comes second learns of the first: one that deletes is told that somebody came, and one that comes
// waits for the answer to a deletion that is under way. Nor is an object handed to a ManagedResource at any time from the moment on at which
// that one looks whose it is: one that hands over is told that the heir loses it, too, and one that loses waits for what is being handed to it.
type moves struct {
	mu      sync.Mutex
	losing  map[objects.Owner]map[plan.Key]*loss
	getting map[plan.Key]map[objects.Owner]struct{}
	// dropped are the objects that the last plan for a ManagedResource had no more, until a run ended well, it has another form, or there is
	// news of its Secrets. Its inventory may have them for as long as its runs fail; it keeps them no more, and two that fail do not hand an
	// object to each other for ever.
	dropped map[objects.Owner]dropped
	// handing are the objects that are being handed over, by heir; each is closed when that was answered.
	handing map[objects.Owner]map[chan struct{}]plan.Key
}

// dropped is what a plan for one form of a ManagedResource had no more.
type dropped struct {
	uid        types.UID
	generation int64
	keys       map[plan.Key]struct{}
}

// loss is an object that a run is about to lose.
type loss struct {
	// wanted is true if another run has entered it as one that it gets, since this one entered it or before.
	wanted bool
	// deleting is open while its deletion is under way, else nil.
	deleting chan struct{}
}

// lose notes the objects that a run is about to let go of, and waits for those that are being handed to it, until the context ends; the
// function that it returns ends that.
func (m *moves) lose(ctx context.Context, owner objects.Owner, refs []resourcesv1alpha1.ObjectReference) (func(), error) {
	if len(refs) == 0 {
		return func() {}, nil
	}
	end := func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.losing, owner)
	}
	if err := await(ctx, m.enterLosses(owner, refs)); err != nil {
		end()
		return nil, err
	}
	return end, nil
}

// loseToo is lose for one more object, until the others are not lost any more.
func (m *moves) loseToo(ctx context.Context, owner objects.Owner, ref resourcesv1alpha1.ObjectReference) error {
	return await(ctx, m.enterLosses(owner, []resourcesv1alpha1.ObjectReference{ref}))
}

// enterLosses notes the objects beside those that are noted, and returns what is closed when they were handed over to the owner.
func (m *moves) enterLosses(owner objects.Owner, refs []resourcesv1alpha1.ObjectReference) []chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	losses := m.losing[owner]
	if losses == nil {
		losses = make(map[plan.Key]*loss, len(refs))
	}
	for i := range refs {
		key := plan.KeyOfReference(&refs[i].ObjectReference)
		if losses[key] != nil {
			continue
		}
		_, own := m.getting[key][owner]
		losses[key] = &loss{wanted: len(m.getting[key]) > 1 || len(m.getting[key]) == 1 && !own}
	}
	if m.losing == nil {
		m.losing = map[objects.Owner]map[plan.Key]*loss{}
	}
	m.losing[owner] = losses
	var underWay []chan struct{}
	for answered, key := range m.handing[owner] {
		if losses[key] != nil {
			underWay = append(underWay, answered)
		}
	}
	return underWay
}

// await waits for answers, until the context ends.
func await(ctx context.Context, answers []chan struct{}) error {
	for _, answered := range answers {
		select {
		case <-answered:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// plan notes what a plan for a ManagedResource has no more.
func (m *moves) plan(mr *resourcesv1alpha1.ManagedResource, drops []resourcesv1alpha1.ObjectReference) {
	owner := ownerOf(mr)
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(drops) == 0 {
		delete(m.dropped, owner)
		return
	}
	now := dropped{mr.UID, mr.Generation, make(map[plan.Key]struct{}, len(drops))}
	for i := range drops {
		now.keys[plan.KeyOfReference(&drops[i].ObjectReference)] = struct{}{}
	}
	if m.dropped == nil {
		m.dropped = map[objects.Owner]dropped{}
	}
	m.dropped[owner] = now
}

// hasPlanned says whether an earlier plan for the same form of a ManagedResource had none of the objects either, and still counts.
func (m *moves) hasPlanned(mr *resourcesv1alpha1.ManagedResource, drops []resourcesv1alpha1.ObjectReference) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	last := m.dropped[ownerOf(mr)]
	return last.uid == mr.UID && last.generation == mr.Generation && !slices.ContainsFunc(drops, func(ref resourcesv1alpha1.ObjectReference) bool {
		_, dropped := last.keys[plan.KeyOfReference(&ref.ObjectReference)]
		return !dropped
	})
}

// forget ends what is remembered of a ManagedResource between its runs.
func (m *moves) forget(owner objects.Owner) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.dropped, owner)
}

// keeps says whether a ManagedResource that has an object in its inventory is going to have it still.
func (m *moves) keeps(mr *resourcesv1alpha1.ManagedResource, key plan.Key) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	last := m.dropped[ownerOf(mr)]
	_, dropped := last.keys[key]
	return m.losing[ownerOf(mr)][key] == nil && (!dropped || last.uid != mr.UID || last.generation != mr.Generation)
}

// leaves says whether a run is about to let go of an object.
func (m *moves) leaves(owner objects.Owner, key plan.Key) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.losing[owner][key] != nil
}

// get notes the objects that a run is about to apply, those that its inventory has as well as new ones, and waits for the deletions of
// them that are under way, until the context ends; the function that it returns ends that.
func (m *moves) get(ctx context.Context, owner objects.Owner, keys []plan.Key) (func(), error) {
	if len(keys) == 0 {
		return func() {}, nil
	}
	end := func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		for _, key := range keys {
			if delete(m.getting[key], owner); len(m.getting[key]) == 0 {
				delete(m.getting, key)
			}
		}
	}
	if err := await(ctx, m.enterGains(owner, keys)); err != nil {
		end()
		return nil, err
	}
	return end, nil
}

// enterGains notes the objects, and returns what is closed when the deletions of them that are under way were answered.
func (m *moves) enterGains(owner objects.Owner, keys []plan.Key) []chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.getting == nil {
		m.getting = map[plan.Key]map[objects.Owner]struct{}{}
	}
	var underWay []chan struct{}
	for _, key := range keys {
		if m.getting[key] == nil {
			m.getting[key] = map[objects.Owner]struct{}{}
		}
		m.getting[key][owner] = struct{}{}
		for other, losses := range m.losing {
			if l := losses[key]; l != nil && other != owner {
				l.wanted = true
				if l.deleting != nil {
					underWay = append(underWay, l.deleting)
				}
			}
		}
	}
	return underWay
}

// deletes says that a run is about to delete an object that it has entered, and that was judged since; the function that it returns must be called with
// the answer. It returns nil if another run wants the object.
func (m *moves) deletes(owner objects.Owner, key plan.Key) func() {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.losing[owner][key]
	if l == nil || l.wanted {
		return nil
	}
	answered := make(chan struct{})
	l.deleting = answered
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		l.deleting = nil
		close(answered)
	}
}

// hands says that an object is about to be handed to another ManagedResource; the function that it returns must be called with the
// answer. It returns nil if the heir is about to let go of it itself.
func (m *moves) hands(key plan.Key, heir objects.Owner) func() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.losing[heir][key] != nil {
		return nil
	}
	if m.handing == nil {
		m.handing = map[objects.Owner]map[chan struct{}]plan.Key{}
	}
	if m.handing[heir] == nil {
		m.handing[heir] = map[chan struct{}]plan.Key{}
	}
	answered := make(chan struct{})
	m.handing[heir][answered] = key
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if delete(m.handing[heir], answered); len(m.handing[heir]) == 0 {
			delete(m.handing, heir)
		}
		close(answered)
	}
}
