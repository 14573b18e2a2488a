package e2e

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/test/env/harness"
)

// TestEmergencyStop: while the Namespace has the annotation, new content, drift and a deletion of a shoot's ManagedResource wait, also after a restart, and
// those of other namespaces do not.
func TestEmergencyStop(t *testing.T) {
	other, garden := namespace(t), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "garden"}}
	must(t, client.IgnoreAlreadyExists(landscape.SeedClient.Create(t.Context(), garden.DeepCopy())))
	ns := "shoot--" + other
	must(t, landscape.SeedClient.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}))
	must(t, landscape.ShootClient.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}))
	annotate := func(value string) {
		patch := `{"metadata": {"annotations": {"shoot.gardener.cloud/emergency-stop-reconciliations": "` + value + `"}}}`
		must(t, landscape.SeedClient.Patch(t.Context(), garden.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch))))
	}
	process := start(t, nil)
	for _, each := range []string{ns, other} {
		create(t, each, "mr", configMaps(each, 2, "v"))
		settled(t, each, "mr")
	}
	annotate("true")
	eventually(t, func() error { return equal(counter(process, "espalier_managedresource_emergency_stop"), 1) })
	must(t, landscape.ShootClient.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "cm-1"}}))
	applied(t, ns, "mr", "False/EmergencyStop", "Changed by others and not repaired: ConfigMap "+ns+"/cm-1.")
	for _, each := range []string{ns, other} {
		must(t, landscape.SeedClient.Update(t.Context(), harness.Secret(each, "mr", configMaps(each, 3, "w"))))
	}
	eventually(t, func() error { return equal(len(listed(t, other)), 3) })
	applied(t, other, "mr", "True/ApplySucceeded")
	process.Kill()
	process = start(t, nil)
	ready(t, process)
	applied(t, ns, "mr", "False/EmergencyStop")
	must(t, landscape.SeedClient.Delete(t.Context(), harness.ManagedResource(ns, "mr")))
	if got := listed(t, ns); len(got) != 1 || got["cm-0"].Data["a"] != "v" {
		t.Errorf("T4-10/MRX-26: the objects are %v", got)
	}
	annotate("false")
	eventually(t, func() error { return equal(len(listed(t, ns)), 0) })
	eventually(t, func() error {
		err := landscape.SeedClient.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "mr"}, &resourcesv1alpha1.ManagedResource{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("MRX-26: the ManagedResource is still there (%v)", err)
	})
	remove(t, other, "mr")
}
