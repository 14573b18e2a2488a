package kit

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestRetrieving(t *testing.T) {
	if err := Retrieving(apierrors.NewNotFound(schema.GroupResource{Resource: "nodes"}, "n")); err != nil {
		t.Errorf("COM-7: an object that is gone: %v", err)
	}
	if err := Retrieving(errors.New("internal")); err == nil || err.Error() != "error retrieving object from store: internal" {
		t.Errorf("COM-7: an object that can't be read: %v", err)
	}
}
