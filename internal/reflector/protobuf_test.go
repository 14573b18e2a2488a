package reflector

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	gardencorev1beta1 "github.com/espalier-project/espalier/internal/externalapi/core/v1beta1"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/gen/gardenproto"
	"github.com/espalier-project/espalier/test/must"
)

type content = map[string]any

// messageOf is the message of a Shoot.
func messageOf(t *testing.T, object content) []byte {
	t.Helper()
	encoder, err := gardenproto.New()
	must.Succeed(t, err)
	object["kind"] = "Shoot"
	message, err := encoder.Message(object)
	must.Succeed(t, err)
	return message
}

func frameOf(t *testing.T, event, kind string, message []byte) []byte {
	t.Helper()
	object, err := gardenproto.Object("core.gardener.cloud/v1beta1", kind, message)
	must.Succeed(t, err)
	frame, err := gardenproto.Event(event, object)
	must.Succeed(t, err)
	return frame
}

var (
	badSeedName = []byte{2<<3 | 2, 2, 14 << 3, 1}         // spec.seedName is a number.
	badLabels   = []byte{1<<3 | 2, 4, 11<<3 | 2, 2, 8, 1} // The key of a label is a number.
)

// TestDecodeFrames: a stream of Protocol Buffers says the same as one of JSON, and so does what cannot be decoded in it.
func TestDecodeFrames(t *testing.T) {
	metadata := func(name, version string) content {
		return content{"metadata": content{"namespace": "n", "name": name, "resourceVersion": version}}
	}
	status, err := (&metav1.Status{Code: 410, Reason: metav1.StatusReasonExpired}).Marshal()
	must.Succeed(t, err)
	long := strings.Repeat("x", 3*readAtOnce)
	stream := bytes.Join([][]byte{
		frameOf(t, "ADDED", "Shoot", messageOf(t, content{"metadata": content{"namespace": "n", "name": "a", "resourceVersion": "7"}, "spec": content{"seedName": "s", "region": long}})),
		frameOf(t, "BOOKMARK", "Shoot", messageOf(t, content{"metadata": content{"resourceVersion": "8", "annotations": content{metav1.InitialEventsAnnotationKey: "true"}}})),
		frameOf(t, "MODIFIED", "Shoot", append(messageOf(t, metadata("bad", "9")), badSeedName...)),
		frameOf(t, "MODIFIED", "Shoot", append(messageOf(t, metadata("worse", "10")), badLabels...)),
		frameOf(t, "ERROR", "Status", status),
	}, nil)
	var bad reported
	d := decoderOf(string(stream), bad.bad)
	for _, want := range []struct {
		kind          watch.EventType
		name, version string
		seed          string
	}{{watch.Added, "a", "7", "s"}, {watch.Bookmark, "", "8", ""}, {watch.Modified, "bad", "9", ""}, {watch.Modified, "worse", "10", ""}} {
		kind, object, err := d.Decode()
		shoot, is := object.(*gardencorev1beta1.Shoot)
		must.True(t, err == nil && kind == want.kind && is && shoot.Name == want.name && shoot.ResourceVersion == want.version,
			"B-8: got %v, %+v, %v, want %+v", kind, object, err, want)
		if (shoot.Spec.SeedName != nil) != (want.seed != "") || want.seed != "" && *shoot.Spec.SeedName != want.seed {
			t.Errorf("B-8: %s has seed %v, want %q", want.name, shoot.Spec.SeedName, want.seed)
		}
	}
	if len(bad) != 2 || !strings.HasPrefix(bad[0], "n/bad: spec.seedName: ") || !strings.HasPrefix(bad[1], "n/worse: metadata.labels: ") {
		t.Errorf("B-8: told of %q", bad)
	}
	kind, object, err := d.Decode()
	if status, is := object.(*metav1.Status); err != nil || kind != watch.Error || !is || status.Code != 410 || status.Reason != metav1.StatusReasonExpired {
		t.Errorf("an error: got %v, %+v, %v", kind, object, err)
	}
	if _, _, err = d.Decode(); !errors.Is(err, io.EOF) {
		t.Errorf("the end: got %v", err)
	}
}

// TestBrokenFrames: a stream that breaks off ends; one that says what is no event is an error.
func TestBrokenFrames(t *testing.T) {
	whole := frameOf(t, "ADDED", "Shoot", messageOf(t, content{"metadata": content{"name": "a"}}))
	none := func(string, string, error) {}
	for n := 1; n < len(whole); n++ {
		if _, _, err := decoderOf(string(whole[:n]), none).Decode(); !errors.Is(err, io.EOF) {
			t.Fatalf("after %d bytes: got %v", n, err)
		}
	}
	for name, c := range map[string]struct{ stream, want string }{
		"too long":      {string(binary.BigEndian.AppendUint32(nil, lineLimit+1)), "an event is longer than"},
		"much too long": {"\x80\x00\x00\x00", ""},
		"no object":     {"\x00\x00\x00\x03\x0a\x01A", "object: no object of Kubernetes"},
		"JSON inside":   {"\x00\x00\x00\x04{\"a\"", "field 15"},
		"a strange one": {string(frameOf(t, "STRANGE", "Shoot", nil)), `got an invalid watch event type: "STRANGE"`},
		"nothing of it": {string(frameOf(t, "ADDED", "Shoot", []byte{0xff})), "unable to decode watch event: "},
	} {
		_, _, err := decoderOf(c.stream, none).Decode()
		expect.ErrorContains(t, err, c.want, "%s", name)
	}
}

// TestDecodeProtobufList: an object that cannot be decoded does not keep the others of a list back.
func TestDecodeProtobufList(t *testing.T) {
	bodyOf := func(items ...[]byte) []byte {
		body, err := gardenproto.List("core.gardener.cloud/v1beta1", "Shoot", metav1.ListMeta{ResourceVersion: "7", Continue: "c"}, items)
		must.Succeed(t, err)
		return body
	}
	a := messageOf(t, content{"metadata": content{"name": "a"}, "spec": content{"seedName": "s"}})
	b := append(messageOf(t, content{"metadata": content{"name": "b"}}), badSeedName...)
	var bad reported
	var items collected
	list, err := shootShape().protobuf.decodeList(bodyOf(a, b), bad.bad, items.add)
	must.True(t, err == nil && len(items) == 2 && list.ResourceVersion == "7" && list.Continue == "c",
		"got %+v, %v, %v", list, items, err)
	first, second := items[0].(*gardencorev1beta1.Shoot), items[1].(*gardencorev1beta1.Shoot)
	expect.True(t, first.Name == "a" && *first.Spec.SeedName == "s" && second.Name == "b" && second.Spec.SeedName == nil,
		"B-8: got %+v and %+v", first, second)
	expect.True(t, len(bad) == 1 && strings.HasPrefix(bad[0], "/b: spec.seedName: "), "B-8: told of %q", bad)
	if _, err := shootShape().protobuf.decodeList(bodyOf(a, []byte{0xff}), bad.bad, items.add); err == nil || !strings.Contains(err.Error(), "items[1]") {
		t.Errorf("a list that cannot be decoded: got %v", err)
	}
	expect.Error(t, expect.ErrorOf(shootShape().protobuf.decodeList(bodyOf(a)[:20], bad.bad, items.add)),
		"a list that is cut off is taken for one")
}

// FuzzFrames: whatever a stream says, it is read to an end or an error, and nothing is taken for an object that is none.
func FuzzFrames(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x04\x0a\x02xy"))
	f.Add([]byte(`{"type":"ADDED","object":{"metadata":{"name":"a"}}}` + "\n\x00\x00\x00\x00"))
	shape := shootShape()
	f.Fuzz(func(t *testing.T, stream []byte) {
		d := decoderOf("", func(string, string, error) {})
		d.shape, d.reader = shape, bufio.NewReader(bytes.NewReader(stream))
		for range len(stream) + 1 {
			kind, object, err := d.Decode()
			if err != nil {
				return
			}
			if _, is := object.(*gardencorev1beta1.Shoot); !is && kind != watch.Error {
				t.Fatalf("%s came with %T", kind, object)
			}
		}
		t.Fatal("a stream has more events than bytes")
	})
}
