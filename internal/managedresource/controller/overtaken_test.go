package controller

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/source"
	"github.com/espalier-project/espalier/internal/managedresource/steps"
	"github.com/espalier-project/espalier/internal/managedresource/target"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// MR-13: what a run leaves alone, as it was as it should be a moment ago, counts as applied only if nobody has told otherwise by the time at
// which the run says so.
func TestAppliedIsNotSaidOfWhatChangedSince(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.watch()
	f.managed("m", "a=1", "b=1")
	f.rest("m")
	f.secret("m", "2", "a=1", "b=2")
	changes, said := 0, 0
	f.onSource.SubResourcePatch = func(ctx context.Context, c client.Client, sub string, object client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
		content, err := patch.Data(object)
		f.must(err)
		if value, _ := f.target.value("a"); strings.Contains(string(content), "observedGeneration") || strings.Contains(string(content), "secretsDataChecksum") {
			if said++; value != "1" {
				t.Errorf("a is %s, and the run says that it is done", value)
			}
		}
		return c.SubResource(sub).Patch(ctx, object, patch, opts...)
	}
	f.target.hook(func(method, name string) int {
		if method == http.MethodPut && name == "b" && changes == 0 {
			changes++
			f.edited("a", setValue("7")) // The run has passed it by.
		}
		return 0
	})
	f.complete("m")
	value, _ := f.target.value("a")
	expect.True(t, value == "1" && changes == 1 && said == 1, "a is %s after %d changes, %d reports", value, changes, said)
}

// deletesOne lets something happen when the first of two objects is deleted, before the second one is looked at, and returns what was looked at
// first, and all that was deleted.
func (f *fixture) deletesOne(then func()) (result func() (looks, deleted []string)) {
	var mu sync.Mutex
	var looks, deleted []string
	happened := make(chan struct{})
	f.target.hook(func(method, name string) int {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case method == http.MethodDelete:
			if deleted = append(deleted, name); len(deleted) == 1 {
				then()
				close(happened)
			}
		case method == http.MethodGet && len(looks) < 2:
			if looks = append(looks, name); len(looks) == 2 {
				mu.Unlock()
				<-happened
				mu.Lock()
			}
		}
		return 0
	})
	return func() ([]string, []string) {
		mu.Lock()
		defer mu.Unlock()
		return looks, deleted
	}
}

// MRX-5: before each deletion it is asked for still, as far as anybody told.
func TestDeletionsEndWhenTheyAreNotAskedForAnyMore(t *testing.T) {
	t.Parallel()
	for how, tc := range map[string]struct {
		begin, change func(*fixture)
	}{
		"the class goes, and comes back": {
			begin: func(f *fixture) {
				f.edit("m", func(mr *resourcesv1alpha1.ManagedResource) { mr.Spec.Class = ptr.To("other") })
			},
			change: func(f *fixture) { f.edit("m", func(mr *resourcesv1alpha1.ManagedResource) { mr.Spec.Class = nil }) },
		},
		"objects are to be kept after all": {
			begin: func(f *fixture) {
				f.edit("m", func(mr *resourcesv1alpha1.ManagedResource) { mr.Spec.Class = ptr.To("other") })
			},
			change: func(f *fixture) {
				f.edit("m", func(mr *resourcesv1alpha1.ManagedResource) { mr.Spec.KeepObjects = ptr.To(true) })
			},
		},
		"it is to be ignored": {
			begin: func(f *fixture) { f.secret("m", "2") },
			change: func(f *fixture) {
				f.edit("m", func(mr *resourcesv1alpha1.ManagedResource) {
					mr.Annotations = map[string]string{resourcesv1alpha1.AnnotationIgnore: "true"}
				})
			},
		},
		"the Secret has them again": {
			begin:  func(f *fixture) { f.secret("m", "2") },
			change: func(f *fixture) { f.secret("m", "3", "a=1", "b=1") },
		},
	} {
		t.Run(how, func(t *testing.T) {
			f := newApplied(t, "m", "a=1", "b=1")
			uids := map[string]string{"a": f.uid("a"), "b": f.uid("b")}
			tc.begin(f)
			deletions := f.deletesOne(func() { tc.change(f) })
			f.runs("m", 4)
			if looks, deleted := deletions(); len(deleted) != 1 || len(looks) != 2 || f.uid(looks[1]) != uids[looks[1]] {
				t.Errorf("looked at %v, deleted %v", looks, deleted)
			}
		})
	}
}

// MRX-5: what a run created that was overtaken before it said so is ours, and put on record by the next one.
func TestOvertakenRunRemembersWhatItCreated(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.watch()
	f.managed("m", "a=1", "c1!=1", "c2!=1", "c3!=1", "c4!=1") // So many that one watch reports all that is created only once.
	f.rest("m")
	f.secret("m", "2", "a=1", "c1!=1", "c2!=1", "c3!=1", "c4!=1", "y!=1")
	changes := 0
	f.target.hook(func(method, name string) int {
		if method == http.MethodPost && name == "y" && changes == 0 {
			changes++
			f.edited("a", setValue("7")) // The run has passed it by.
		}
		return 0
	})
	f.beforeStatus(2, func() error { return errors.New("what it wrote can't be put on record") })
	result, err := f.run("m")
	f.must(err)
	must.True(t, result.RequeueAfter == time.Millisecond && changes == 1, "not overtaken: %v", result)
	f.awaitCovered("m")
	f.complete("m")
	expect.Equal(t, f.inventory("m"), "a c1 c2 c3 c4 y", "inventory %q: the object y was created for it", f.inventory("m"))
	// Another leader: nothing is remembered.
	f.target.hook(nil)
	f.dropState(steps.OwnerOf(f.get("m")))
	f.secret("m", "3", "a=1", "c1!=1", "c2!=1", "c3!=1", "c4!=1")
	f.complete("m")
	expect.False(t, expect.OK(f.target.value("y")),
		"y is left behind; condition %s, inventory %q", f.condition("m"), f.inventory("m"))
}

// MRL-6, MRX-5: a process that stood still and is not the leader any more leaves the entries alone that the next one wrote: with those the next
// one takes away what no manifest has any more.
func TestFormerLeaderReportsLate(t *testing.T) {
	t.Parallel()
	f := newApplied(t, "m", "a=1")
	next := f.anotherProcess()
	f.manifests("m", "2", configMap("a", "2", "labels: {one: x}"))
	paused := false
	f.target.after = func(method, name string) int {
		if method == http.MethodPut && name == "a" && !paused {
			paused = true
			next.manifests("m", "3", configMap("a", "3", "labels: {two: x}"))
			next.complete("m")
		}
		return 0
	}
	_, err := f.run("m") // Its last one.
	f.must(err)
	if got := f.get("m"); got.Status.Resources[0].Labels["two"] != "x" || next.states.contradicts(got) {
		t.Errorf("the entry of the next leader has labels %v", got.Status.Resources[0].Labels)
	}
	next.manifests("m", "4", configMap("a", "4", "annotations: {x: x}"))
	next.complete("m")
	labels := f.live("a").GetLabels()
	expect.True(t, labels["two"] == "" && labels["one"] == "", "a label that no manifest has any more stays: %v", labels)
}

// anotherProcess is one beside that of a fixture, with the same source and target.
func (f *fixture) anotherProcess() *fixture {
	options := f.Options
	options.Tracker = objects.New()
	options.Watches = target.NewWatches(f.Target, options.Tracker, target.WatchOptions{Log: logr.Discard()})
	options.Statuses = source.NewStatuses(f.source, f.source, f.source, f.clock, f.Events)
	options.Secrets = source.NewSecrets(f.secrets.CoreV1(), nil, logr.Discard())
	options.Assessor = target.NewAssessor(f.Target, options.Tracker, options.Watches, f.clock)
	options.Metrics = nil
	another := *f
	another.Reconciler = New(options)
	another.triggers = another.Triggers
	return &another
}

// MRX-5: a Secret that is gone ends deletions, also if it was gone before.
func TestDeletionsEndWithTheSecret(t *testing.T) {
	t.Parallel()
	f := newApplied(t, "m", "a=1", "b=1")
	key := types.NamespacedName{Namespace: "n", Name: "m"}
	f.must(f.secrets.CoreV1().Secrets("n").Delete(f.ctx, "m", metav1.DeleteOptions{}))
	f.triggers.SecretChanged(key, "")
	_, _ = f.run("m") // CannotReadSecret.
	// It is back, without both; the watch does not tell yet.
	told := f.Triggers
	f.triggers = &Triggers{reconciler: New(f.Options)}
	f.secret("m", "5")
	f.triggers = told
	deletions := f.deletesOne(func() {
		f.must(f.secrets.CoreV1().Secrets("n").Delete(f.ctx, "m", metav1.DeleteOptions{}))
		f.triggers.SecretChanged(key, "m/5")
		f.triggers.SecretChanged(key, "")
	})
	_, _ = f.run("m")
	if looks, deleted := deletions(); len(looks) != 2 || len(deleted) != 1 {
		t.Errorf("looked at %v, deleted %v, though the Secret was told to be gone after the first one", looks, deleted)
	}
}
