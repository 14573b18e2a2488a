package healthcheck

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// checkPod implements MRH-24: a Pod must be running or succeeded.
func checkPod(pod *unstructured.Unstructured) error {
	switch phase := text(pod, "status", "phase"); phase {
	case "Running", "Succeeded":
		return nil
	default:
		return fmt.Errorf("pod is in invalid phase %q (expected one of [\"Running\" \"Succeeded\"])", phase)
	}
}
