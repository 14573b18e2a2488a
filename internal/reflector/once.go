package reflector

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

// List reads all objects of a kind once, page by page, as they were when it began, and hands each over; Set, Remove
// and Retain of the kind are not used. One page is in memory at a time. Of an object that cannot be decoded, the
// metadata or the name is handed over, as in a watch.
func List(ctx context.Context, client rest.Interface, kind Kind, log logr.Logger,
	each func(runtime.Object) error) error {
	_, err := New(kind, client, clock.RealClock{}, log).readList(ctx, each)
	return err
}

// readList returns the version of a list. A page that is too large is read again with fewer objects.
func (f *Follower) readList(ctx context.Context, each func(runtime.Object) error) (version string, err error) {
	options := metav1.ListOptions{Limit: pageSize}
	for {
		metadata, err := f.page(ctx, f.request(&options), each)
		if errors.Is(err, errTooLarge) && options.Limit > 1 {
			options.Limit = max(options.Limit/8, 1)
			continue
		}
		if err != nil {
			return "", fmt.Errorf("listing %s: %w", f.Resource.GroupResource(), err)
		}
		f.contact.heard()
		if options.Continue = metadata.Continue; options.Continue == "" {
			return metadata.ResourceVersion, nil
		}
	}
}

// page reads a page of a list, and hands each object over.
func (f *Follower) page(ctx context.Context, request *rest.Request,
	each func(runtime.Object) error) (*metav1.ListMeta, error) {
	if f.shape != nil {
		return f.shape.list(ctx, request, f.undecodable, each)
	}
	list, err := request.Do(ctx).Get()
	if err != nil {
		return nil, err
	}
	metadata, err := meta.ListAccessor(list)
	if err != nil {
		return nil, err
	}
	return &metav1.ListMeta{ResourceVersion: metadata.GetResourceVersion(), Continue: metadata.GetContinue()}, meta.EachListItem(list, each)
}
