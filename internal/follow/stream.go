package follow

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kmeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	kjson "sigs.k8s.io/json"

	"github.com/espalier-project/espalier/internal/foreign/meta"
	"github.com/espalier-project/espalier/internal/foreign/slice"
)

// shape decodes objects of one kind: it cuts them down to what is read, and then decodes that. The libraries' way parses each event
// seven times over, which was most of what a garden of ten thousand Shoots cost.
type shape struct {
	event, objects *slice.Shape
	// identity is an event with nothing but the object's metadata.
	identity *slice.Shape
	fresh    func() runtime.Object
	// list is the type of a list.
	listType reflect.Type
}

// shapeOf returns the shape of a type.
func shapeOf(fresh func() runtime.Object) *shape {
	object := reflect.TypeOf(fresh()).Elem()
	// A struct like metav1.WatchEvent and a list, but with the kind's type.
	event := reflect.StructOf([]reflect.StructField{
		{Name: "Type", Type: reflect.TypeFor[string](), Tag: `json:"type"`},
		{Name: "Object", Type: object, Tag: `json:"object"`},
	})
	list := reflect.StructOf([]reflect.StructField{
		{Name: "Metadata", Type: reflect.TypeFor[metav1.ListMeta](), Tag: `json:"metadata"`},
		{Name: "Items", Type: reflect.SliceOf(object), Tag: `json:"items"`},
	})
	identity := reflect.TypeFor[struct {
		Type   string `json:"type"`
		Object struct {
			Metadata meta.Object `json:"metadata"`
		} `json:"object"`
	}]()
	return &shape{event: slice.ShapeOf(event), objects: slice.ShapeOf(list), identity: slice.ShapeOf(identity), fresh: fresh, listType: list}
}

// page is a list of objects.
type page struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []runtime.Object
}

// DeepCopyObject implements runtime.Object. Pages are read and given up at once: nobody changes what a copy shares.
func (p *page) DeepCopyObject() runtime.Object {
	copied := *p
	return &copied
}

func (s *shape) list(ctx context.Context, request *rest.Request) (runtime.Object, error) {
	raw, err := Raw(ctx, request)
	if err != nil {
		return nil, err
	}
	decoded := reflect.New(s.listType)
	if err := kjson.UnmarshalCaseSensitivePreserveInts(s.objects.Cut(nil, raw), decoded.Interface()); err != nil {
		return nil, fmt.Errorf("decoding a list: %w", err)
	}
	result := &page{ListMeta: decoded.Elem().Field(0).Interface().(metav1.ListMeta)}
	items := decoded.Elem().Field(1)
	for i := range items.Len() {
		result.Items = append(result.Items, items.Index(i).Addr().Interface().(runtime.Object))
	}
	return result, nil
}

func (s *shape) watch(ctx context.Context, request *rest.Request, arrived func(), log logr.Logger) (watch.Interface, error) {
	body, err := request.Stream(ctx)
	if err != nil {
		return nil, err
	}
	d := &decoder{shape: s, body: body, reader: bufio.NewReaderSize(body, 16<<10), arrived: arrived, log: log}
	return watch.NewStreamWatcher(d, apierrors.NewClientErrorReporter(500, "GET", "ClientWatchDecoding")), nil
}

// decoder reads the events of a watch, one a line.
type decoder struct {
	shape   *shape
	body    io.ReadCloser
	reader  *bufio.Reader
	arrived func()
	log     logr.Logger
	line    []byte
	small   []byte
}

// lineLimit bounds an event. etcd keeps at most 1.5 MiB of an object, and as JSON it is at most some times that.
const lineLimit = 32 << 20

// Decode implements watch.Decoder.
func (d *decoder) Decode() (watch.EventType, runtime.Object, error) {
	if err := d.readLine(); err != nil {
		return "", nil, err
	}
	d.arrived()
	d.small = d.shape.event.Cut(d.small[:0], d.line)
	object := d.shape.fresh()
	event := struct {
		Type   watch.EventType `json:"type"`
		Object any             `json:"object"`
	}{Object: object}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(d.small, &event); err != nil {
		// One bad object must not stop the others: it counts with what its name alone says, which gives the least rights.
		object = d.shape.fresh()
		event.Object = object
		d.small = d.shape.identity.Cut(d.small[:0], d.line)
		if kjson.UnmarshalCaseSensitivePreserveInts(d.small, &event) != nil {
			return "", nil, fmt.Errorf("unable to decode watch event: %w", err)
		}
		if accessor, unnamed := kmeta.Accessor(object); unnamed == nil && event.Type != watch.Error {
			d.log.Error(err, "Object cannot be decoded; only its name counts", "namespace", accessor.GetNamespace(), "name", accessor.GetName())
		}
	}
	switch event.Type {
	case watch.Added, watch.Modified, watch.Deleted, watch.Bookmark:
		return event.Type, object, nil
	case watch.Error:
		status := &metav1.Status{}
		failure := struct {
			Object *metav1.Status `json:"object"`
		}{status}
		if err := kjson.UnmarshalCaseSensitivePreserveInts(d.line, &failure); err != nil {
			return "", nil, fmt.Errorf("unable to decode watch event: %w", err)
		}
		return event.Type, status, nil
	}
	return "", nil, fmt.Errorf("got an invalid watch event type: %q", event.Type)
}

// readLine reads the next line that is not empty.
func (d *decoder) readLine() error {
	d.line = d.line[:0]
	for {
		part, err := d.reader.ReadSlice('\n')
		if len(d.line)+len(part) > lineLimit {
			return fmt.Errorf("an event is longer than %d bytes", lineLimit)
		}
		d.line = append(d.line, part...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && net.IsProbableEOF(err):
			return io.EOF
		case err != nil:
			return err
		}
		if d.line = bytes.TrimSpace(d.line); len(d.line) > 0 {
			return nil
		}
	}
}

// Close implements watch.Decoder.
func (d *decoder) Close() { _ = d.body.Close() }
