package reflector

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
)

// List reads all objects of a kind once, page by page, as they were when it began, and hands each over; Set, Remove and Retain of the kind are not
// used. A page is in memory at a time. An object that cannot be decoded comes with its metadata or its name, as in a watch.
func List(ctx context.Context, client rest.Interface, kind Kind, log logr.Logger, each func(runtime.Object) error) error {
	f := &Follower{Kind: kind, client: client, log: log.WithValues("kind", kind.Name)}
	if !kind.Whole {
		f.shape = shapeOf(kind.New, kind.Message)
	}
	options := metav1.ListOptions{Limit: pageSize}
	for {
		list, err := f.page(ctx, f.request(&options))
		if err != nil {
			return fmt.Errorf("listing %s: %w", kind.Resource.GroupResource(), err)
		}
		if err := eachOf(list, each); err != nil {
			return err
		}
		metadata, err := meta.ListAccessor(list)
		if err != nil {
			return err
		}
		if options.Continue = metadata.GetContinue(); options.Continue == "" {
			return nil
		}
	}
}

func (f *Follower) page(ctx context.Context, request *rest.Request) (runtime.Object, error) {
	if f.shape != nil {
		return f.shape.list(ctx, request, f.undecodable)
	}
	return request.Do(ctx).Get()
}

func eachOf(list runtime.Object, each func(runtime.Object) error) error {
	if decoded, is := list.(*page); is {
		for _, object := range decoded.Items {
			if err := each(object); err != nil {
				return err
			}
		}
		return nil
	}
	return meta.EachListItem(list, each)
}
