package reflector

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"
)

// errTurnedBack ends a stream so that everything is listed anew: etcd was restored from a backup.
var errTurnedBack = errors.New("resource versions were turned back")

// versions records the progress of the API server's resource versions. A restored etcd continues to count its
// revisions from the backup. kube-apiserver does not report that to a watch that is resumed from a later version: it
// sends only later events, so that the changes by the restore are never sent. Once etcd has passed that version, no
// difference is visible. So before a watch is resumed, the versions of the API server and of the newest known object
// are read (unchanged). Both only grow, unless etcd was restored.
//
// Versions of one kind can be compared, those of several kinds cannot: they may be in several etcds. Versions that
// are not numbers are not compared.
type versions struct {
	// latest is the last version of the API server, and before its version when the current list or stream was
	// requested.
	latest, before uint64
	// newest is the object that was changed last, at the version changed.
	newest  types.NamespacedName
	changed uint64
}

// begin records that everything is listed.
func (v *versions) begin() { *v = versions{before: max(v.before, v.latest)} }

// saw records an event.
func (v *versions) saw(kind watch.EventType, object metav1.Object) {
	version := versionOf(object.GetResourceVersion())
	v.latest = max(v.latest, version)
	if kind != watch.Bookmark && version > v.changed {
		v.changed, v.newest = version, types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
	}
}

// complete records that everything was listed as of a version, and reports whether that is an earlier one than was
// known before.
func (v *versions) complete(version uint64) bool {
	if version == 0 {
		return false
	}
	earlier := version < v.before
	v.before, v.latest = 0, max(v.latest, version)
	return earlier
}

// complete records that everything was listed as of a version.
func (b *beginning) complete(version string) {
	f := b.f
	f.taking.Lock()
	back := f.current == b && f.versions.complete(versionOf(version))
	f.taking.Unlock()
	if back && !f.anew.Swap(false) {
		f.turnedBack()
	}
	f.anew.Store(false)
}

// versionOf returns the number of a version, 0 if it is not a number.
func versionOf(text string) uint64 {
	version, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0
	}
	return version
}

// unchanged returns an error if a watch must not be resumed. If etcd was restored, everything is listed after it; if
// this is unknown, the watch is tried again.
func (f *Follower) unchanged(ctx context.Context) error {
	f.taking.Lock()
	known := f.versions
	f.taking.Unlock()
	newest := known.newest
	if known.latest == 0 {
		return nil
	}
	options := metav1.ListOptions{Limit: 1}
	if newest.Name != "" {
		options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, newest.Name).String()
	}
	namespace := f.Namespace
	if newest.Namespace != "" {
		namespace = newest.Namespace // A list of one name in a namespace is a read of one key.
	}
	turned := false
	list, err := f.page(ctx, f.requestIn(namespace, &options), func(object runtime.Object) error {
		accessor, err := meta.Accessor(object)
		if err != nil {
			return nil //nolint:nilerr // The version of the list is sufficient.
		}
		version := versionOf(accessor.GetResourceVersion())
		same := newest == types.NamespacedName{Namespace: accessor.GetNamespace(), Name: accessor.GetName()}
		turned = turned || same && version != 0 && version < known.changed
		return nil
	})
	switch {
	case err != nil && (apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)):
		return err
	case err != nil: // After this error, a reflector waits and resumes its watch.
		return apierrors.NewTooManyRequests(fmt.Sprintf("asking how far %s are: %v", f.Resource.Resource, err), 0)
	}
	if version := versionOf(list.ResourceVersion); !turned && (version == 0 || version >= known.latest) {
		return nil
	}
	f.anew.Store(true)
	f.turnedBack()
	return apierrors.NewResourceExpired(errTurnedBack.Error())
}

// turnedBack records that etcd was restored, and makes all followers of the group list everything.
func (f *Follower) turnedBack() {
	f.log.Info("Resource versions were turned back, as by a restore of etcd; everything is listed anew")
	if f.group != nil {
		f.group.renew(f)
	}
}

// Renew lists everything anew, as if nothing were known of the API server. The known objects are kept until the list
// is complete.
func (f *Follower) Renew() {
	f.anew.Store(true)
	f.taking.Lock()
	end := f.end
	f.taking.Unlock()
	if end != nil {
		end(errTurnedBack)
	}
}

// group are the followers of one cluster. If one of them proves that versions were turned back, that is true for all.
// A watch that was not interrupted, or was resumed late, cannot prove it.
type group struct {
	clock clock.PassiveClock
	// pause is the minimum time between two times at which such a proof makes all followers list. It limits the cost
	// of an API server that continues to count backwards.
	pause time.Duration

	mu      sync.Mutex
	members []*Follower
	renewed time.Time
}

const renewPause = time.Minute

// Together makes a group of followers of the same cluster. It is called before they start.
func Together(followers []*Follower, c clock.PassiveClock) {
	g := &group{clock: c, pause: renewPause, members: followers}
	for _, f := range followers {
		f.group = g
	}
}

// renew makes all members list everything, except for the one that does so already.
func (g *group) renew(prover *Follower) {
	g.mu.Lock()
	if !g.renewed.IsZero() && g.clock.Since(g.renewed) < g.pause {
		g.mu.Unlock()
		return
	}
	g.renewed = g.clock.Now()
	g.mu.Unlock()
	for _, f := range g.members {
		if f != prover {
			f.Renew()
		}
	}
}
