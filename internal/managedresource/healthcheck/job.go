package healthcheck

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// checkJob is MRH-23.
func checkJob(job *unstructured.Unstructured) error { return allow(job, "Failed", "False") }
