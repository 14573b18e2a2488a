package deletionprotection

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-project/espalier/internal/endpoint/admission/admissiontest"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// cluster has objects that come and go, in one namespace; each list takes a while.
type cluster struct {
	mu    sync.Mutex
	names []string
	// confirmed are the objects with the annotation.
	confirmed map[string]bool
	took      time.Duration
	err       error
	lists     int
	underWay  int
	most      int
}

func (c *cluster) List(ctx context.Context, into client.ObjectList, _ ...client.ListOption) error {
	c.mu.Lock()
	c.lists++
	c.underWay++
	c.most = max(c.most, c.underWay)
	c.mu.Unlock()
	defer func() { c.mu.Lock(); defer c.mu.Unlock(); c.underWay-- }()
	select {
	case <-time.After(c.took):
	case <-ctx.Done():
		return ctx.Err()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	list := into.(*metav1.PartialObjectMetadataList)
	list.Items = nil
	for _, name := range c.names {
		o := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name}}
		if c.confirmed[name] {
			o.Annotations = map[string]string{Confirmation: "true"}
		}
		list.Items = append(list.Items, o)
	}
	return c.err
}

// review is what an API server asks about an object of a collection.
func (c *cluster) review(name string) admissionv1.AdmissionRequest {
	metadata := `{"namespace":"n","name":"` + name + `"}`
	if c.confirmed[name] {
		metadata = `{"namespace":"n","name":"` + name + `","annotations":{"` + Confirmation + `":"true"}}`
	}
	return deletion(dnsRecord, "", metadata)
}

// newCluster has some confirmed objects.
func newCluster(n int) *cluster {
	c := &cluster{confirmed: map[string]bool{}, took: 100 * time.Millisecond}
	for i := range n {
		name := fmt.Sprint("o", i)
		c.names = append(c.names, name)
		c.confirmed[name] = true
	}
	return c
}

// TestListsAreShared: the reviews of a collection of a thousand objects, a hundred a second, need few lists (DP-21).
func TestListsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(1000)
		decide := Decide(c, clock.RealClock{})
		for _, name := range slices.Clone(c.names) {
			response := admissiontest.Respond(decide, c.review(name))
			must.True(t, response.Allowed, "DP-15: %+v", response.Result)
			c.names = c.names[1:]
			time.Sleep(10 * time.Millisecond)
		}
		expect.True(t, c.lists <= 6, "DP-12/DP-21: %d lists for 1000 objects in 10 s", c.lists)
	})
}

// TestParallelReviews: reviews at once wait for one list; of many collections, few are listed at a time; and a review that ends takes no
// other one with it.
func TestParallelReviews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(50)
		decide := Decide(c, clock.RealClock{})
		first, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		var asking sync.WaitGroup
		asking.Go(func() {
			r := c.review("o0")
			expect.ErrorContains(t, expect.ErrorOf(decide(first, &r)), "deadline", "DP-13")
		})
		synctest.Wait()
		for _, name := range c.names {
			asking.Go(func() {
				response := admissiontest.Respond(decide, c.review(name))
				expect.True(t, response.Allowed, "DP-12: %s: %+v", name, response.Result)
			})
		}
		asking.Wait()
		expect.Equal(t, c.lists, 2, "DP-12: lists, of which one ended early")
		for i := range 20 {
			asking.Go(func() {
				r := c.review("o0")
				r.Namespace = fmt.Sprint("n", i)
				admissiontest.Respond(decide, r)
			})
		}
		asking.Wait()
		expect.True(t, c.most <= listsAtOnce, "DP-12: %d lists at once", c.most)
	})
}

// TestReviewsThatEndWaiting: a review that ends before the list that it waits for, or before its own turn, is refused (DP-13).
func TestReviewsThatEndWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(1)
		c.took = time.Minute
		decide := Decide(c, clock.RealClock{})
		var asking sync.WaitGroup
		for i := range listsAtOnce {
			asking.Go(func() {
				r := c.review("o0")
				r.Namespace = fmt.Sprint("n", i)
				response := admissiontest.Respond(decide, r)
				expect.True(t, response.Allowed, "DP-12: %+v", response.Result)
			})
		}
		synctest.Wait()
		for _, namespace := range []string{"n0", "another"} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			r := c.review("o0")
			r.Namespace = namespace
			expect.ErrorContains(t, expect.ErrorOf(decide(ctx, &r)), "deadline", "DP-13: %s", namespace)
			cancel()
		}
		asking.Wait()
	})
}

// TestListsAnswerForAMoment: a list answers reviews for less than a moment; then it is made anew (DP-21).
func TestListsAnswerForAMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(1)
		c.took = 0
		decide := Decide(c, clock.RealClock{})
		for _, step := range []struct{ pause, lists time.Duration }{{0, 1}, {moment - 1, 1}, {1, 2}, {moment, 3}} {
			time.Sleep(step.pause)
			admissiontest.Respond(decide, c.review("o0"))
			expect.Equal(t, c.lists, int(step.lists), "DP-21: lists, want %d", step.lists)
		}
	})
}

// TestNamesAreFew: a refusal names as many objects as a person reads, and how many there are beside them (WB-16).
func TestNamesAreFew(t *testing.T) {
	for n, more := range map[int]string{shown: "", shown + 1: " and 1 more"} {
		c := newCluster(n)
		c.took, c.confirmed = 0, map[string]bool{}
		r := deletion(dnsRecord, "", "-")
		err := newCollections(c, clock.RealClock{}).judge(t.Context(), &r)
		if err == nil || strings.Count(err.Error(), "n/o") != shown || strings.Contains(err.Error(), " more") != (more != "") || !strings.Contains(err.Error(), more) {
			t.Errorf("WB-16: of %d objects: %v", n, err)
		}
	}
}

// TestRefusalsAreNotKept: an object that is confirmed after a refusal refuses nothing any more, and neither does a list that failed.
func TestRefusalsAreNotKept(t *testing.T) {
	c := newCluster(2)
	c.took = 0
	c.confirmed["o1"] = false
	decide := Decide(c, clock.RealClock{})
	response := admissiontest.Respond(decide, c.review("o0"))
	expect.True(t, !response.Allowed && strings.Contains(response.Result.Message, "n/o1"), "DP-12: %+v", response.Result)
	c.confirmed["o1"], c.err = true, errors.New("away")
	if response := admissiontest.Respond(decide, c.review("o0")); response.Allowed || response.Result.Code != 500 {
		t.Errorf("DP-13: %+v", response.Result)
	}
	c.err = nil
	if response := admissiontest.Respond(decide, c.review("o0")); !response.Allowed {
		t.Errorf("DP-15: %+v", response.Result)
	}
}

// TestRemembersFew: what is remembered of lists goes.
func TestRemembersFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(1)
		c.took = 0
		all := newCollections(c, clock.RealClock{})
		for i := range 3 * keptReads {
			r := c.review("o0")
			r.UserInfo.Username = fmt.Sprint(i)
			must.Succeed(t, all.judge(t.Context(), &r))
			time.Sleep(moment / keptReads * 2)
		}
		expect.True(t, len(all.reads) <= keptReads, "DP-12: %d lists are remembered", len(all.reads))
	})
}

// TestPropertyOfCollections: whatever an API server deletes as a collection, and whatever of it is confirmed, either all of it goes or, with an
// unconfirmed object in the namespace, nothing; and nothing unconfirmed goes even if it comes or changes in between.
func TestPropertyOfCollections(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := newCluster(rapid.IntRange(1, 6).Draw(rt, "objects"))
		c.took = 0
		for _, name := range c.names {
			c.confirmed[name] = rapid.IntRange(0, 4).Draw(rt, "confirmed") > 0
		}
		selected := rapid.Permutation(c.names).Draw(rt, "order")[:rapid.IntRange(1, len(c.names)).Draw(rt, "selected")]
		all := !slices.ContainsFunc(c.names, func(name string) bool { return !c.confirmed[name] })
		changes := rapid.IntRange(0, len(selected)).Draw(rt, "change")
		decide := Decide(c, clock.RealClock{})
		gone := 0
		for i, name := range selected {
			if i == changes && i > 0 {
				c.confirmed[name] = false
			}
			if !admissiontest.Respond(decide, c.review(name)).Allowed {
				break
			}
			must.True(rt, c.confirmed[name], "DP-14: %s goes, which is not confirmed", name)
			gone++
			c.names = slices.DeleteFunc(slices.Clone(c.names), func(n string) bool { return n == name })
		}
		switch {
		case !all && gone > 0:
			rt.Errorf("DP-12: %d objects are gone", gone)
		case all && changes == 0 && gone < len(selected):
			rt.Errorf("DP-15: %d of %d are gone", gone, len(selected))
		}
	})
}
