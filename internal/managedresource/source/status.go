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
	// statusTimeout limits one status write; it has a time limit of its own so that a reconciliation that ran out of time
	// can still say so (MRB-6).
	statusTimeout = 20 * time.Second
	// statusAttempts limits how often a conflict is answered with another try before the caller backs off.
	statusAttempts = 6
)

// Statuses reads ManagedResources and writes their statuses. Three controllers write the same status: writes to one
// ManagedResource follow one another, build on the latest one, and are left out where nothing would change.
//
// Invariant: each written version was read from or answered by the API server for that UID. It counts only until the
// cache has that version or a later one, and for no longer than a cache may lag; so no caller gets a version older than
// one that was acted on, unless the source was restored (Restored).
//
// The confirmed version of a ManagedResource is the first answer of the API server to this process since which it has
// answered every write: any version that Get returned since then has all that was ever written for
// this instance. Other answers of Get may lack a write whose answer was lost, or the last write of the process before
// this one.
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

// known is the memory of one ManagedResource.
type known struct {
	// written is the version that the cache need not have yet, confirmed the first version since which each write was answered;
	// a zero value if there is none.
	written   written
	confirmed objectVersion
	pace      pace
	// lost are the writes without an answer, one or some in a row, until their outcome is known; nil if there are none.
	lost *lostWrite
	// writing is held by the one writer whose turn it is; writers counts those that hold it or wait for it.
	writing *semaphore.Weighted
	writers int
}

// lostWrite is a write with an unknown outcome.
type lostWrite struct {
	// before is the version that the write was to change: no Event has reported the change.
	before *resourcesv1alpha1.ManagedResource
	// asked is true if the API server has answered since with the present version, so that Get has it.
	asked bool
}

// objectVersion is one version of one ManagedResource.
type objectVersion struct {
	uid     types.UID
	version string
}

// written is a version of a ManagedResource that the cache need not have yet.
type written struct {
	mr *resourcesv1alpha1.ManagedResource
	at time.Time
}

// lag limits the time that a cache may take to deliver a write. Writes are bound to versions, so that a version that
// counts as the latest for too long or too short costs a conflict and nothing else.
const lag = 30 * time.Second

// counts reports whether the version is later than the cached one.
func (w written) counts(cached *resourcesv1alpha1.ManagedResource, now time.Time) bool {
	if w.mr == nil {
		return false
	}
	return w.mr.UID == cached.UID && older(cached.ResourceVersion, w.mr.ResourceVersion) && now.Sub(w.at) < lag
}

// NewStatuses returns statuses; reader is the cache, live asks the API server.
func NewStatuses(reader, live client.Reader, writer client.Client, clock clock.PassiveClock, events *Events) *Statuses {
	return &Statuses{
		reader: reader, live: live, client: writer, clock: clock, events: events,
		Restored: func(string) {}, known: map[types.NamespacedName]*known{},
	}
}

// Get returns the latest known version of a ManagedResource: that of the cache, or of the last write if the cache does
// not have that yet. It must not be changed.
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

// Observed takes the version that the cache has, and drops a written version that is not later. It returns true if Get goes
// on with a later version: the cache lags, or the source was restored.
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

// Lag returns the time until Get returns the version in the cache, however old that is; zero if it does so already.
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

// Confirmed reports whether a version of a ManagedResource that Get returned has all that was written to it for this
// instance until then.
func (s *Statuses) Confirmed(mr *resourcesv1alpha1.ManagedResource) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.known[client.ObjectKeyFromObject(mr)]
	return k != nil && k.confirmed != objectVersion{} && k.confirmed.uid == mr.UID && !older(mr.ResourceVersion, k.confirmed.version)
}

// answeredLocked records that the API server has answered with a version of a ManagedResource.
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

// before returns the form from which transitions are reported when a ManagedResource has a later one: the form before
// the first write without an answer, if the present form shows its outcome, else the present one.
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

// take waits until no other caller writes to a ManagedResource; the returned function admits the next writer.
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
	// Stalled is true if the content cannot be applied as it is, so that a failure lasts until there is new content.
	Stalled bool
	// Judgements are changes of the conditions of health. Each condition is written at most once a second for their
	// sake (MRB-39): Update sets Later to the time until the remaining ones may be written, zero if there are none.
	Judgements []meta.ConditionChange
	Later      time.Duration
	Resources  *[]resourcesv1alpha1.ObjectReference
	// Reconciled sets observedGeneration and secretsDataChecksum.
	Reconciled *Reconciled
}

// Reconciled is the end of a successful reconciliation (MR-13).
type Reconciled struct {
	Generation int64
	Checksum   string
}

// ErrGone means that the ManagedResource does not exist any more, or is another one by the same name.
var ErrGone = fmt.Errorf("the ManagedResource is gone")

// Update writes the change for the latest version of the ManagedResource with the given UID; change may be called several
// times and returns nil for nothing to write. Update returns the resulting ManagedResource.
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

// GetUncached reads a ManagedResource from the API server; Get then returns nothing older. This process writes no
// status of it meanwhile.
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
		return since, nil // Its metadata was written meanwhile.
	}
	k.written = written{mr, s.clock.Now()}
	s.answeredLocked(mr)
	return mr, nil
}

// conditions returns the conditions after changes, with those of kstatus if they are configured. A failure that only
// new content can end stays one as long as ResourcesApplied is as it was.
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

// write sends the differing fields only, bound to the resource version that they were computed from (MR-14). It
// requests only the metadata of the answer: the patch is bound, so that the rest is known, and it may be a long
// inventory.
//
// Each field that differs is one branch, and what is sent and what is returned are changed together.
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
		// The write names the whole status: a restored source may give the version to content with another status.
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

// sameObject returns a conflict if a write that was bound to a version met another content at that version: a restored
// source may give a version to another content.
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

// PatchMetadata sends a merge patch of the metadata; bound is true for one that must not be applied to a later
// version.
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
