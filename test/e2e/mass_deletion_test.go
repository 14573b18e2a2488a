package e2e

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/test/env/harness"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// TestMassDeletion: a Secret that loses all manifests deletes nothing until kubectl espalier confirms it; the annotation goes when nothing is deleted any more.
func TestMassDeletion(t *testing.T) {
	ns := namespace(t)
	plugin, err := harness.Build(t.TempDir(), harness.Client)
	must.Succeed(t, err)
	process := start(t, nil)
	create(t, ns, "mr", configMaps(ns, 10, "v"))
	settled(t, ns, "mr")
	must.Succeed(t, landscape.SeedClient.Update(t.Context(), harness.Secret(ns, "mr", nil)))
	applied(t, ns, "mr", "False/DeletionHeld", "The deletion of 10 of 10 objects that no manifest has any more waits, because they are half or more of the objects: v1/ConfigMap/"+ns+"/cm-0, ", "It begins when this condition has been visible for 10m0s")
	expect.Equal(t, len(listed(t, ns)), 10, "T4-9/MRX-21: objects are left")
	expect.Equal(t, counter(process, `espalier_managedresource_mass_deletions_total{result="held"}`), 1, "MRX-21: the metric counts")

	out, err := exec.CommandContext(t.Context(), plugin, "confirm", "mr", "-n", ns, "--kubeconfig="+landscape.Seed.Kubeconfig).CombinedOutput()
	must.True(t, err == nil && strings.HasSuffix(string(out), "ManagedResource "+ns+"/mr goes on\n"), "CLI-32: %v: %s", err, out)
	applied(t, ns, "mr", "True/ApplySucceeded")
	expect.Equal(t, len(listed(t, ns)), 0, "MRX-22: objects are left")
	must.Succeed(t, landscape.SeedClient.Update(t.Context(), harness.Secret(ns, "mr", configMaps(ns, 1, "v"))))
	eventually(t, func() error {
		mr := &resourcesv1alpha1.ManagedResource{}
		if err := landscape.SeedClient.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "mr"}, mr); err != nil {
			return err
		}
		if value, found := mr.Annotations[resourcesv1alpha1.AnnotationConfirmDeletion]; found {
			return fmt.Errorf("MRX-22: the annotation is still %s", value)
		}
		return nil
	})
	remove(t, ns, "mr")
}
