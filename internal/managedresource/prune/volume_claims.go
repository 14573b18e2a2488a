package prune

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/espalier-project/espalier/internal/managedresource/healthcheck"
	"github.com/espalier-project/espalier/internal/managedresource/plan"
	"github.com/espalier-project/espalier/internal/managedresource/steps"
)

// deleteClaims deletes the PersistentVolumeClaims that a StatefulSet created: those that match its entire selector
// and are named <template>-<statefulset>-<ordinal> (MRX-16, MRB-11). Each deletion needs a fresh run.
func (r *run) deleteClaims(ctx context.Context, statefulSet *unstructured.Unstructured) error {
	templates, _, err := unstructured.NestedSlice(statefulSet.Object, "spec", "volumeClaimTemplates")
	if err != nil {
		return fmt.Errorf("could not convert object to StatefulSet: %w", err)
	}
	if len(templates) == 0 {
		return nil
	}
	selector, err := healthcheck.SelectorOf(statefulSet)
	if err != nil {
		return fmt.Errorf("could not convert object to StatefulSet: %w", err)
	}
	claims, err := r.Target.Claims(ctx, statefulSet.GetNamespace(), selector)
	if err != nil {
		return fmt.Errorf("could not list PVCs of StatefulSet: %w", err)
	}
	for i := range claims {
		if !isClaimOf(&claims[i], templates, statefulSet.GetName()) || claims[i].DeletionTimestamp != nil {
			continue
		}
		if err := r.Freshness.Check(ctx, steps.Live); err != nil {
			return err
		}
		if err := r.Target.DeleteClaim(ctx, &claims[i]); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		steps.Deleted(ctx, plan.ObjectName("v1", "PersistentVolumeClaim", claims[i].Namespace, claims[i].Name),
			"the StatefulSet is deleted")
	}
	return nil
}

func isClaimOf(claim *corev1.PersistentVolumeClaim, templates []any, statefulSet string) bool {
	for _, item := range templates {
		template, _ := item.(map[string]any)
		name, _, _ := unstructured.NestedString(template, "metadata", "name")
		ordinal, found := strings.CutPrefix(claim.Name, name+"-"+statefulSet+"-")
		if _, err := strconv.ParseUint(ordinal, 10, 32); found && err == nil {
			return true
		}
	}
	return false
}
