package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/test/env/harness"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

const many = 60

// TestKillAtAnyWrite kills the process after ever more writes, starts it again, and checks the end state: everything that
// is wanted is there, nothing that is not, and what stayed was never deleted (MRB-3).
func TestKillAtAnyWrite(t *testing.T) {
	ns := namespace(t)
	nothingWaits := map[string]any{"controllers": map[string]any{"managedResource": map[string]any{"massDeletion": map[string]any{"wait": "0s"}}}}
	foreign := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "foreign"}}
	must.Succeed(t, landscape.ShootClient.Create(t.Context(), foreign))
	var kept map[string]corev1.ConfigMap
	for round := range 8 {
		value := fmt.Sprint(round)
		data := configMaps(ns, many/2+round%2*many/2, value)
		if round == 0 {
			create(t, ns, "mr", data)
		} else {
			secret := harness.Secret(ns, "mr", data)
			must.Succeed(t, landscape.SeedClient.Update(t.Context(), secret))
		}
		p := start(t, nothingWaits)
		after := round * 9
		// The number of objects with the new value says how far the process has come; any moment is as good as another.
		eventually(t, func() error {
			done := 0
			for _, cm := range listed(t, ns) {
				if cm.Data["a"] == value {
					done++
				}
			}
			return expect.Holds(done >= min(after, len(data)), "%d objects are written", done)
		})
		p.Kill()

		p = start(t, nothingWaits)
		mr := settled(t, ns, "mr")
		eventually(t, func() error {
			objects := listed(t, ns)
			if len(objects) != many/2+round%2*many/2 || len(mr.Status.Resources) != len(objects) {
				return fmt.Errorf("%d objects, %d in the inventory", len(objects), len(mr.Status.Resources))
			}
			for name, cm := range objects {
				if cm.Data["a"] != value {
					return fmt.Errorf("%s has value %s, want %s", name, cm.Data["a"], value)
				}
			}
			must.Succeed(t, landscape.SeedClient.Get(t.Context(), client.ObjectKeyFromObject(mr), mr))
			return harness.Settled(mr)
		})
		objects := listed(t, ns)
		for name, before := range kept {
			if now, found := objects[name]; found && now.UID != before.UID && strings.Compare(name, "cm-3") < 0 {
				t.Errorf("round %d: %s was deleted though it was always wanted", round, name)
			}
		}
		kept = objects
		p.Kill()
	}
	p := start(t, nothingWaits)
	remove(t, ns, "mr")
	expect.Empty(t, listed(t, ns), "leaked")
	must.Succeed(t, landscape.ShootClient.Get(t.Context(), client.ObjectKeyFromObject(foreign), foreign))
	p.Kill()
}

// TestAPIServerRestart stops the target's API server and changes things behind the process's back.
func TestAPIServerRestart(t *testing.T) {
	ns := namespace(t)
	p := start(t, map[string]any{"controllers": map[string]any{"managedResource": map[string]any{"syncPeriod": "1h"}}})
	create(t, ns, "mr", configMaps(ns, 5, "v"))
	settled(t, ns, "mr")
	landscape.Shoot.StopAPIServer()
	must.Succeed(t, landscape.SeedClient.Update(t.Context(), harness.Secret(ns, "mr", configMaps(ns, 5, "w"))))
	eventually(t, func() error {
		mr := &resourcesv1alpha1.ManagedResource{}
		must.Succeed(t, landscape.SeedClient.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "mr"}, mr))
		if status, _ := harness.Condition(mr, resourcesv1alpha1.ResourcesApplied); status != "False/ApplyFailed" {
			return fmt.Errorf("ResourcesApplied is %s", status)
		}
		return nil
	})
	if status, body := p.Get(p.Health, "/healthz"); status != 200 {
		t.Errorf("OPB-10: an API server that is away must not kill the process: %d %s", status, body)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	must.Succeed(t, landscape.Shoot.StartAPIServer(ctx))
	eventually(t, func() error {
		for name, cm := range listed(t, ns) {
			if cm.Data["a"] != "w" {
				return fmt.Errorf("%s is %s", name, cm.Data["a"])
			}
		}
		return nil
	})
	settled(t, ns, "mr")
	// The watches are back, too: drift is still put right, an hour before the sync period ends.
	must.Succeed(t, landscape.ShootClient.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "cm-0"}}))
	eventually(t, func() error {
		if _, found := listed(t, ns)["cm-0"]; !found {
			return errors.New("cm-0 is missing")
		}
		return nil
	})
	remove(t, ns, "mr")
}

// TestTargetUnreachableAtStart is PRC-10 and PRC-11, the order of the start: it starts the process before its target, and probes say that it is well (OPB-11).
func TestTargetUnreachableAtStart(t *testing.T) {
	ns := namespace(t)
	landscape.Shoot.StopAPIServer()
	started := false
	t.Cleanup(func() {
		if !started {
			_ = landscape.Shoot.StartAPIServer(context.Background())
		}
	})
	p := start(t, nil, func(o *harness.ProcessOptions) { o.AsAdmin = true })
	t.Run("OPB-11/PRC-10 it is ready without its target", func(t *testing.T) { ready(t, p) })
	must.Succeed(t, landscape.SeedClient.Create(t.Context(), harness.Secret(ns, "mr", configMaps(ns, 3, "v"))))
	must.Succeed(t, landscape.SeedClient.Create(t.Context(), harness.ManagedResource(ns, "mr", "mr")))
	eventually(t, func() error {
		mr := &resourcesv1alpha1.ManagedResource{}
		must.Succeed(t, landscape.SeedClient.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "mr"}, mr))
		if status, message := harness.Condition(mr, resourcesv1alpha1.ResourcesApplied); status != "False/ApplyFailed" {
			return fmt.Errorf("ResourcesApplied is %s: %s", status, message)
		}
		return nil
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	must.Succeed(t, landscape.Shoot.StartAPIServer(ctx))
	started = true
	settled(t, ns, "mr")
	remove(t, ns, "mr")
}

// TestLeaderChange runs two instances: one works, the other takes over (PRC-21).
func TestLeaderChange(t *testing.T) {
	ns := namespace(t)
	config := map[string]any{
		"leaderElection":         map[string]any{"leaderElect": true, "resourceNamespace": ns, "leaseDuration": "3s", "renewDeadline": "2s", "retryPeriod": "500ms"},
		"sourceClientConnection": map[string]any{"namespaces": []any{ns}},
	}
	first := start(t, config)
	create(t, ns, "mr", configMaps(ns, 3, "v"))
	settled(t, ns, "mr")
	second := start(t, config)
	ready(t, second)
	expect.False(t, strings.Contains(second.Output(), "Using cluster id"), "PRC-21: the second instance works, too")
	if code := first.Stop(); code != 0 {
		t.Errorf("the first instance ended with %d: %s", code, first.Output())
	}
	must.Succeed(t, landscape.ShootClient.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "cm-1"}}))
	eventually(t, func() error {
		if _, found := listed(t, ns)["cm-1"]; !found {
			return errors.New("cm-1 is missing")
		}
		return nil
	})
	third := start(t, config)
	ready(t, third)
	second.Kill() // Without releasing the lease.
	must.Succeed(t, landscape.SeedClient.Update(t.Context(), harness.Secret(ns, "mr", configMaps(ns, 4, "w"))))
	eventually(t, func() error {
		if got := listed(t, ns)["cm-3"].Data["a"]; got != "w" {
			return fmt.Errorf("value is %q", got)
		}
		return nil
	})
	settled(t, ns, "mr")
	remove(t, ns, "mr")
}

// TestSourceIsTarget is BH-GEN-1, BH-MR-12, MRC-16 and OPB-14: it runs one cluster as both (OPB-12), with a class of its own and restricted namespaces.
func TestSourceIsTarget(t *testing.T) {
	ns := namespace(t)
	p := start(t, map[string]any{"controllers": map[string]any{"resourceClass": "seed"}, "targetClientConnection": map[string]any{"namespaces": []any{"other"}}},
		func(o *harness.ProcessOptions) { o.Target = landscape.Seed })
	must.Succeed(t, landscape.SeedClient.Create(t.Context(), harness.Secret(ns, "mr", configMaps(ns, 2, "v"))))
	mr := harness.ManagedResource(ns, "mr", "mr")
	class := "seed"
	mr.Spec.Class = &class
	must.Succeed(t, landscape.SeedClient.Create(t.Context(), mr))
	t.Run("BH-GEN-1/OPB-14 one cluster is both, and objects beyond the configured namespaces are applied", func(t *testing.T) { settled(t, ns, "mr") })
	if got := settled(t, ns, "mr").Finalizers; len(got) != 1 || got[0] != resourcesv1alpha1.FinalizerName+"-seed" {
		t.Errorf("MR-6, MRK-3: got %v", got)
	}
	t.Run("MRB-37 namespaces beyond the configured ones are served all the same, drift included", func(t *testing.T) {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "cm-0"}}
		must.Succeed(t, landscape.SeedClient.Delete(t.Context(), cm))
		eventually(t, func() error { return landscape.SeedClient.Get(t.Context(), client.ObjectKeyFromObject(cm), cm) })
	})
	remove(t, ns, "mr")
	expect.Equal(t, p.Stop(), 0, "ended with")
}

// TestEverythingBindsToLoopback makes sure that tests and the local run open nothing to the network.
func TestEverythingBindsToLoopback(t *testing.T) {
	host, _, err := net.SplitHostPort(strings.TrimPrefix(landscape.Seed.URL(), "https://"))
	if err != nil || !net.ParseIP(host).IsLoopback() {
		t.Errorf("got %s", landscape.Seed.URL())
	}
}
