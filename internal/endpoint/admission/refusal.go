package admission

import (
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Refusal is the reason why a request is refused. Its message has names and fields, never content of a Secret.
type Refusal struct {
	Code    int
	Reason  metav1.StatusReason
	Message string
}

func (r *Refusal) Error() string { return r.Message }

// Refuse returns a refusal without a reason.
func Refuse(code int, format string, arguments ...any) *Refusal {
	return &Refusal{Code: code, Message: fmt.Sprintf(format, arguments...)}
}

// statusOf returns the status of an error: refusals and errors of the API server as they are, without wrapping text
// (FM-4); other errors are 500.
func statusOf(err error) *metav1.Status {
	if refusal := (*Refusal)(nil); errors.As(err, &refusal) {
		return &metav1.Status{Code: int32(refusal.Code), Reason: refusal.Reason, Message: refusal.Message}
	}
	if known := apierrors.APIStatus(nil); errors.As(err, &known) {
		status := known.Status()
		if status.Code == 0 { // A status without a code would mean success.
			status.Code = http.StatusInternalServerError
		}
		return &status
	}
	return &metav1.Status{Code: http.StatusInternalServerError, Message: err.Error()}
}

// denied returns the error of a typed function: an error that is neither a refusal nor from the API server is a
// denial with its full text (FM-4).
func denied(err error) error {
	refusal, known := (*Refusal)(nil), apierrors.APIStatus(nil)
	if errors.As(err, &refusal) || errors.As(err, &known) {
		return err
	}
	return &Refusal{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: err.Error()}
}
