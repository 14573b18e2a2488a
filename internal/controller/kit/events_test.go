package kit

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-project/espalier/test/expect"
)

func TestRetrieving(t *testing.T) {
	expect.Succeed(t, Retrieving(apierrors.NewNotFound(schema.GroupResource{Resource: "nodes"}, "n")),
		"COM-7: an object that is gone")
	if err := Retrieving(errors.New("internal")); err == nil || err.Error() != "error retrieving object from store: internal" {
		t.Errorf("COM-7: an object that can't be read: %v", err)
	}
}
