package source

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/clock"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// slowEvents takes a while to create an Event.
type slowEvents struct {
	corev1client.EventsGetter
	corev1client.EventInterface
	takes   time.Duration
	tried   atomic.Int32
	created chan string // their messages
}

func (s *slowEvents) Events(string) corev1client.EventInterface { return s }

func (s *slowEvents) Create(ctx context.Context, event *corev1.Event, _ metav1.CreateOptions) (*corev1.Event, error) {
	s.tried.Add(1)
	select {
	case <-time.After(s.takes):
		s.created <- event.Message
		return event, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func slowlyCreated(takes time.Duration) (*slowEvents, *Events) {
	client := &slowEvents{takes: takes, created: make(chan string, 2*mostUnsent)}
	return client, NewEvents(client, clock.RealClock{})
}

var aManagedResource = &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: "1"}}

// Requests that hang leave room for others: neither a run nor the write of a status waits for Events, which may have an etcd of their own.
func TestNobodyWaitsForEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		statuses, _, _, _ := newStatuses(t)
		client, events := slowlyCreated(time.Hour)
		statuses.events = events
		began := time.Now()
		failed, err := statuses.Update(t.Context(), key, "u", func(*resourcesv1alpha1.ManagedResource) *Change {
			return &Change{Conditions: []meta.ConditionChange{meta.Applied(resourcesv1alpha1.ConditionFalse, "Reason", "message")}}
		})
		must.Succeed(t, err)
		events.Warn(t.Context(), failed, "Reason", "message")
		expect.Equal(t, time.Since(began), 0, "it took")
		events.Flush(t.Context())
		expect.True(t, client.tried.Load() == 2 && time.Since(began) == 2*sendWithin,
			"%d were tried within %s", client.tried.Load(), time.Since(began))
	})
}

// The queue is bounded, and Events that have room are created in their order.
func TestEventsThatWaitAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const more = 50
		client, events := slowlyCreated(time.Second)
		events.Warn(t.Context(), aManagedResource, "Reason", "the first")
		synctest.Wait() // It is under way.
		for i := range mostUnsent + more {
			events.Warn(t.Context(), aManagedResource, "Reason", fmt.Sprint(i))
		}
		events.Flush(t.Context())
		events.Warn(t.Context(), aManagedResource, "Reason", "the last")
		events.Flush(t.Context())
		close(client.created)
		expect.Equal(t, len(client.created), mostUnsent+2, "were created")
		n, want := 0, ""
		for message := range client.created {
			switch want = fmt.Sprint(n - 1); n {
			case 0:
				want = "the first"
			case mostUnsent + 1:
				want = "the last"
			}
			if n++; message != want {
				t.Fatalf("%q was created, want %q", message, want)
			}
		}
	})
}

// Queued Events are created before the process ends, which waits for hanging requests for seconds at most.
func TestEndOfEvents(t *testing.T) {
	for name, tc := range map[string]struct {
		takes   time.Duration
		created int
	}{
		"they are created":      {takes: time.Second, created: 3},
		"they hang":             {takes: time.Hour},
		"there is not the time": {takes: 2 * time.Second, created: 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, events := slowlyCreated(tc.takes)
				for i := range 3 {
					events.Warn(t.Context(), aManagedResource, "Reason", fmt.Sprint(i))
				}
				began := time.Now()
				events.End()
				expect.True(t, time.Since(began) <= sendWithin, "it took %s", time.Since(began))
				events.Warn(t.Context(), aManagedResource, "Reason", "late")
				tried := client.tried.Load()
				if time.Sleep(time.Minute); len(client.created) != tc.created || client.tried.Load() != tried {
					t.Errorf("%d were created, want %d; %d were begun after the end", len(client.created), tc.created, client.tried.Load()-tried)
				}
			})
		})
	}
}
