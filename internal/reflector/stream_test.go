package reflector

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"

	gardencorev1beta1 "github.com/espalier-project/espalier/internal/externalapi/core/v1beta1"
	"github.com/espalier-project/espalier/test/expect"
)

// reported collects what is told of objects that cannot be decoded.
type reported []string

func (b *reported) bad(namespace, name string, err error) {
	*b = append(*b, namespace+"/"+name+": "+err.Error())
}

// collected collects objects.
type collected []runtime.Object

func (c *collected) add(object runtime.Object) error {
	*c = append(*c, object)
	return nil
}

func shootShape() *shape {
	return shapeOf(func() runtime.Object { return &gardencorev1beta1.Shoot{} }, gardencorev1beta1.ShootMessage)
}

func decoderOf(text string, bad undecodable) *decoder {
	return &decoder{
		ctx: context.Background(), shape: shootShape(), body: io.NopCloser(nil), reader: bufio.NewReaderSize(strings.NewReader(text), 16),
		contact: newContact(clock.RealClock{}), bad: bad, failed: func(error) {},
	}
}

func TestDecodeEvents(t *testing.T) {
	var bad reported
	d := decoderOf(`{"type":"ADDED","object":{"kind":"Shoot","metadata":{"namespace":"n","name":"a","resourceVersion":"7","managedFields":[{"x":1}]},"spec":{"seedName":"s","other":{"deep":[1,2]}}}}
{"object":{"metadata":{"resourceVersion":"8","annotations":{"k8s.io/initial-events-end":"true"}}},"type":"BOOKMARK"}

{"type":"MODIFIED","object":{"metadata":{"namespace":"n","name":"bad"},"spec":{"seedName":5}}}
{"type":"MODIFIED","object":{"metadata":{"namespace":"n","name":"worse","resourceVersion":"9","labels":5}}}
{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","metadata":{}}}
`, bad.bad)
	kind, object, err := d.Decode()
	shoot, is := object.(*gardencorev1beta1.Shoot)
	if err != nil || kind != watch.Added || !is || shoot.Name != "a" || shoot.Namespace != "n" || shoot.ResourceVersion != "7" || *shoot.Spec.SeedName != "s" {
		t.Errorf("got %v, %+v, %v", kind, object, err)
	}
	kind, object, err = d.Decode()
	if shoot, is = object.(*gardencorev1beta1.Shoot); err != nil || kind != watch.Bookmark || !is || shoot.Annotations[metav1.InitialEventsAnnotationKey] != "true" || shoot.ResourceVersion != "8" {
		t.Errorf("a bookmark: got %v, %+v, %v", kind, object, err)
	}
	kind, object, err = d.Decode()
	if shoot, is = object.(*gardencorev1beta1.Shoot); err != nil || kind != watch.Modified || !is || shoot.Name != "bad" || shoot.Spec.SeedName != nil {
		t.Errorf("B-8, an object that cannot be decoded: got %v, %+v, %v", kind, object, err)
	}
	kind, object, err = d.Decode()
	if shoot, is = object.(*gardencorev1beta1.Shoot); err != nil || kind != watch.Modified || !is || shoot.Namespace != "n" || shoot.Name != "worse" || shoot.ResourceVersion != "9" || shoot.Labels != nil {
		t.Errorf("B-8, one whose metadata cannot be decoded: got %v, %+v, %v", kind, object, err)
	}
	if want := (reported{"n/bad: ", "n/worse: "}); len(bad) != 2 || !strings.HasPrefix(bad[0], want[0]) || !strings.HasPrefix(bad[1], want[1]) {
		t.Errorf("told of %q, want %q", bad, want)
	}
	kind, object, err = d.Decode()
	if status, is := object.(*metav1.Status); err != nil || kind != watch.Error || !is || status.Code != 410 || status.Reason != metav1.StatusReasonExpired {
		t.Errorf("an error: got %v, %+v, %v", kind, object, err)
	}
	if _, _, err = d.Decode(); !errors.Is(err, io.EOF) {
		t.Errorf("the end: got %v", err)
	}
	for _, text := range []string{"{\n", `{"type":"STRANGE","object":{}}` + "\n", "nonsense\n"} {
		if _, _, err := decoderOf(text, bad.bad).Decode(); err == nil {
			t.Errorf("%q is taken for an event", text)
		}
	}
}

// TestDecodeLists: an object that cannot be decoded does not keep the others of a list back.
func TestDecodeLists(t *testing.T) {
	for name, c := range map[string]struct {
		second string
		bad    string
	}{
		"a list":                            {`{"metadata":{"name":"b"}}`, ""},
		"B-8/a bad object":                  {`{"metadata":{"namespace":"n","name":"b"},"spec":{"seedName":[]}}`, "n/b: "},
		"B-8/a bad object of several lines": {"{\n\"metadata\":{\"name\":\"b\"},\n\"spec\":5}", "/b: "},
		"B-8/bad metadata":                  {`{"metadata":{"name":"b","labels":[]},"spec":{}}`, "/b: "},
	} {
		var bad reported
		var items collected
		list, err := shootShape().decodeList([]byte(`{"metadata":{"resourceVersion":"7","continue":"c"},"items":[{"metadata":{"name":"a"},"spec":{"seedName":"s","x":1}},`+c.second+`]}`), bad.bad, items.add)
		if err != nil || len(items) != 2 || list.ResourceVersion != "7" || list.Continue != "c" {
			t.Errorf("%s: got %+v, %v, %v", name, list, items, err)
			continue
		}
		a, b := items[0].(*gardencorev1beta1.Shoot), items[1].(*gardencorev1beta1.Shoot)
		expect.True(t, a.Name == "a" && *a.Spec.SeedName == "s" && b.Name == "b" && b.Spec.SeedName == nil,
			"%s: got %+v and %+v", name, a, b)
		if c.bad == "" && len(bad) != 0 || c.bad != "" && (len(bad) != 1 || !strings.HasPrefix(bad[0], c.bad)) {
			t.Errorf("%s: told of %q, want %q", name, bad, c.bad)
		}
	}
	for _, text := range []string{"{", `{"items":5}`, `{"items":[5]}`} {
		list, err := shootShape().decodeList([]byte(text), func(string, string, error) {}, (&collected{}).add)
		expect.Error(t, err, "%s is taken for a list: %+v", text, list)
	}
}
