package configref

import (
	"net/http"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/espalier-project/espalier/internal/endpoint/admission"
	gardencorev1beta1 "github.com/espalier-project/espalier/internal/externalapi/core/v1beta1"
)

// Since refuses a configuration of v1 for Shoots whose API server is older than the first version that reads it
// (WB-32). It ignores Shoots with invalid versions, which other checks refuse.
func Since(first *version.Version, kind *schema.GroupVersionKind, purpose string, users []*gardencorev1beta1.Shoot) error {
	if kind == nil || kind.Version != "v1" {
		return nil
	}
	for _, shoot := range users {
		if has, err := version.ParseGeneric(shoot.Spec.Kubernetes.Version); err == nil && has.LessThan(first) {
			return admission.Refuse(http.StatusUnprocessableEntity, "failed to decode the provided %s: %s needs Kubernetes %s, but shoot %s/%s has %s",
				purpose, kind.GroupVersion(), first, shoot.Namespace, shoot.Name, has)
		}
	}
	return nil
}
