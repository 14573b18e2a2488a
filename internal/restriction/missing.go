package restriction

import (
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// missing answers a review without a request: null, or nothing but a type (AE-9). kube-apiserver always names an operation.
func missing(r admission.Request) (admission.Response, bool) {
	if r.Operation != "" {
		return admission.Response{}, false
	}
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{
		UID: r.UID, Result: &metav1.Status{Code: http.StatusBadRequest, Message: "the review has no request"},
	}}, true
}
