package reflector

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// TestRequests: each failure is reported with its verb, and a watch is resumed only if the last one lasted until its timeout (MRB-47).
func TestRequests(t *testing.T) {
	const timeout = time.Hour
	for name, tc := range map[string]struct {
		list error
		open func(context.Context, *watch.FakeWatcher) (watch.Interface, error)
		end  func(*watch.FakeWatcher)
		want []string
	}{
		"a list fails": {list: errors.New("no list"), want: []string{"list: no list"}},
		"a watch is not opened in time": {
			open: func(ctx context.Context, _ *watch.FakeWatcher) (watch.Interface, error) {
				<-ctx.Done()
				return nil, context.Cause(ctx)
			},
			want: []string{"watch: context deadline exceeded"},
		},
		"a watch is opened too late": {
			open: func(ctx context.Context, w *watch.FakeWatcher) (watch.Interface, error) {
				<-ctx.Done()
				return w, nil
			},
			want: []string{"watch: context deadline exceeded"},
		},
		"MRB-47/a watch ends early":              {end: (*watch.FakeWatcher).Stop, want: []string{"resumed", "ended", "listed anew"}},
		"MRB-47/a watch lasts until its timeout": {end: func(w *watch.FakeWatcher) { time.Sleep(timeout); w.Stop() }, want: []string{"resumed", "ended", "resumed", "ended"}},
		"a watch fails as it is to end": {
			end: func(w *watch.FakeWatcher) {
				time.Sleep(timeout)
				w.Error(&apierrors.NewResourceExpired("too old").ErrStatus)
				w.Stop()
			},
			want: []string{"resumed", "watch: too old", "ended", "resumed", "ended"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var got []string
				lasting := metav1.ListOptions{TimeoutSeconds: ptr.To(int64(timeout / time.Second))}
				inner := watch.NewFake()
				requests := Requests{
					List: func(context.Context) (string, error) { return "7", tc.list },
					Watch: func(ctx context.Context, _ *metav1.ListOptions) (watch.Interface, error) {
						if tc.open != nil {
							return tc.open(ctx, inner)
						}
						return inner, nil
					},
					Limit:  time.Minute,
					Failed: func(verb string, err error) { got = append(got, fmt.Sprintf("%s: %v", verb, err)) },
					Resumed: func() func() {
						got = append(got, "resumed")
						return func() { got = append(got, "ended") }
					},
				}
				source := cache.ToListerWatcherWithContext(requests.ListWatch())
				expect.ErrorIs(t, expect.ErrorOf(source.ListWithContext(t.Context(), metav1.ListOptions{})), tc.list)
				if tc.list == nil {
					opened, err := source.WatchWithContext(t.Context(), lasting)
					must.Equal(t, err == nil, tc.end != nil, "%v", err)
					if err == nil {
						go tc.end(inner)
						for range opened.ResultChan() {
						}
						opened.Stop()
						inner = watch.NewFake()
						again, err := source.WatchWithContext(t.Context(), lasting)
						if apierrors.IsResourceExpired(err) {
							got = append(got, "listed anew")
						} else if err != nil {
							t.Error(err)
						} else {
							inner.Stop()
							for range again.ResultChan() {
							}
							again.Stop()
						}
					}
				}
				expect.DeepEqual(t, got, tc.want, "reports")
			})
		})
	}
}
