package cluster

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/espalier-project/espalier/internal/reflector"
)

// newInformer is the type of toolscache.NewSharedIndexInformer.
type newInformer = func(toolscache.ListerWatcher, runtime.Object, time.Duration,
	toolscache.Indexers) toolscache.SharedIndexInformer

// informers returns toolscache.NewSharedIndexInformer with a list after each gap in a watch. restored may be nil.
func informers(restored func(proof string)) newInformer {
	return func(lw toolscache.ListerWatcher, object runtime.Object, resync time.Duration,
		indexers toolscache.Indexers) toolscache.SharedIndexInformer {
		gapless := reflector.Gapless(lw)
		if restored != nil {
			gapless = ordered(gapless, fmt.Sprintf("%T", object), restored)
		}
		return toolscache.NewSharedIndexInformer(gapless, object, resync, indexers)
	}
}

// ordered reports a list that is older than an earlier list or event of the same kind, because the store was
// restored.
func ordered(lw *toolscache.ListWatch, kind string, restored func(proof string)) *toolscache.ListWatch {
	var mu sync.Mutex
	latest := ""
	reached := func(version string, complete bool) {
		mu.Lock()
		defer mu.Unlock()
		order, err := resourceversion.CompareResourceVersion(version, cmp.Or(latest, version))
		if complete && err == nil && order < 0 {
			restored(fmt.Sprintf("%s were listed in version %s, and read in version %s before", kind, version, latest))
		}
		if complete || err == nil && order > 0 {
			latest = version
		}
	}
	return &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list, err := lw.ListWithContextFunc(ctx, options)
			if accessor, isList := list.(metav1.ListInterface); err == nil && isList {
				reached(accessor.GetResourceVersion(), true)
			}
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			opened, err := lw.WatchFuncWithContext(ctx, options)
			if err != nil {
				return nil, err
			}
			return watch.Filter(opened, func(event watch.Event) (watch.Event, bool) {
				if accessor, isObject := event.Object.(metav1.Object); isObject && event.Type != watch.Error {
					reached(accessor.GetResourceVersion(), accessor.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true")
				}
				return event, true
			}), nil
		},
	}
}
