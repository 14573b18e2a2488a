package lookup

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// cluster answers with an error, or a ConfigMap that says which one it was.
type cluster struct {
	name  string
	err   error
	asked int
}

func (c *cluster) Get(_ context.Context, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	c.asked++
	if c.err == nil {
		object.(*corev1.ConfigMap).Data = map[string]string{"from": c.name}
	}
	return c.err
}

// TestGet: the API server is asked about what the cache does not have, and about nothing else (WB-9).
func TestGet(t *testing.T) {
	missing, broken := apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, "x"), errors.New("broken")
	for name, c := range map[string]struct {
		cached, live error
		asked        int
		from         string
		want         error
	}{
		"cached":                      {nil, broken, 0, "cached", nil},
		"PTM-T9/WB-9, not cached yet": {missing, nil, 1, "live", nil},
		"WB-9/nowhere":                {missing, missing, 1, "", missing},
		"the API server is away":      {missing, broken, 1, "", broken},
		"the cache does not know":     {broken, nil, 0, "", broken},
	} {
		cached, live, object := &cluster{name: "cached", err: c.cached}, &cluster{name: "live", err: c.live}, &corev1.ConfigMap{}
		err := New(cached, live, clocktesting.NewFakePassiveClock(time.Unix(0, 0))).Get(t.Context(), client.ObjectKey{Namespace: "n", Name: "x"}, object)
		if err != c.want || object.Data["from"] != c.from || live.asked != c.asked {
			t.Errorf("%s: got %v from %q, asked %d times", name, err, object.Data["from"], live.asked)
		}
	}
}

// TestBudget: a namespace that asks for what is not there costs the API server no more than its budget, and takes nothing from others.
func TestBudget(t *testing.T) {
	missing := apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, "x")
	clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	live := &cluster{err: missing}
	reader := New(&cluster{err: missing}, live, clock)
	ask := func(namespace string, times int) {
		for range times {
			if err := reader.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "x"}, &corev1.ConfigMap{}); err != missing {
				t.Fatal(err)
			}
		}
	}
	ask("a", 1000)
	if live.asked != budget.Burst {
		t.Errorf("asked %d times at once", live.asked)
	}
	ask("b", 1)
	if live.asked != budget.Burst+1 {
		t.Error("one namespace took the budget of another")
	}
	clock.SetTime(clock.Now().Add(time.Second))
	ask("a", 1000)
	if live.asked != budget.Burst+1+budget.PerSecond {
		t.Errorf("asked %d times in a second", live.asked-budget.Burst-1)
	}
}
