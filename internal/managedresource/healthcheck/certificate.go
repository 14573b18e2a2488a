package healthcheck

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// checkCertificate is MRH-31.
func checkCertificate(certificate *unstructured.Unstructured) error {
	if err := allow(certificate, "Ready", "True"); err != nil {
		return err
	}
	return readyState(certificate, "certificate")
}

// checkIssuer is MRH-32.
func checkIssuer(issuer *unstructured.Unstructured) error { return readyState(issuer, "issuer") }

func readyState(object *unstructured.Unstructured, what string) error {
	if state := text(object, "status", "state"); state != "Ready" {
		return fmt.Errorf("%s state is %q (\"Ready\" expected)", what, state)
	}
	return nil
}
