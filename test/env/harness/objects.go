package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/espalier-project/espalier/test/env/cluster"
	"github.com/espalier-project/espalier/test/gen/landscape"
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

// StoreObject puts an object of a landscape straight into etcd, in the form in which kube-apiserver would have stored it. number tells objects
// apart.
func StoreObject(ctx context.Context, to *cluster.Cluster, object landscape.Object, number int) error {
	apiVersion, _ := object.Content["apiVersion"].(string)
	version, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return err
	}
	metadata, _ := object.Content["metadata"].(map[string]any)
	namespace, _ := metadata["namespace"].(string)
	name, _ := metadata["name"].(string)
	Complete(object, number)
	raw, err := json.Marshal(object.Content)
	if err != nil {
		return err
	}
	return to.Store(ctx, path.Join("/registry", version.Group, object.Resource, namespace, name), raw)
}

// Complete gives an object of a landscape what kube-apiserver adds after a create and, if it has one, a write of its status: a UID, and the managed
// fields of both. number tells objects apart.
func Complete(object landscape.Object, number int) {
	content := object.Content
	apiVersion, _ := content["apiVersion"].(string)
	metadata, _ := content["metadata"].(map[string]any)
	now := time.Now().UTC().Format(time.RFC3339)
	metadata["uid"] = fmt.Sprintf("10000000-0000-0000-0000-%012d", number)
	metadata["creationTimestamp"], metadata["generation"] = now, 1
	managed := func(operation, subresource string, fields map[string]any) map[string]any {
		entry := map[string]any{"manager": "landscape", "operation": operation, "apiVersion": apiVersion, "time": now, "fieldsType": "FieldsV1", "fieldsV1": fields}
		if subresource != "" {
			entry["subresource"] = subresource
		}
		return entry
	}
	written := map[string]any{}
	for key, value := range content {
		if key != "status" && key != "metadata" && key != "apiVersion" && key != "kind" {
			written[key] = value
		}
	}
	described := map[string]any{}
	for _, key := range []string{"annotations", "labels", "ownerReferences"} {
		if value, found := metadata[key]; found {
			described[key] = value
		}
	}
	if len(described) > 0 {
		written["metadata"] = described
	}
	entries := []any{managed("Update", "", fieldsOf(written))}
	if status, found := content["status"]; found {
		entries = append(entries, managed("Update", "status", fieldsOf(map[string]any{"status": status})))
	}
	metadata["managedFields"] = entries
	if object.Resource == "namespaces" {
		content["spec"], content["status"] = map[string]any{"finalizers": []any{"kubernetes"}}, map[string]any{"phase": "Active"}
	}
}

// fieldsOf is a set of managed fields, in which lists are atomic.
func fieldsOf(content map[string]any) map[string]any {
	fields := make(map[string]any, len(content))
	for key, value := range content {
		nested, _ := value.(map[string]any)
		fields["f:"+key] = fieldsOf(nested)
	}
	return fields
}
