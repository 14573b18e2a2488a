package highavailabilityconfig

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"strconv"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-project/espalier/internal/endpoint/admission"
)

const (
	// Type is the label of objects whose replicas are set.
	Type = prefix + "type"
	// TypeController is the value of Type for controllers. Any other value means a server.
	TypeController = "controller"
	// Replicas is the annotation of an object with its number of replicas.
	Replicas = prefix + "replicas"
)

// wanted returns the wanted number of an object's replicas; ok is false if the webhook does not set it (A2.4, HA-11,
// HA-12).
func (n needs) wanted(object *metadata) (replicas int32, ok bool, err error) {
	kind := object.Labels[Type]
	if kind == "" {
		return 0, false, nil
	}
	if value := object.Annotations[Replicas]; value != "" {
		replicas, err := parse(value)
		return replicas, true, err
	}
	if kind == TypeController && n.toleranceGiven && n.tolerance == "" {
		return 1, true, nil // One replica is active at a time, and no annotation requires more.
	}
	return 2, true, nil
}

// parse parses a number of replicas. The API server validates the result (WB-5), so it must fit into the field.
func parse(value string) (int32, error) {
	number, err := strconv.Atoi(value)
	switch {
	case err != nil:
		return 0, fmt.Errorf("annotation %s: %w", Replicas, err)
	case number < math.MinInt32 || number > math.MaxInt32:
		return 0, fmt.Errorf("annotation %s: %q is no number of replicas", Replicas, value)
	}
	return int32(number), nil
}

// setReplicas sets the replicas of a workload, unless they are zero. Its autoscaler's maximum is the upper limit
// (HA-10, HA-14, HA-15).
func (n needs) setReplicas(w *workload, limit func() (*int32, error)) error {
	current := *w.replicas
	if current == nil || *current == 0 {
		return nil // The workload is hibernated.
	}
	wanted, ok, err := n.wanted(w.metadata)
	if err != nil || !ok {
		return err
	}
	scaled, err := limit()
	if err != nil {
		return err
	}
	if scaled == nil || *current < wanted {
		*w.replicas = &wanted
	}
	return nil
}

// limitOf returns the maximum number of replicas of the object's autoscaler; nil if there is none (HA-2, HA-13,
// HA-16).
func (w webhook) limitOf(ctx context.Context) (*int32, error) {
	request := admission.RequestFrom(ctx)
	autoscalers := &autoscalingv2.HorizontalPodAutoscalerList{}
	if err := w.target.List(ctx, autoscalers, client.InNamespace(request.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, admission.Refuse(http.StatusInternalServerError, "failed to list all HPAs: %s", err)
	}
	target := autoscalingv2.CrossVersionObjectReference{
		APIVersion: metav1.GroupVersion{Group: request.Kind.Group, Version: request.Kind.Version}.String(), Kind: request.Kind.Kind, Name: request.Name,
	}
	for i := range autoscalers.Items {
		if spec := &autoscalers.Items[i].Spec; request.Name != "" && spec.ScaleTargetRef == target {
			return &spec.MaxReplicas, nil
		}
	}
	return nil, nil
}

// autoscaler is a HorizontalPodAutoscaler with the fields that the webhook uses.
type autoscaler struct {
	Metadata metadata `json:"metadata"`
	Spec     struct {
		MinReplicas *int32 `json:"minReplicas,omitempty"`
		MaxReplicas int32  `json:"maxReplicas"`
	} `json:"spec"`
}

// autoscaler raises the limits of an enabled autoscaler to the wanted replicas of its workload (HA-20 to HA-24,
// WB-4).
func (w webhook) autoscaler(ctx context.Context, hpa *autoscaler) error {
	if hpa.Metadata.Labels[Type] == "" || hpa.Spec.MinReplicas == nil || *hpa.Spec.MinReplicas == 0 {
		return nil
	}
	namespace, err := w.needsOf(ctx, admission.RequestFrom(ctx).Namespace)
	if err != nil {
		return err
	}
	wanted, _, err := namespace.wanted(&hpa.Metadata)
	if err != nil {
		return err
	}
	least := max(*hpa.Spec.MinReplicas, wanted)
	hpa.Spec.MinReplicas, hpa.Spec.MaxReplicas = &least, max(hpa.Spec.MaxReplicas, least)
	return nil
}
