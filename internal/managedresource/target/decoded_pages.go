package target

import (
	"context"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes/scheme"
)

// page is a page of entire objects, each of which is decoded on access, so that it needs the memory of their text and
// of one object. The dynamic client would decode all of them at once, and each object twice.
type page struct {
	unstructured.UnstructuredList
	items []stdjson.RawMessage
}

// EachListItem implements runtime.Unstructured.
func (p *page) EachListItem(each func(runtime.Object) error) error {
	for _, text := range p.items {
		object := &unstructured.Unstructured{}
		if json.Unmarshal(text, &object.Object) != nil || object.Object == nil {
			return errors.New("an object of the list is malformed") // The error may have content of a Secret.
		}
		if object.GetKind() == "" && object.GetAPIVersion() == "" {
			object.SetKind(strings.TrimSuffix(p.GetKind(), "List"))
			object.SetAPIVersion(p.GetAPIVersion())
		}
		if err := each(object); err != nil {
			return err
		}
	}
	return nil
}

// listByObject returns a function that requests pages of entire objects.
func (c *Client) listByObject(served *mapping,
	namespace string) func(context.Context, metav1.ListOptions) (*page, error) {
	path := resourcePath(served.resource, namespace)
	return func(ctx context.Context, options metav1.ListOptions) (*page, error) {
		result := c.rest.Get().AbsPath(path...).SetHeader("Accept", runtime.ContentTypeJSON).
			SpecificallyVersionedParams(&options, scheme.ParameterCodec,
				schema.GroupVersion{Version: "v1"}).Do(ctx)
		if err := result.Error(); err != nil {
			return nil, err
		}
		text, err := result.Raw()
		if err != nil {
			return nil, err
		}
		list := struct {
			metav1.TypeMeta
			metav1.ListMeta `json:"metadata"`
			Items           []stdjson.RawMessage `json:"items"`
		}{}
		if json.Unmarshal(text, &list) != nil { // The error may have content of a Secret.
			return nil, fmt.Errorf("the list of %s is malformed", served.resource.Resource)
		}
		p := &page{items: list.Items}
		p.SetAPIVersion(list.APIVersion)
		p.SetKind(list.Kind)
		p.SetResourceVersion(list.ResourceVersion)
		p.SetContinue(list.Continue)
		return p, nil
	}
}
