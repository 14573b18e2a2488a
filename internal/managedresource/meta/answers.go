package meta

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Refused reports whether a response proves that a request was not carried out.
func Refused(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	const clientError, requestTimeout, serverError = 400, 408, 500
	code := status.Status().Code
	return code >= clientError && code < serverError && code != requestTimeout
}
