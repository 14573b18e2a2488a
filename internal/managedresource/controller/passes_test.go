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
	"pgregory.net/rapid"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
)

// MRT-4, MRB-21: whatever a watch tells of Secrets, and however runs end, a ManagedResource is in doubt exactly if the last
// run that ended well did not read what the Secrets are now.
func TestDoubtLaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mr := &resourcesv1alpha1.ManagedResource{}
		mr.Namespace, mr.Name, mr.UID, mr.Generation = "n", "m", "u", 1
		mr.Spec.SecretRefs = []corev1.LocalObjectReference{{Name: "s"}}
		secret := types.NamespacedName{Namespace: "n", Name: "s"}
		var p passes
		version, toldVersion := 0, -1 // the world, and what the watch has told of it so far
		name := func(v int) string { return string(rune('a' + v%26)) }
		var began *pass
		read := -1
		applied := -1
		ask := false
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"write", "tell", "begin", "read", "end well", "end badly", "gap"}).Draw(t, "step") {
			case "write":
				version++
			case "tell":
				if toldVersion < version {
					toldVersion++
					if toldVersion > 0 {
						p.secretChanged(secret, name(toldVersion))
					}
				}
			case "gap":
				toldVersion = version
				p.allInDoubt()
			case "begin":
				if began == nil {
					p.reads(mr)
					b := p.of(mr)
					began, read = &b, -1
				}
			case "read":
				if began != nil && read < 0 {
					read = version
				}
			case "end well":
				if began != nil && read >= 0 {
					p.finished(mr, *began, end{secrets: map[string]string{"s": name(read)}, checksum: "checksum"})
					applied, began, ask = read, nil, false
				}
			case "end badly":
				if began != nil {
					p.failed(mr)
					began, ask = nil, true
				}
			}
			known := p.of(mr)
			if began == nil && known.complete && applied != version && toldVersion == version && !known.inDoubt() {
				t.Fatalf("version %d was told, %d is applied, and nobody doubts", version, applied)
			}
			if ask && !known.inDoubt() {
				t.Fatal("a run that failed settled a doubt")
			}
		}
		// Once everything was told, two runs that end well leave no doubt: the second begins after the last news.
		for toldVersion < version {
			toldVersion++
			p.secretChanged(secret, name(toldVersion))
		}
		for range 2 {
			p.reads(mr)
			b := p.of(mr)
			p.finished(mr, b, end{secrets: map[string]string{"s": name(version)}, checksum: "checksum"})
		}
		if known := p.of(mr); known.inDoubt() {
			t.Fatalf("still in doubt: %+v", known)
		}
	})
}

// MRT-4: a Secret that is deleted, created and deleted again while a run reads it is not forgotten.
func TestDeletedTwice(t *testing.T) {
	mr := &resourcesv1alpha1.ManagedResource{}
	mr.Namespace, mr.Name, mr.UID, mr.Generation = "n", "m", "u", 1
	mr.Spec.SecretRefs = []corev1.LocalObjectReference{{Name: "s"}}
	secret := types.NamespacedName{Namespace: "n", Name: "s"}
	var p passes
	p.reads(mr)
	p.secretChanged(secret, "")
	began := p.of(mr)
	p.secretChanged(secret, "2")
	p.secretChanged(secret, "")
	p.finished(mr, began, end{secrets: map[string]string{"s": "2"}, checksum: "checksum"})
	if known := p.of(mr); !known.inDoubt() {
		t.Error("the second deletion is forgotten")
	}
	began = p.of(mr)
	p.finished(mr, began, end{secrets: map[string]string{"s": "3"}, checksum: "checksum"})
	if known := p.of(mr); known.inDoubt() {
		t.Error("the doubt does not end")
	}
}

func TestPasses(t *testing.T) {
	mr := &resourcesv1alpha1.ManagedResource{}
	mr.Namespace, mr.Name, mr.UID, mr.Generation = "n", "m", "u", 1
	mr.Spec.SecretRefs = []corev1.LocalObjectReference{{Name: "s"}}
	var p passes
	p.reads(mr)
	p.finished(mr, p.of(mr), end{secrets: map[string]string{"s": "1"}, checksum: ""})
	if known := p.of(mr); known.wantsFull() || known.inDoubt() {
		t.Errorf("a run that ended well settles: %+v", known)
	}
	p.doubt(mr, true)
	began := p.of(mr)
	if !began.wantsFull() {
		t.Error("MR-1, MRT-7: operation=reconcile asks for a full run")
	}
	p.failed(mr)
	if known := p.of(mr); !known.wantsFull() {
		t.Error("MRT-7: and it stays asked for when that run failed")
	}
	p.finished(mr, p.of(mr), end{secrets: map[string]string{"s": "1"}, checksum: ""})
	if known := p.of(mr); known.wantsFull() {
		t.Error("MRT-7: until one ended well")
	}
	if got := p.secretChanged(types.NamespacedName{Namespace: "other", Name: "s"}, "2"); len(got) != 0 {
		t.Errorf("MRT-4: a Secret of another namespace: %v", got)
	}
	if got := p.secretChanged(types.NamespacedName{Namespace: "n", Name: "s"}, ""); len(got) != 1 || !p.inDoubt(got[0]) {
		t.Errorf("MR-7: a Secret that is gone puts into doubt: %v", got)
	}
	next := mr.DeepCopy()
	next.Spec.SecretRefs[0].Name = "t"
	p.reads(next)
	if got := p.secretChanged(types.NamespacedName{Namespace: "n", Name: "s"}, "3"); len(got) != 0 {
		t.Errorf("MRT-4: a Secret that is not named any more: %v", got)
	}
	mr.UID = "another"
	if known := p.of(mr); known.complete {
		t.Error("another ManagedResource by the same name starts anew")
	}
	p.forget(ownerOf(mr))
	if len(p.readers) != 0 || len(p.byOwner) != 0 {
		t.Errorf("what is forgotten leaves nothing behind: %v", p.readers)
	}
}

// MR-13: after a gap a Secret may have other data in a version that was read before, as in a restored source; the checksum is that of what it has.
func TestVersionThatComesAgainAfterAGap(t *testing.T) {
	f := newFixture(t)
	f.managed("m", "a=2")
	f.settle("m")
	want := *f.get("m").Status.SecretsDataChecksum
	f.secret("m", "2", "a=1")
	f.settle("m")
	untold := *f
	untold.triggers = &Triggers{reconciler: New(f.Options)} // Of what happens in the gap nobody is told.
	untold.secret("m", "2", "a=2")
	f.triggers.SecretsMissed()
	f.settle("m")
	if value, _ := f.target.value("a"); value != "2" || *f.get("m").Status.SecretsDataChecksum != want {
		t.Errorf("a is %s, and the checksum %s, want %s", value, *f.get("m").Status.SecretsDataChecksum, want)
	}
}

// Liveness, MRT-3: a look at everything that takes longer than a sync period goes on where it ended, as a first run does.
func TestAskedRunGoesOnAfterTheSyncPeriod(t *testing.T) {
	f := newFixture(t, func(c *config.ManagedResourceControllerConfig) {
		c.SyncPeriod = &metav1.Duration{Duration: 500 * time.Millisecond}
	})
	var names []string
	for i := range 6 * perRun {
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
