package controller

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/lifecycle"
	"github.com/espalier-project/espalier/internal/managedresource/steps"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// TestReadersOfSecrets: who reads a Secret is told of its changes, from the moment on at which the run is about to read it.
func TestReadersOfSecrets(t *testing.T) {
	t.Parallel()
	mr := &resourcesv1alpha1.ManagedResource{}
	mr.Namespace, mr.Name, mr.UID, mr.Generation = "n", "m", "u", 1
	mr.Spec.SecretRefs = []corev1.LocalObjectReference{{Name: "s"}}
	secret := types.NamespacedName{Namespace: "n", Name: "s"}
	var s states
	run, _ := s.begin(mr, lifecycle.RunBegins{})
	must.True(t, run != nil && run.VisitsUnknown(), "the first run: %+v", run)
	s.step(mr, lifecycle.RunSucceeded{Completed: lifecycle.Completed{Generation: 1, Secrets: map[string]string{"s": "1"}}})
	expect.Empty(t, s.secretChanged(secret, "1"), "MRT-4: the version that was read is reported")
	expect.Empty(t, s.secretChanged(types.NamespacedName{Namespace: "other", Name: "s"}, "2"),
		"MRT-4: a Secret of another namespace")
	got := s.secretChanged(secret, "")
	expect.True(t, len(got) == 1 && s.of(got[0]).IsOutOfSync(), "MR-7: a Secret that is gone puts into doubt: %v", got)
	next := mr.DeepCopy()
	next.Spec.SecretRefs[0].Name = "t"
	s.begin(next, lifecycle.RunBegins{})
	expect.Empty(t, s.secretChanged(secret, "3"), "MRT-4: a Secret that is not named any more")
	mr.UID = "another"
	expect.True(t, s.get(mr).Last == nil, "another ManagedResource by the same name starts anew")
	s.forget(steps.OwnerOf(mr))
	expect.True(t, len(s.readers) == 0 && len(s.secrets) == 0 && len(s.byOwner) == 0,
		"what is forgotten leaves nothing behind: %v", s.readers)
}

// MRT-4: the first run of a ManagedResource does not apply a version that is older than one that another ManagedResource knows.
func TestStates_VersionsKnownToOthers(t *testing.T) {
	t.Parallel()
	mr := func(namespace, name string) *resourcesv1alpha1.ManagedResource {
		mr := &resourcesv1alpha1.ManagedResource{}
		mr.Namespace, mr.Name, mr.UID, mr.Generation = namespace, name, types.UID(namespace+name), 1
		mr.Spec.SecretRefs = []corev1.LocalObjectReference{{Name: "s"}}
		return mr
	}
	var s states
	outdated := func(of *resourcesv1alpha1.ManagedResource, version string) bool {
		run, _ := s.begin(of, lifecycle.RunBegins{})
		return run.ReadOutdated(map[string]string{"s": version})
	}
	s.begin(mr("n", "first"), lifecycle.RunBegins{})
	s.step(mr("n", "first"), lifecycle.RunSucceeded{Completed: lifecycle.Completed{Generation: 1, Secrets: map[string]string{"s": "u/5"}}})
	expect.Equal(t, outdated(mr("n", "second"), "u/4"), true, "the first one read a later version")
	expect.Equal(t, outdated(mr("n", "second"), "u/5"), false, "the first one read this version")
	s.secretChanged(types.NamespacedName{Namespace: "n", Name: "s"}, "u/7")
	expect.Equal(t, outdated(mr("n", "third"), "u/6"), true, "a watch reported a later version to the others")
	expect.Equal(t, outdated(mr("other", "third"), "u/6"), false, "a Secret of another namespace")
	s.secretsMissed()
	expect.Equal(t, outdated(mr("n", "fourth"), "u/4"), false, "the source may have been restored")
}

// MR-13: after a gap a Secret may have other data in a version that was read before, as in a restored source; the checksum is that of what it has.
func TestVersionThatComesAgainAfterAGap(t *testing.T) {
	t.Parallel()
	f := newApplied(t, "m", "a=2")
	want := *f.get("m").Status.SecretsDataChecksum
	f.secret("m", "2", "a=1")
	f.complete("m")
	unreported := *f
	unreported.triggers = &Triggers{reconciler: New(f.Options)} // Of what happens in the gap nobody is told.
	unreported.secret("m", "2", "a=2")
	f.triggers.SecretsMissed()
	f.complete("m")
	if value, _ := f.target.value("a"); value != "2" || *f.get("m").Status.SecretsDataChecksum != want {
		t.Errorf("a is %s, and the checksum %s, want %s", value, *f.get("m").Status.SecretsDataChecksum, want)
	}
}

// Liveness, MRT-3: a look at everything that takes longer than a sync period goes on where it ended, as a first run does.
func TestAskedRunGoesOnAfterTheSyncPeriod(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(c *config.ManagedResourceControllerConfig) {
		c.SyncPeriod = &metav1.Duration{Duration: 500 * time.Millisecond}
	})
	var names []string
	for i := range 6 * steps.PerRun {
		names = append(names, fmt.Sprintf("c%d=1", i))
	}
	f.managed("m", names...)
	f.watch()
	_, _ = f.run("m")
	f.awaitCovered("m")
	f.rest("m")
	var reads atomic.Int32
	var gate atomic.Pointer[chan struct{}]
	f.target.hook(func(method, _ string) int {
		if method == http.MethodGet && reads.Add(-1) < 0 {
			<-*gate.Load() // There is time for half of the objects only.
		}
		return 0
	})
	mr := f.get("m")
	mr.Annotations = map[string]string{resourcesv1alpha1.AnnotationOperation: resourcesv1alpha1.OperationReconcile}
	f.must(f.source.Update(f.ctx, mr))
	var err error
	for range 40 {
		closed := make(chan struct{})
		gate.Store(&closed)
		reads.Store(int32(len(names) / 2))
		_, err = f.run("m")
		close(closed)
		if err == nil {
			return
		}
	}
	t.Errorf("after forty runs, each with time for half of the objects: %v", err)
}
