package csrapprover

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "github.com/espalier-project/espalier/internal/externalapi/machine/v1alpha1"
)

// machineKind is the kind of Machines. Only their metadata is read.
var machineKind = machinev1alpha1.Machines.GroupVersion().WithKind("Machine")

// liveView reads the current state from the clusters. Certificates are requested once in days, so this costs less
// than a watch.
type liveView struct {
	nodes, machines client.Reader
	namespace       string
}

func (v *liveView) Node(ctx context.Context, name string) ([]corev1.NodeAddress, bool, error) {
	node := &corev1.Node{}
	if err := v.nodes.Get(ctx, client.ObjectKey{Name: name}, node); err != nil {
		return nil, false, client.IgnoreNotFound(err)
	}
	return node.Status.Addresses, true, nil
}

func (v *liveView) Machine(ctx context.Context, name string) (string, bool, error) {
	machine := &metav1.PartialObjectMetadata{}
	machine.SetGroupVersionKind(machineKind)
	err := v.machines.Get(ctx, client.ObjectKey{Namespace: v.namespace, Name: name}, machine)
	if apierrors.IsNotFound(err) {
		return "", false, v.served(ctx)
	}
	return machine.Labels[machinev1alpha1.NodeLabel], err == nil, err
}

// served returns an error if the API server does not serve Machines. It answers with the same code as for a Machine
// that does not exist, but then the absence of a Machine is not proven.
func (v *liveView) served(ctx context.Context) error {
	return v.machines.List(ctx, machines(), client.InNamespace(v.namespace), client.Limit(1))
}

func (v *liveView) MachinesOf(ctx context.Context, node string) (int, error) {
	if len(validation.IsValidLabelValue(node)) > 0 {
		return 0, nil // No label can have this value.
	}
	list := machines()
	err := v.machines.List(ctx, list, client.InNamespace(v.namespace), client.MatchingLabels{machinev1alpha1.NodeLabel: node})
	return len(list.Items), err
}

func machines() *metav1.PartialObjectMetadataList {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(machineKind.GroupVersion().WithKind("MachineList"))
	return list
}
