package source

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
)

const (
	// statusTimeout limits one status write. It is separate from the limit of the run, so that a run that exceeded its
	// limit can still report that (MRB-6).
	statusTimeout = 20 * time.Second
	// statusAttempts limits the tries after conflicts before the caller backs off.
	statusAttempts = 6
)

// Statuses reads ManagedResources and writes their statuses. Three controllers write the same status: writes to one
// ManagedResource are sequential, start from the latest version, and are omitted if nothing would change.
//
// Invariant: each written version was read from, or returned by, the API server for that UID. It counts only until
// the cache has that version or a later one, and no longer than a cache may lag. So no caller gets an older version
// than one that was already used, unless the source was restored (Restored).
//
// The confirmed version of a ManagedResource is the first one that the API server returned to this process and since
// which it has answered every write. That version and later ones contain all writes for this instance. Other versions
// may lack a write whose answer was lost, or the last write of the previous process.
type Statuses struct {
	// Readiness is true if the conditions of kstatus are written (T4-8).
	Readiness bool
	// Restored is called with the proof when the source was restored to an earlier state.
	Restored func(proof string)

	reader client.Reader // cached
	live   client.Reader
	client client.Client
	clock  clock.PassiveClock
	events *Events

	mu    sync.Mutex
	known map[types.NamespacedName]*known
}

// known is the state that is stored for one ManagedResource.
type known struct {
	// written is a version that the cache may not have yet, confirmed the first version since which every write was
	// answered; each is zero if there is none.
	written   written
	confirmed objectVersion
	pace      pace
	// lost represents one or more consecutive writes without an answer, until their outcome is known; nil if there are
	// none.
	lost *lostWrite
	// writing admits one writer at a time; writers counts the callers that write or wait.
	writing *semaphore.Weighted
	writers int
}

// lostWrite is a write with an unknown outcome.
type lostWrite struct {
	// before is the version that the write would have changed; no Event has reported the change.
	before *resourcesv1alpha1.ManagedResource
	// asked is true if the API server has returned the present version since, so that Get returns it, too.
	asked bool
}

// objectVersion is one version of one ManagedResource.
type objectVersion struct {
	uid     types.UID
	version string
}

// written is a version of a ManagedResource that the cache may not have yet.
type written struct {
	mr *resourcesv1alpha1.ManagedResource
	at time.Time
}

// lag is the longest time that a cache is expected to need to deliver a write. Because writes are bound to versions,
// a wrong value only causes conflicts.
const lag = 30 * time.Second

// counts reports whether the version is later than the cached one and not older than lag.
func (w written) counts(cached *resourcesv1alpha1.ManagedResource, now time.Time) bool {
	if w.mr == nil {
		return false
	}
	return w.mr.UID == cached.UID && older(cached.ResourceVersion, w.mr.ResourceVersion) && now.Sub(w.at) < lag
}

// NewStatuses returns Statuses; reader reads from the cache, live from the API server.
func NewStatuses(reader, live client.Reader, writer client.Client, clock clock.PassiveClock, events *Events) *Statuses {
	return &Statuses{
		reader: reader, live: live, client: writer, clock: clock, events: events,
		Restored: func(string) {}, known: map[types.NamespacedName]*known{},
	}
}

// Get returns the latest known version of a ManagedResource: from the cache, or from the last write if the cache does
// not have that yet. The caller must not change it.
func (s *Statuses) Get(ctx context.Context, key types.NamespacedName) (*resourcesv1alpha1.ManagedResource, error) {
	mr := &resourcesv1alpha1.ManagedResource{}
	if err := s.reader.Get(ctx, key, mr); err != nil {
		if apierrors.IsNotFound(err) {
			s.forget(key)
			s.events.forget(key)
		}
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.known[key]; k != nil {
		if k.written.counts(mr, s.clock.Now()) {
			return k.written.mr, nil
		}
		k.written = written{}
	}
	return mr, nil
}

func (s *Statuses) knownLocked(key types.NamespacedName) *known {
	k := s.known[key]
	if k == nil {
		k = &known{writing: semaphore.NewWeighted(1)}
		s.known[key] = k
	}
	return k
}

func older(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}

// Compare calls Restored if a ManagedResource was read in an older version than before.
func (s *Statuses) Compare(before, after *resourcesv1alpha1.ManagedResource) {
	if before.UID == after.UID && older(after.ResourceVersion, before.ResourceVersion) {
		s.Restored(fmt.Sprintf("ManagedResource %s was read in version %s, and in version %s before",
			client.ObjectKeyFromObject(after), after.ResourceVersion, before.ResourceVersion))
	}
}

// Written records the answer to a write, so that Get returns nothing older.
func (s *Statuses) Written(mr *resourcesv1alpha1.ManagedResource) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := client.ObjectKeyFromObject(mr)
	s.answeredLocked(mr)
	k := s.knownLocked(key)
	same := k.written.mr != nil && k.written.mr.UID == mr.UID
	switch {
	case !same:
		k.written = written{mr: mr, at: s.clock.Now()}
	case !older(mr.ResourceVersion, k.written.mr.ResourceVersion):
		k.written.mr, k.written.at = mr, s.clock.Now()
	}
}

// Observed handles a version that the cache delivered, and drops the written version unless that is later. It returns
// true if Get still returns a later version, because the cache lags or the source was restored.
func (s *Statuses) Observed(mr *resourcesv1alpha1.ManagedResource) (lags bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.known[client.ObjectKeyFromObject(mr)]
	if k == nil {
		return false
	}
	if lags = k.written.counts(mr, s.clock.Now()); !lags {
		k.written = written{}
	}
	return lags
}

// Lag returns the time after which Get returns the version in the cache, however old that is; zero if it already
// does.
func (s *Statuses) Lag(ctx context.Context, key types.NamespacedName) time.Duration {
	ours := s.writtenOf(key)
	cached := &resourcesv1alpha1.ManagedResource{}
	if now := s.clock.Now(); ours.mr != nil && s.reader.Get(ctx, key, cached) == nil && ours.counts(cached, now) {
		return ours.at.Add(lag).Sub(now) + time.Second
	}
	return 0
}

func (s *Statuses) writtenOf(key types.NamespacedName) written {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.known[key]; k != nil {
		return k.written
	}
	return written{}
}

func (s *Statuses) forget(key types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.known[key]; k != nil {
		k.written, k.confirmed, k.pace, k.lost = written{}, objectVersion{}, nil, nil
		if k.writers == 0 {
			delete(s.known, key)
		}
	}
}

// Confirmed reports whether a version of a ManagedResource that Get returned contains all earlier writes for this
// instance.
func (s *Statuses) Confirmed(mr *resourcesv1alpha1.ManagedResource) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.known[client.ObjectKeyFromObject(mr)]
	return k != nil && k.confirmed != objectVersion{} && k.confirmed.uid == mr.UID && !older(mr.ResourceVersion, k.confirmed.version)
}

// answeredLocked records a version of a ManagedResource that the API server returned.
func (s *Statuses) answeredLocked(mr *resourcesv1alpha1.ManagedResource) {
	k := s.knownLocked(client.ObjectKeyFromObject(mr))
	if first := k.confirmed; first == (objectVersion{}) || first.uid != mr.UID || older(mr.ResourceVersion, first.version) {
		k.confirmed = objectVersion{mr.UID, mr.ResourceVersion}
	}
	if k.lost != nil {
		k.lost.asked = true
	}
}

// unanswered records that a write failed, so that its outcome may be unknown.
func (s *Statuses) unanswered(mr *resourcesv1alpha1.ManagedResource, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.knownLocked(client.ObjectKeyFromObject(mr))
	k.confirmed = objectVersion{}
	if meta.Refused(err) {
		return
	}
	if k.lost == nil || k.lost.before.UID != mr.UID {
		k.lost = &lostWrite{before: mr}
	}
	k.lost.asked = false
}

// before returns the version to compare with the next version when transitions are reported: the version before the
// first write without an answer, if the present version shows its outcome, and otherwise the present version.
func (s *Statuses) before(present *resourcesv1alpha1.ManagedResource, written bool) *resourcesv1alpha1.ManagedResource {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.knownLocked(client.ObjectKeyFromObject(present))
	lost := k.lost
	if lost == nil || lost.before.UID == present.UID && lost.before.ResourceVersion == present.ResourceVersion && !written {
		return present
	}
	k.lost = nil
	if lost.before.UID != present.UID {
		return present
	}
	return lost.before
}

// take waits until no other caller writes to a ManagedResource. The caller calls the returned function when it has
// written.
func (s *Statuses) take(ctx context.Context, key types.NamespacedName) (func(), error) {
	s.mu.Lock()
	k := s.knownLocked(key)
	k.writers++
	s.mu.Unlock()
	leave := func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if k.writers--; k.writers == 0 && k.written.mr == nil && k.confirmed == (objectVersion{}) && k.pace == nil && k.lost == nil {
			delete(s.known, key)
		}
	}
	if err := k.writing.Acquire(ctx, 1); err != nil {
		leave()
		return nil, fmt.Errorf("waiting for another write of the status: %w", err)
	}
	return func() { k.writing.Release(1); leave() }, nil
}

// Change describes a status to write; nil fields stay as they are.
type Change struct {
	Conditions []meta.ConditionChange
	// Stalled is true if the failure lasts until the content changes.
	Stalled bool
	// Judgements are changes of the health conditions. They change each condition at most once a second (MRB-39):
	// Update sets Later to the time until the remaining ones may be written; zero if there are none.
	Judgements []meta.ConditionChange
	Later      time.Duration
	Resources  *[]resourcesv1alpha1.ObjectReference
	// Reconciled sets observedGeneration and secretsDataChecksum.
	Reconciled *Reconciled
}

// Reconciled has the fields of the status that a completed reconciliation sets (MR-13).
type Reconciled struct {
	Generation int64
	Checksum   string
}

// ErrGone means that the ManagedResource does not exist any more, or was replaced by another one of the same name.
var ErrGone = fmt.Errorf("the ManagedResource is gone")

// Update writes a change to the status of the ManagedResource with the given UID. It calls change with the latest
// version, possibly several times; change returns nil if there is nothing to write. Update returns the resulting
// ManagedResource.
func (s *Statuses) Update(ctx context.Context, key types.NamespacedName, uid types.UID,
	change func(*resourcesv1alpha1.ManagedResource) *Change) (*resourcesv1alpha1.ManagedResource, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), statusTimeout)
	defer cancel()
	done, err := s.take(ctx, key)
	if err != nil {
		return nil, err
	}
	defer done()

	current, err := s.Get(ctx, key)
	for attempt := 0; ; attempt++ {
		if apierrors.IsNotFound(err) || (err == nil && current.UID != uid) {
			return nil, ErrGone
		}
		if err != nil {
			return nil, err
		}
		next, written, writeErr := s.write(ctx, current, change(current))
		if writeErr == nil {
			before := s.before(current, written)
			if written {
				s.Written(next)
			}
			s.events.transitions(ctx, before, next)
			return next, nil
		}
		if !apierrors.IsConflict(writeErr) || attempt == statusAttempts {
			if apierrors.IsNotFound(writeErr) {
				return nil, ErrGone
			}
			return nil, fmt.Errorf("writing the status: %w", writeErr)
		}
		current, err = s.read(ctx, key)
	}
}

// GetUncached reads a ManagedResource from the API server; Get then returns nothing older. This process does not
// write the status during the read.
func (s *Statuses) GetUncached(ctx context.Context,
	key types.NamespacedName) (*resourcesv1alpha1.ManagedResource, error) {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	leave, err := s.take(ctx, key)
	if err != nil {
		return nil, err
	}
	defer leave()
	return s.read(ctx, key)
}

func (s *Statuses) read(ctx context.Context, key types.NamespacedName) (*resourcesv1alpha1.ManagedResource, error) {
	cached, mr := &resourcesv1alpha1.ManagedResource{}, &resourcesv1alpha1.ManagedResource{}
	known := s.reader.Get(ctx, key, cached) == nil
	before := s.writtenOf(key).mr
	if err := s.live.Get(ctx, key, mr); err != nil {
		return nil, err
	}
	mr.ManagedFields = nil
	if known {
		s.Compare(cached, mr)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.knownLocked(key)
	if since := k.written.mr; since != nil && since != before && since.UID == mr.UID &&
		older(mr.ResourceVersion, since.ResourceVersion) {
		return since, nil // Its metadata was written during the read.
	}
	k.written = written{mr, s.clock.Now()}
	s.answeredLocked(mr)
	return mr, nil
}

// conditions returns the conditions after changes, with those of kstatus if they are configured. Stalled stays true
// as long as ResourcesApplied does not change.
func (s *Statuses) conditions(before meta.Conditions, change *Change, changes []meta.ConditionChange,
	now time.Time) (meta.Conditions, bool) {
	after, changed := before.With(now, changes...)
	derived := false
	if s.Readiness {
		was, is := before.Get(resourcesv1alpha1.ResourcesApplied), after.Get(resourcesv1alpha1.ResourcesApplied)
		same := was != nil && was.Status == is.Status && was.Reason == is.Reason && was.Message == is.Message
		after, derived = after.WithReadiness(now, change.Stalled || same &&
			before.Status(resourcesv1alpha1.Stalled) == resourcesv1alpha1.ConditionTrue)
	} else {
		after, derived = after.WithoutReadiness()
	}
	return after, changed || derived
}

// write sends only the fields that differ, bound to the resource version that they were computed from (MR-14). It
// requests only metadata in the answer: the rest is known, because the patch is bound, and may be a long inventory.
//
// Each field is one branch, which changes the patch and the returned ManagedResource together.
func (s *Statuses) write(ctx context.Context, current *resourcesv1alpha1.ManagedResource,
	change *Change) (*resourcesv1alpha1.ManagedResource, bool, error) {
	if change == nil {
		return current, false, nil
	}
	status := map[string]any{}
	next := *current
	now, key := s.clock.Now(), client.ObjectKeyFromObject(current)
	s.mu.Lock()
	judgements, later := s.knownLocked(key).pace.due(current.Status.Conditions, change.Judgements, now)
	s.mu.Unlock()
	change.Later = later
	conditions, changed := s.conditions(current.Status.Conditions, change, slices.Concat(judgements, change.Conditions),
		now.Truncate(time.Second))
	if changed {
		status["conditions"], next.Status.Conditions = conditions, conditions
	}
	if change.Resources != nil && !meta.SameInventory(current.Status.Resources, *change.Resources) {
		status["resources"], next.Status.Resources = *change.Resources, *change.Resources
	}
	if r := change.Reconciled; r != nil && (len(status) > 0 || current.Status.ObservedGeneration != r.Generation ||
		current.Status.SecretsDataChecksum == nil || *current.Status.SecretsDataChecksum != r.Checksum) {
		// The write has both fields even if only one differs: a restored source may have given the version to another
		// status.
		status["observedGeneration"], next.Status.ObservedGeneration = r.Generation, r.Generation
		status["secretsDataChecksum"], next.Status.SecretsDataChecksum = r.Checksum, &r.Checksum
	}
	if len(status) == 0 {
		return current, false, nil
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": current.ResourceVersion},
		"status":   status,
	})
	if err != nil {
		return nil, false, err
	}
	answer := metadataOf(current)
	if err = s.client.Status().Patch(ctx, answer, client.RawPatch(types.MergePatchType, patch)); err == nil {
		err = s.sameObject(current, answer)
	}
	if err != nil {
		s.unanswered(current, err)
		return nil, false, err
	}
	s.mu.Lock()
	s.knownLocked(key).pace.wrote(judgements, now)
	s.mu.Unlock()
	next.ObjectMeta = answer.ObjectMeta
	next.ManagedFields = nil
	return &next, true, nil
}

// sameObject returns a conflict if a write that was bound to a version changed other content than was read at that
// version: a restored source may reuse a version.
func (s *Statuses) sameObject(bound *resourcesv1alpha1.ManagedResource, answer *metav1.PartialObjectMetadata) error {
	if answer.Generation == bound.Generation && answer.UID == bound.UID {
		return nil
	}
	s.Restored(fmt.Sprintf("ManagedResource %s has generation %d at the version of generation %d",
		client.ObjectKeyFromObject(bound), answer.Generation, bound.Generation))
	return apierrors.NewConflict(resourcesv1alpha1.SchemeGroupVersion.WithResource("managedresources").GroupResource(),
		bound.Name, fmt.Errorf("the ManagedResource has generation %d at the version of generation %d: the source was restored; retrying",
			answer.Generation, bound.Generation))
}

// metadataOf returns an object that decodes only the metadata of an answer.
func metadataOf(mr *resourcesv1alpha1.ManagedResource) *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: mr.Namespace, Name: mr.Name}}
	object.SetGroupVersionKind(resourcesv1alpha1.SchemeGroupVersion.WithKind("ManagedResource"))
	return object
}

// PatchMetadata sends a merge patch of the metadata. If bound is true, the patch fails on a later version.
func (s *Statuses) PatchMetadata(ctx context.Context, mr *resourcesv1alpha1.ManagedResource, metadata map[string]any,
	bound bool) (*resourcesv1alpha1.ManagedResource, error) {
	if bound {
		metadata["resourceVersion"] = mr.ResourceVersion
	}
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return nil, err
	}
	if !bound {
		next := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: mr.Namespace, Name: mr.Name}}
		if err := s.client.Patch(ctx, next, client.RawPatch(types.MergePatchType, patch)); err != nil {
			s.unanswered(mr, err)
			return nil, err
		}
		next.ManagedFields = nil
		s.Written(next)
		return next, nil
	}
	answer := metadataOf(mr)
	if err = s.client.Patch(ctx, answer, client.RawPatch(types.MergePatchType, patch)); err == nil {
		err = s.sameObject(mr, answer)
	}
	if err != nil {
		s.unanswered(mr, err)
		return nil, err
	}
	next := *mr
	next.ObjectMeta = answer.ObjectMeta
	next.ManagedFields = nil
	s.Written(&next)
	return &next, nil
}
