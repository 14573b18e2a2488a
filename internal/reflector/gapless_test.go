package reflector

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

// TestGapless: a watch is resumed only if the former one lasted until its timeout (COM-20).
func TestGapless(t *testing.T) {
	for name, c := range map[string]struct {
		lasts   time.Duration
		refused bool
		between func(cache.ListerWatcherWithContext)
		expired bool
	}{
		"COM-20/a watch that lasted until its timeout is resumed": {lasts: time.Minute},
		"COM-20/a watch that broke is not resumed":                {lasts: time.Second, expired: true},
		"COM-20/nor is a watch that could not be opened":          {refused: true, expired: true},
		"COM-20/after a list a watch begins": {lasts: time.Second, between: func(lw cache.ListerWatcherWithContext) {
			_, _ = lw.ListWithContext(t.Context(), metav1.ListOptions{})
		}},
		"COM-20/a watch that begins with all objects is a list": {lasts: time.Second, between: func(lw cache.ListerWatcherWithContext) {
			stream, _ := lw.WatchWithContext(t.Context(), metav1.ListOptions{SendInitialEvents: ptr.To(true), TimeoutSeconds: ptr.To[int64](60)})
			time.Sleep(time.Minute)
			stream.Stop()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				refused := c.refused
				lw := cache.ToListerWatcherWithContext(Gapless(&cache.ListWatch{
					ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) { return &corev1.PodList{}, nil },
					WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
						if refused {
							return nil, errors.New("connection refused")
						}
						return watch.NewFake(), nil
					},
				}))
				options := metav1.ListOptions{ResourceVersion: "5", TimeoutSeconds: ptr.To[int64](60)}
				if first, err := lw.WatchWithContext(t.Context(), options); err == nil {
					time.Sleep(c.lasts)
					first.Stop()
				}
				refused = false
				if c.between != nil {
					c.between(lw)
				}
				if _, err := lw.WatchWithContext(t.Context(), options); apierrors.IsResourceExpired(err) != c.expired {
					t.Errorf("got %v", err)
				}
			})
		})
	}
}
