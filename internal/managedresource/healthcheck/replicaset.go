package healthcheck

import (
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// checkReplicaSet implements MRH-25.
func checkReplicaSet(rs *unstructured.Unstructured) error {
	return checkReplicated(rs, "ReplicaSet does not have minimum availability")
}

// checkReplicationController implements MRH-26.
func checkReplicationController(rc *unstructured.Unstructured) error {
	return checkReplicated(rc, "ReplicationController does not have minimum availability")
}

func checkReplicated(object *unstructured.Unstructured, tooFew string) error {
	if err := checkOutdated(object); err != nil {
		return err
	}
	if integer(object, "status", "readyReplicas") < integer(object, "spec", "replicas") {
		return errors.New(tooFew)
	}
	return nil
}
