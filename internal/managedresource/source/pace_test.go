package source

import (
	"context"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

type changes = []meta.ConditionChange

func healthIs(status resourcesv1alpha1.ConditionStatus, reason string) meta.ConditionChange {
	health := resourcesv1alpha1.ResourcesHealthy
	return meta.ConditionChange{Type: health, Status: status, Reason: reason, Message: reason}
}

func progressIs(status resourcesv1alpha1.ConditionStatus) meta.ConditionChange {
	progress := resourcesv1alpha1.ResourcesProgressing
	return meta.ConditionChange{Type: progress, Status: status, Reason: "R", Message: "M"}
}

const (
	yes, no      = resourcesv1alpha1.ConditionTrue, resourcesv1alpha1.ConditionFalse
	unknown      = resourcesv1alpha1.ConditionUnknown
	sooner, soon = 100 * time.Millisecond, 300 * time.Millisecond
	rest         = judgementPause - soon
)

// MRB-39: which judgements a write has, each at its time, after what was written before.
func TestPace(t *testing.T) {
	type write struct {
		at         time.Duration
		judgements changes
		conditions changes
		// written counts the judgements that the status has afterwards, later is after what time the others may be.
		written int
		later   time.Duration
	}
	for name, writes := range map[string][]write{
		"MRB-39/the first change is written at once": {{0, changes{healthIs(yes, "R")}, nil, 1, 0}},
		"MRB-39/so is one after a second": {
			{0, changes{healthIs(yes, "R")}, nil, 1, 0},
			{time.Second, changes{healthIs(no, "R")}, nil, 1, 0},
		},
		"MRB-39/one before that waits for the rest of it": {
			{0, changes{healthIs(yes, "R")}, nil, 1, 0},
			{soon, changes{healthIs(no, "R")}, nil, 0, rest},
		},
		"MRB-39/another reason waits, too": {
			{0, changes{healthIs(no, "R")}, nil, 1, 0},
			{soon, changes{healthIs(no, "S")}, nil, 0, rest},
		},
		"MRB-39/what is the same waits for nothing": {
			{0, changes{healthIs(yes, "R")}, nil, 1, 0},
			{soon, changes{healthIs(yes, "R")}, nil, 1, 0},
		},
		"MRB-39/the other condition has its own second": {
			{0, changes{healthIs(yes, "R")}, nil, 1, 0},
			{soon, changes{progressIs(yes)}, nil, 1, 0},
		},
		"MRB-39/one that is due takes the other one along": {
			{0, changes{healthIs(yes, "R")}, nil, 1, 0},
			{soon, changes{progressIs(yes)}, nil, 1, 0},
			{time.Second, changes{healthIs(no, "R"), progressIs(no)}, nil, 2, 0},
		},
		"MRB-39/new content has its first judgement at once": {
			{0, changes{healthIs(yes, "R")}, nil, 1, 0},
			{sooner, nil, changes{healthIs(unknown, "Pending")}, 0, 0},
			{soon, changes{healthIs(no, "R")}, nil, 1, 0},
		},
		"MRB-39/what the end of a run says besides is written at once": {
			{0, changes{healthIs(yes, "R")}, nil, 1, 0},
			{soon, changes{healthIs(no, "R")}, changes{meta.Applied(yes, "R", "M")}, 0, rest},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, live, _, clock := newStatuses(t)
			begin := clock.Now()
			for i, w := range writes {
				clock.SetTime(begin.Add(w.at))
				change := &Change{Judgements: w.judgements, Conditions: w.conditions}
				made := func(*resourcesv1alpha1.ManagedResource) *Change { return change }
				must.Succeed(t, expect.ErrorOf(s.Update(t.Context(), key, "u", made)))
				mr := &resourcesv1alpha1.ManagedResource{}
				must.Succeed(t, live.Get(t.Context(), key, mr))
				written := 0
				for _, judgement := range w.judgements {
					c := meta.Conditions(mr.Status.Conditions).Get(judgement.Type)
					if c != nil && c.Status == judgement.Status && c.Reason == judgement.Reason {
						written++
					}
				}
				if written != w.written || change.Later != w.later {
					t.Errorf("write %d: %d judgements written, the rest in %s; want %d, %s",
						i, written, change.Later, w.written, w.later)
				}
				for _, c := range w.conditions {
					got := meta.Conditions(mr.Status.Conditions).Get(c.Type)
					expect.True(t, got != nil && got.Status == c.Status, "write %d: %s is %v", i, c.Type, got)
				}
			}
		})
	}
}

// MRB-39: the memory of a ManagedResource ends with it.
func TestPaceIsForgotten(t *testing.T) {
	s, _, _, _ := newStatuses(t)
	_, err := s.Update(t.Context(), key, "u", func(*resourcesv1alpha1.ManagedResource) *Change {
		return &Change{Judgements: changes{healthIs(yes, "R")}}
	})
	must.True(t, err == nil && len(s.known) == 1 && len(s.known[key].pace) == 1, "%d remembered, %v", len(s.known), err)
	s.reader = none{}
	if _, err := s.Get(t.Context(), key); err == nil || len(s.known) != 0 {
		t.Errorf("%d remembered of one that is gone", len(s.known))
	}
}

var notFound = apierrors.NewNotFound(schema.GroupResource{Resource: "managedresources"}, "mr")

// none is a cache that has nothing.
type none struct{ client.Reader }

func (none) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return notFound
}
