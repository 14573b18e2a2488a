package healthcheck

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// checkCertificate implements MRH-31: status.state must be Ready, and condition Ready must not be False.
func checkCertificate(certificate *unstructured.Unstructured) error {
	if err := allow(certificate, "Ready", "True"); err != nil {
		return err
	}
	return readyState(certificate, "certificate")
}

// checkIssuer implements MRH-32: status.state must be Ready.
func checkIssuer(issuer *unstructured.Unstructured) error { return readyState(issuer, "issuer") }

func readyState(object *unstructured.Unstructured, what string) error {
	if state := text(object, "status", "state"); state != "Ready" {
		return fmt.Errorf("%s state is %q (\"Ready\" expected)", what, state)
	}
	return nil
}
