package target

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var replicaSets = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"}

func isNotFound(err error) bool { return apierrors.IsNotFound(err) }

// unserved reports whether the resource was not found, and not only an object.
func unserved(err error) bool {
	var status apierrors.APIStatus
	return isNotFound(err) && errors.As(err, &status) &&
		(status.Status().Details == nil || status.Status().Details.Name == "")
}
