package reflector

import (
	"sync"

	"k8s.io/apimachinery/pkg/watch"
)

// filtered is a stream whose events go through a function that may leave some out. client-go's own filter blocks for
// ever if it is stopped while an event waits for a reader.
type filtered struct {
	watch.Interface
	result chan watch.Event
	stop   sync.Once
	done   chan struct{}
}

func filter(inner watch.Interface, through func(watch.Event) (watch.Event, bool)) watch.Interface {
	f := &filtered{Interface: inner, result: make(chan watch.Event), done: make(chan struct{})}
	go func() {
		defer close(f.result)
		for event := range inner.ResultChan() {
			event, keep := through(event)
			if !keep {
				continue
			}
			select {
			case f.result <- event:
			case <-f.done:
				return
			}
		}
	}()
	return f
}

// ResultChan implements watch.Interface.
func (f *filtered) ResultChan() <-chan watch.Event { return f.result }

// Stop implements watch.Interface.
func (f *filtered) Stop() {
	f.stop.Do(func() { close(f.done) })
	f.Interface.Stop()
}
