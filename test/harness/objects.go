package harness

import (
	"context"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/espalier-project/espalier/test/landscape"
)

// CreateObject creates an object of a landscape, with its status.
func CreateObject(ctx context.Context, client dynamic.Interface, object landscape.Object) error {
	u := &unstructured.Unstructured{}
	raw, err := json.Marshal(object.Content)
	if err != nil {
		return err
	}
	if err := u.UnmarshalJSON(raw); err != nil {
		return err
	}
	gv, err := schema.ParseGroupVersion(u.GetAPIVersion())
	if err != nil {
		return err
	}
	resource := client.Resource(gv.WithResource(object.Resource)).Namespace(u.GetNamespace())
	if _, err := resource.Create(ctx, u, metav1.CreateOptions{}); err != nil {
		return err
	}
	if status, found := object.Content["status"]; found {
		patch, err := json.Marshal(map[string]any{"status": status})
		if err != nil {
			return err
		}
		_, err = resource.Patch(ctx, u.GetName(), types.MergePatchType, patch, metav1.PatchOptions{}, "status")
		return err
	}
	return nil
}
