package target

import (
	"strconv"
	"testing"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/test/must"
)

// putUnlabelled writes the Deployment of a rollout without the label that watches go by.
func (r *rollout) putUnlabelled(available string) { r.putLabelled(theirs, available) }

func (r *rollout) putLabelled(labels map[string]any, available string) {
	r.putLabelledWith(labels, available, 0)
}

// takeLabelOff changes the Deployment to one without the label. Watches that go by it are told what API servers tell then: that the object, as it was
// before, is deleted, at the version of the change.
func (r *rollout) takeLabelOff() (version string) {
	r.server.mu.Lock()
	before := r.kinds[deploymentKind].objects["n/d"]
	r.server.mu.Unlock()
	r.putUnlabelled("True")
	r.server.mu.Lock()
	defer r.server.mu.Unlock()
	version = strconv.Itoa(r.version)
	r.history = append(r.history, event{deploymentKind, "DELETED", r.version, withVersion(before, r.version), false})
	r.version++ // So that watches that have slept through the first news report it.
	r.changed.Broadcast()
	return version
}

// judged is what health says of the Deployment.
func (r *rollout) judged(t *testing.T) (problem, covered bool) {
	t.Helper()
	assessment, err := r.assessor.Confirm(t.Context(), []resourcesv1alpha1.ObjectReference{entryOf(refTo(deploymentKind, "n", "d"))})
	must.Succeed(t, err)
	return assessment.Health.Status != resourcesv1alpha1.ConditionTrue, assessment.Covered
}

// MRT-14: an object whose label somebody takes off, and whose repair is delayed, no watch sees: it is read each period until it has the label again,
// however the watches and the reads have told of it.
func TestHealthWithoutTheLabel(t *testing.T) {
	for name, takeOff := range map[string]func(t *testing.T, r *rollout){
		"while a watch runs": func(t *testing.T, r *rollout) {
			changed, ref := r.takeLabelOff(), refTo(deploymentKind, "n", "d")
			eventually(t, "the watch has told", func() bool {
				f := r.Get(ref.ID)
				return f.Known && !f.Present && f.ResourceVersion == changed && f.OutOfSync
			})
		},
		"in a gap of the watch": func(t *testing.T, r *rollout) {
			ref := refTo(deploymentKind, "n", "d")
			end := r.gap(t, func() bool { return !r.Covered(ref) }, func() {
				r.putUnlabelled("True")
				r.put(configMaps, "n", "x", nil)
			})
			end()
			eventually(t, "covered", func() bool { return r.Covered(ref) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRollout(t, 0)
			r.follow(t)
			verify(r.Tracker, owner, refTo(deploymentKind, "n", "d"))
			takeOff(t, r)
			for range 3 {
				if problem, covered := r.judged(t); problem || covered {
					t.Fatalf("it is there, healthy, and no watch sees it: problem %t, covered %t", problem, covered)
				}
				r.putUnlabelled("True") // As any change of its status does.
			}
			r.putUnlabelled("False")
			if problem, covered := r.judged(t); !problem || covered {
				t.Errorf("it is unhealthy, and no watch sees it: problem %t, covered %t, on record is %+v", problem, covered, r.Get(refTo(deploymentKind, "n", "d").ID))
			}
			r.putLabelled(managedLabel, "True")
			eventually(t, "covered again", func() bool {
				_, covered := r.judged(t)
				return covered
			})
		})
	}
}
