package reflector

import (
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/espalier-project/espalier/test/expect"
)

// TestFiltered: events go through the function, and one that nobody takes any more does not keep what hands it over. A bubble ends with an
// error while a goroutine of it is left.
func TestFiltered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := watch.NewFake()
		w := filter(inner, func(e watch.Event) (watch.Event, bool) { return e, e.Type != watch.Bookmark })
		go func() {
			inner.Action(watch.Bookmark, nil)
			inner.Action(watch.Added, nil)
			inner.Action(watch.Modified, nil)
		}()
		expect.Equal(t, (<-w.ResultChan()).Type, watch.Added)
		synctest.Wait() // The last one is at hand.
		w.Stop()
		w.Stop()
		synctest.Wait()
		_, open := <-w.ResultChan()
		expect.False(t, open, "an event comes after the end")
	})
}
