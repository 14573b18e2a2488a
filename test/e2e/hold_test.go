package e2e

import (
	"bytes"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/test/env/harness"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// TestHoldVerbs: kubectl espalier as a process sets a hold, under which drift of the object stays, and ends it, after which the object is repaired within
// a second.
func TestHoldVerbs(t *testing.T) {
	ns := namespace(t)
	plugin, err := harness.Build(t.TempDir(), harness.Client)
	must.Succeed(t, err)
	start(t, nil)
	create(t, ns, "mr", configMaps(ns, 1, "v"))
	applied(t, ns, "mr", "True/ApplySucceeded")
	object := client.ObjectKey{Namespace: ns, Name: "cm-0"}
	edit := func(patch string) {
		t.Helper()
		must.Succeed(t, landscape.ShootClient.Patch(t.Context(), harness.Object("v1", "ConfigMap", ns, "cm-0"), client.RawPatch("application/merge-patch+json", []byte(patch)), client.FieldOwner("kubectl-edit")))
	}
	has := func(want string) error {
		live := &corev1.ConfigMap{}
		if err := landscape.ShootClient.Get(t.Context(), object, live); err != nil {
			return err
		}
		if got := fmt.Sprint(live.Data); got != want {
			return fmt.Errorf("data is %s, want %s", got, want)
		}
		return nil
	}
	ask := func(arguments ...string) string {
		t.Helper()
		arguments = append(arguments, "-n", ns, "--kubeconfig="+landscape.Seed.Kubeconfig, "--target-kubeconfig="+landscape.Shoot.Kubeconfig)
		command := exec.CommandContext(t.Context(), plugin, arguments...)
		var errOut bytes.Buffer
		command.Stderr = &errOut
		out, err := command.Output()
		if err != nil {
			t.Fatalf("CLI-30: %v: %v: %s%s", arguments, err, out, errOut.String())
		}
		return string(out)
	}
	mr := &resourcesv1alpha1.ManagedResource{}
	must.Succeed(t, landscape.SeedClient.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "mr"}, mr))
	mr.Annotations = map[string]string{resourcesv1alpha1.AnnotationAllowHolds: "true"} // The target is not the source.
	must.Succeed(t, landscape.SeedClient.Update(t.Context(), mr))

	fastest := time.Hour // A machine may be busy for a while, but not each time.
	for name, arguments := range map[string][]string{
		"CLI-30/an object":         {"configmap", "cm-0"},
		"CLI-30/a ManagedResource": {"managedresource", "mr"},
	} {
		t.Run(name, func(t *testing.T) {
			said := ask(append([]string{"hold", "--for", "10m", "--reason", "ticket 5"}, arguments...)...)
			expect.True(t, strings.Contains(said, " is left alone until ") && strings.Contains(said, `, for the reason "ticket 5"`),
				"CLI-30: hold says %q", said)
			eventually(t, func() error { // The hold on the ManagedResource is in another cluster than the edit.
				if err := landscape.SeedClient.Get(t.Context(), client.ObjectKeyFromObject(mr), mr); err != nil {
					return err
				}
				if said := fmt.Sprint(mr.Status.Conditions); !strings.Contains(said, "eft alone for a while") {
					return fmt.Errorf("the conditions do not report the hold: %s", said)
				}
				return nil
			})
			edit(`{"data": {"a": "emergency"}}`)
			for began := time.Now(); time.Since(began) < 2*time.Second; time.Sleep(50 * time.Millisecond) {
				must.Succeed(t, has("map[a:emergency]"))
			}

			ask(append([]string{"release"}, arguments...)...)
			began := time.Now()
			eventually(t, func() error { return has("map[a:v]") })
			fastest = min(fastest, time.Since(began))
			if said := ask(append([]string{"release"}, arguments...)...); !strings.HasSuffix(said, " has no hold\n") {
				t.Errorf("CLI-30: release says %q", said)
			}
		})
	}
	expect.True(t, fastest <= time.Second, "CLI-30: objects are repaired after %s, want a second at most", fastest)
}
