package cluster

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// TestOrdered: a list that is older than an earlier list or event of its kind proves that the store was restored (MRB-47).
func TestOrdered(t *testing.T) {
	type step = func(toolscache.ListerWatcherWithContext, *watch.FakeWatcher)
	list := func(version string) step {
		return func(lw toolscache.ListerWatcherWithContext, _ *watch.FakeWatcher) {
			_, _ = lw.ListWithContext(t.Context(), metav1.ListOptions{ResourceVersion: version})
		}
	}
	event := func(send func(*watch.FakeWatcher, runtime.Object), version string, annotations map[string]string) step {
		return func(lw toolscache.ListerWatcherWithContext, stream *watch.FakeWatcher) {
			opened, err := lw.WatchWithContext(t.Context(), metav1.ListOptions{})
			must.Succeed(t, err)
			go send(stream, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version, Annotations: annotations}})
			<-opened.ResultChan()
		}
	}
	modify := func(stream *watch.FakeWatcher, object runtime.Object) { stream.Modify(object) }
	bookmark := func(stream *watch.FakeWatcher, object runtime.Object) { stream.Action(watch.Bookmark, object) }
	initial := map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	for name, c := range map[string]struct {
		steps []step
		want  string
	}{
		"MRB-47/a later list":                         {steps: []step{list("5"), list("6")}},
		"MRB-47/the same list":                        {steps: []step{list("5"), list("5")}},
		"MRB-47/an older list":                        {steps: []step{list("10"), list("9")}, want: "Pods were listed in version 9, and read in version 10 before"},
		"MRB-47/a list that is older than an event":   {steps: []step{list("5"), event(modify, "8", nil), list("7")}, want: "Pods were listed in version 7, and read in version 8 before"},
		"MRB-47/an object may be older than its list": {steps: []step{list("5"), event(modify, "3", nil)}},
		"MRB-47/a stream of all objects is a list":    {steps: []step{list("5"), event(bookmark, "4", initial)}, want: "Pods were listed in version 4, and read in version 5 before"},
		"MRB-47/versions that cannot be compared":     {steps: []step{list("b"), list("a")}},
	} {
		t.Run(name, func(t *testing.T) {
			proof, stream := "", watch.NewFake()
			lw := toolscache.ToListerWatcherWithContext(ordered(&toolscache.ListWatch{
				ListWithContextFunc: func(_ context.Context, options metav1.ListOptions) (runtime.Object, error) {
					return &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: options.ResourceVersion}}, nil
				},
				WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return stream, nil },
			}, "Pods", func(p string) { proof = p }))
			for _, do := range c.steps {
				do(lw, stream)
			}
			expect.Equal(t, proof, c.want)
		})
	}
}
