package highavailability

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/espalier-project/espalier/internal/controller/node"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

func (f *fixture) considered(names ...string) {
	f.Helper()
	for _, name := range names {
		f.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{node.LabelConsider: "true"}}})
	}
}

// NHA-3, COM-3: labels of Namespaces may be anybody's: only configured namespaces count, and kube-system is served first.
func TestNamespaces(t *testing.T) {
	for name, tc := range map[string]struct {
		configured, want []string
	}{
		"NHA-3/kube-system first":              {nil, []string{"kube-system", "a", "on", "z"}},
		"COM-3/configured namespaces":          {[]string{"z", "kube-system", "off", "gone"}, []string{"kube-system", "z"}},
		"COM-3/none of those that are labeled": {[]string{"off"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.Namespaces = tc.configured
			f.considered("a", "z", "kube-system")
			for _, namespace := range []string{"a", "z", "on", "off", "kube-system"} {
				f.deployment(namespace, "d", corev1.ScheduleAnyway)
			}
			f.node()
			f.node()
			must.Succeed(t, expect.ErrorOf(f.Reconcile(t.Context(), reconcile.Request{})))
			expect.DeepEqual(t, f.patched, tc.want, "patched")
			for _, o := range f.listed {
				if o.Namespace != "" && !slices.Contains(tc.want, o.Namespace) {
					t.Errorf("workloads of namespace %s were listed", o.Namespace)
				}
			}
		})
	}
}

// NHA-3: whatever a namespace has is listed page by page.
func TestPages(t *testing.T) {
	f := newFixture(t)
	f.deployment("on", "d", corev1.ScheduleAnyway)
	f.node()
	f.node()
	f.wakes("two Nodes", "d")
	workloads := 0
	for _, o := range f.listed {
		if o.Namespace == "on" {
			workloads++
		}
		if o.LabelSelector != nil && o.Limit != page {
			t.Errorf("listed %s with limit %d", o.Namespace, o.Limit)
		}
	}
	expect.Equal(t, workloads, 2, "workloads were listed %d times", workloads)
	// A second page is read.
	pages, seen := []string{"x", "y", ""}, []string(nil)
	r := New(Options{Live: paged{f.target, &pages, &seen}})
	err := r.each(t.Context(), deployments, func(client.ObjectList) {})
	expect.True(t, err == nil && slices.Equal(seen, []string{"", "x", "y"}), "pages %q, %v", seen, err)
}

// NHA-4: webhooks of a tenant may let each patch wait; a bounded number of them is under way.
func TestPatchesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		for i := range 40 {
			f.deployment("on", fmt.Sprintf("d%02d", i), corev1.ScheduleAnyway)
		}
		f.node()
		f.node()
		f.onPatch = func() { time.Sleep(time.Second) }
		began := time.Now()
		must.Succeed(t, expect.ErrorOf(f.Reconcile(t.Context(), reconcile.Request{})))
		if took := time.Since(began); f.atOnce != parallel || len(f.woken) != 40 || took != 40/parallel*time.Second {
			t.Errorf("%d patches, %d at once, in %s", len(f.woken), f.atOnce, took)
		}
	})
}

// NHA-5: what is told of failures is bounded, and so is each text.
func TestFailuresAreBounded(t *testing.T) {
	w := &waking{}
	for range 1000 {
		w.fail(errors.New(strings.Repeat("x", 1<<20)))
	}
	text := w.joined().Error()
	expect.True(t, len(text) <= (shown+1)*(maxText+1) && strings.HasSuffix(text, "and 990 more"), "%d bytes", len(text))
	expect.Succeed(t, (&waking{}).joined(), "an error without a failure")
}

// NHA-2: checks on account of a webhook that is late count for the number of Nodes that they were for.
func TestLooksOfAnotherNumber(t *testing.T) {
	f := newFixture(t)
	f.node()
	f.node()
	f.deployment("on", "a", corev1.ScheduleAnyway)
	f.deployment("on", "own", corev1.ScheduleAnyway, "mine") // Nobody looks after it, so that each look leaves it.
	f.wakes("two Nodes", "a", "own")
	f.wakes("two Nodes, second look", "own")
	must.Succeed(t, f.target.Delete(t.Context(), &f.nodes()[1]))
	f.seen = func() int { return 2 }
	expect.Equal(t, f.wakes("one Node, the webhook is late", "a").RequeueAfter, again, "the webhook is not woken again")
	f.seen = func() int { return 1 }
	f.wakes("one Node, the webhook has seen it", "a")
}

// NHA-2: a number of Nodes that comes back after a run for the other number failed is not settled any more.
func TestNumberComesBack(t *testing.T) {
	f := newFixture(t)
	f.node()
	f.node()
	f.deployment("on", "a", corev1.ScheduleAnyway)
	f.deployment("on", "b", corev1.ScheduleAnyway)
	f.wakes("two Nodes", "a", "b")
	f.wakes("settled")
	must.Succeed(t, f.target.Delete(t.Context(), &f.nodes()[1]))
	f.fail = "b"
	if _, err := f.Reconcile(t.Context(), reconcile.Request{}); err == nil {
		t.Fatal("no error")
	}
	f.fail = ""
	f.node()
	f.wakes("two Nodes again, and a was changed for one", "a")
	f.wakes("settled again")
}

// paged answers lists with these continue tokens, and records those that it is asked with.
type paged struct {
	client.Client
	tokens, seen *[]string
}

func (p paged) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	o := (&client.ListOptions{}).ApplyOptions(options)
	*p.seen = append(*p.seen, o.Continue)
	list.SetContinue((*p.tokens)[0])
	*p.tokens = (*p.tokens)[1:]
	return nil
}
