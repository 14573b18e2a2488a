package controller

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	dto "github.com/prometheus/client_model/go"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
)

// stoppable has an emergency stop for the namespace n while the returned value is true.
func stoppable(f *fixture) *atomic.Bool {
	var stopped atomic.Bool
	f.Stopped = func(namespace string) bool { return namespace == "n" && stopped.Load() }
	return &stopped
}

func (f *fixture) writes() int {
	return f.target.count(http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete)
}

// TestEmergencyStop: whatever there is to do, nothing is written until the stop ends, and then all of it is done.
func TestEmergencyStop(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		act func(f *fixture)
		// message is the end of the condition's message, and after the objects that are there in the end; gone is true if the ManagedResource is not.
		message, after string
		gone           bool
	}{
		"MRX-26/new content":       {act: func(f *fixture) { f.secret("m", "2", "a=2", "c=1") }, after: "[a c]"},
		"MRX-26/no content":        {act: func(f *fixture) { f.secret("m", "2") }, after: "[]"},
		"MRX-26/deletion":          {act: func(f *fixture) { f.must(f.source.Delete(f.ctx, f.get("m"))) }, after: "[]", gone: true},
		"MRX-26/another class":     {act: func(f *fixture) { f.edit("m", setClass) }, after: "[]", gone: true},
		"MRX-26/a full run":        {act: func(f *fixture) { f.annotated(map[string]string{resourcesv1alpha1.AnnotationOperation: "reconcile"}) }, after: "[a b]"},
		"MRX-26/a restart":         {act: func(f *fixture) { f.restart("m"); stoppable(f).Store(true) }, after: "[a b]"},
		"MRX-27/a changed object":  {act: func(f *fixture) { f.edited("b", setValue("x")) }, message: " Changed by others and not repaired: ConfigMap n/b.", after: "[a b]"},
		"MRX-27/drift and content": {act: func(f *fixture) { f.edited("b", setValue("x")); f.secret("m", "2", "a=2") }, message: " Changed by others and not repaired: ConfigMap n/b.", after: "[a]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.managed("m", "a=1", "b=1")
			f.watch()
			f.rest("m")
			f.awaitCovered("m")
			f.rest("m")
			stoppable(f).Store(true)
			before := f.writes()
			f.complete("m")
			if got := f.condition("m"); !strings.HasPrefix(got, "True/") {
				t.Errorf("MRX-27: without anything to do the condition is %s", got)
			}
			c.act(f)
			for range 3 {
				result, err := f.run("m")
				if err != nil || result.RequeueAfter < stopRetry/2 {
					t.Errorf("MRX-26: a run ends with %v, %v", result, err)
				}
			}
			if got := f.writes() - before; got != 0 {
				t.Errorf("T4-10/MRX-26: %d requests changed the target", got)
			}
			if got, want := f.condition("m"), "False/EmergencyStop: An emergency stop is in force: nothing is applied or deleted."+c.message; got != want {
				t.Errorf("MRX-27: the condition is %s, want %s", got, want)
			}
			metric := &dto.Metric{}
			f.must(f.Metrics.failures.WithLabelValues("EmergencyStop").Write(metric))
			if got := metric.GetCounter().GetValue(); got != 1 {
				t.Errorf("MRX-27: the metric counts %v", got)
			}
			f.Stopped = nil
			poll(t, "MRX-26: after the stop there are "+c.after, func() bool {
				f.complete("m")
				return fmt.Sprint(f.present()) == c.after && (c.gone || strings.HasPrefix(f.condition("m"), "True/"))
			})
		})
	}
}

func setClass(mr *resourcesv1alpha1.ManagedResource) { mr.Spec.Class = new("other") }

// TestEmergencyStopEndsRuns: a run that is under way writes no more than the requests that were sent.
func TestEmergencyStopEndsRuns(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		method string
		before func(f *fixture)
	}{
		"MRX-26/creation": {http.MethodPost, func(*fixture) {}},
		"MRX-26/deletion": {http.MethodDelete, func(f *fixture) { f.complete("m"); f.must(f.source.Delete(f.ctx, f.get("m"))) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const objects = 200
			f := newFixture(t)
			f.managed("m", entries("a", objects)...)
			c.before(f)
			stopped := stoppable(f)
			before := f.target.count(c.method)
			f.target.hook(func(method, _ string) int {
				if method == c.method {
					stopped.Store(true)
				}
				return 0
			})
			f.complete("m")
			if got := f.target.count(c.method) - before; got < 1 || got > allRuns {
				t.Errorf("%d requests were sent", got)
			}
			if got := f.condition("m"); !strings.HasPrefix(got, "False/EmergencyStop") {
				t.Errorf("the condition is %s", got)
			}
		})
	}
}

// TestHealthDuringEmergencyStop: health does not wait for a run that does not come.
func TestHealthDuringEmergencyStop(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.managed("m", "a=1")
	f.complete("m")
	f.restart("m")
	if !f.FirstRunPending(f.get("m")) {
		t.Error("health waits for no run")
	}
	stoppable(f).Store(true)
	if f.FirstRunPending(f.get("m")) {
		t.Error("MRX-27: health waits for a run during the stop")
	}
}
