package healthcheck

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// checkJob implements MRH-23: a Job is unhealthy once it has failed.
func checkJob(job *unstructured.Unstructured) error { return allow(job, "Failed", "False") }
