package follow

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/espalier-project/espalier/internal/foreign/core/v1beta1"
)

func decoderOf(text string) *decoder {
	return &decoder{shape: shapeOf(func() runtime.Object { return &v1beta1.Shoot{} }), body: io.NopCloser(nil), reader: bufio.NewReaderSize(strings.NewReader(text), 16), arrived: func() {}, log: logr.Discard()}
}

func TestDecodeEvents(t *testing.T) {
	d := decoderOf(`{"type":"ADDED","object":{"kind":"Shoot","metadata":{"namespace":"n","name":"a","resourceVersion":"7","managedFields":[{"x":1}]},"spec":{"seedName":"s","other":{"deep":[1,2]}}}}
{"object":{"metadata":{"resourceVersion":"8","annotations":{"k8s.io/initial-events-end":"true"}}},"type":"BOOKMARK"}

{"type":"MODIFIED","object":{"metadata":{"namespace":"n","name":"bad"},"spec":{"seedName":5}}}
{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","metadata":{}}}
`)
	kind, object, err := d.Decode()
	shoot, is := object.(*v1beta1.Shoot)
	if err != nil || kind != watch.Added || !is || shoot.Name != "a" || shoot.Namespace != "n" || shoot.ResourceVersion != "7" || *shoot.Spec.SeedName != "s" {
		t.Errorf("got %v, %+v, %v", kind, object, err)
	}
	kind, object, err = d.Decode()
	if shoot, is = object.(*v1beta1.Shoot); err != nil || kind != watch.Bookmark || !is || shoot.Annotations[metav1.InitialEventsAnnotationKey] != "true" || shoot.ResourceVersion != "8" {
		t.Errorf("a bookmark: got %v, %+v, %v", kind, object, err)
	}
	kind, object, err = d.Decode()
	if shoot, is = object.(*v1beta1.Shoot); err != nil || kind != watch.Modified || !is || shoot.Name != "bad" || shoot.Spec.SeedName != nil {
		t.Errorf("CT-G-14, an object that cannot be decoded: got %v, %+v, %v", kind, object, err)
	}
	kind, object, err = d.Decode()
	if status, is := object.(*metav1.Status); err != nil || kind != watch.Error || !is || status.Code != 410 || status.Reason != metav1.StatusReasonExpired {
		t.Errorf("an error: got %v, %+v, %v", kind, object, err)
	}
	if _, _, err = d.Decode(); !errors.Is(err, io.EOF) {
		t.Errorf("the end: got %v", err)
	}
	for _, text := range []string{"{\n", `{"type":"STRANGE","object":{}}` + "\n", "nonsense\n"} {
		if _, _, err := decoderOf(text).Decode(); err == nil {
			t.Errorf("%q is taken for an event", text)
		}
	}
}
