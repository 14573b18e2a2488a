package protodecode_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/espalier-project/espalier/internal/externalapi/boundedyaml/yamltest"
	gardencorev1beta1 "github.com/espalier-project/espalier/internal/externalapi/core/v1beta1"
	"github.com/espalier-project/espalier/internal/externalapi/partialmeta"
	"github.com/espalier-project/espalier/internal/externalapi/protodecode"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

var (
	metadataShape = protodecode.ShapeOf(reflect.TypeFor[partialmeta.Object](), partialmeta.ObjectMessage)
	shootShape    = protodecode.ShapeOf(reflect.TypeFor[gardencorev1beta1.Shoot](), gardencorev1beta1.ShootMessage)
)

// sliceOf is what a slice has of whole metadata, as JSON would have it.
func sliceOf(t testing.TB, whole *metav1.ObjectMeta) (slice partialmeta.Object) {
	t.Helper()
	raw, err := json.Marshal(whole)
	if err != nil {
		t.Skip(err) // JSON has no years of five digits.
	}
	must.Succeed(t, json.Unmarshal(raw, &slice))
	return slice
}

// TestDecodeMetadata: metadata that Kubernetes encodes is decoded as Kubernetes decodes it.
func TestDecodeMetadata(t *testing.T) {
	deleted := metav1.NewTime(time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC))
	whole := metav1.ObjectMeta{
		Name: "web", GenerateName: "w", Namespace: "garden-dev", UID: "u", ResourceVersion: "7", Generation: 3, CreationTimestamp: metav1.Now(), DeletionTimestamp: &deleted,
		Labels: map[string]string{"a": "b", "": "", "c": ""}, Annotations: map[string]string{"long": strings.Repeat("x", 300), "bad": "a\xff\xfeb"}, Finalizers: []string{"gardener"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Shoot", Name: "x", UID: "v", Controller: ptr.To(true)}, {Name: "y"}},
		ManagedFields:   []metav1.ManagedFieldsEntry{{Manager: "m", FieldsV1: metav1.NewFieldsV1(`{"f:x":{}}`)}},
	}
	raw, err := whole.Marshal()
	must.Succeed(t, err)
	var got partialmeta.Object
	must.Succeed(t, metadataShape.Decode(raw, &got))
	want := sliceOf(t, &whole)
	expect.DeepEqual(t, got, want, "(-JSON +Protocol Buffers)")
	expect.Equal(t, got.Annotations["bad"], "a��b", "got %q for what is no UTF-8", got.Annotations["bad"])
}

// message builds messages by hand.
type message []byte

func (m message) bytes(number protowire.Number, value string) message {
	return protowire.AppendString(protowire.AppendTag(m, number, protowire.BytesType), value)
}

func (m message) number(number protowire.Number, value uint64) message {
	return protowire.AppendVarint(protowire.AppendTag(m, number, protowire.VarintType), value)
}

func TestDecodeParts(t *testing.T) {
	spec := message(nil).bytes(14, "old").bytes(14, "new").number(999, 5).bytes(5, "skipped")
	spec = spec.bytes(22, string(message(nil).bytes(1, "CloudProfile"))).bytes(22, string(message(nil).bytes(2, "profile"))).bytes(6, "").bytes(13, "")
	shoot := gardencorev1beta1.Shoot{}
	must.Succeed(t, shootShape.Decode(message(nil).bytes(2, string(spec)).bytes(2, string(message(nil).bytes(18, "internet"))), &shoot))
	want := gardencorev1beta1.ShootSpec{
		SeedName: ptr.To("new"), CloudProfile: &gardencorev1beta1.CloudProfileReference{Kind: "CloudProfile", Name: "profile"}, SecretBindingName: ptr.To(""), ExposureClassName: ptr.To("internet"),
	}
	expect.DeepEqual(t, shoot.Spec, want, "the last text counts, messages in parts are one, and an empty text is one")
}

func TestDecodeErrors(t *testing.T) {
	in := func(numbers []protowire.Number, inner message) message {
		for i := len(numbers) - 1; i >= 0; i-- {
			inner = message(nil).bytes(numbers[i], string(inner))
		}
		return inner
	}
	cut := message{0x0a, 5, 'x'}
	for name, c := range map[string]struct {
		raw  message
		want string
	}{
		"a number for a text":          {in([]protowire.Number{2}, message(nil).number(14, 5)), "spec.seedName: the wire type is not that of the field"},
		"a text for a truth value":     {in([]protowire.Number{2, 6, 3}, message(nil).bytes(11, "x")), "spec.kubernetes.kubeAPIServer.enableAnonymousAuthentication: the wire type is not that of the field"},
		"a number for a message":       {message(nil).number(3, 1), "status: the wire type is not that of the field"},
		"the second element of a list": {in([]protowire.Number{2, 3}, message(nil).bytes(2, "").bytes(2, string(in([]protowire.Number{6}, cut)))), "spec.dns.providers[1].credentialsRef: field 1: "},
		"an owner":                     {in([]protowire.Number{1, 13}, cut), "metadata.ownerReferences[0]: "},
		"an entry of a map":            {in([]protowire.Number{1, 11}, message(nil).number(1, 1)), "metadata.labels: the wire type is not that of the field"},
		"a time":                       {in([]protowire.Number{1, 9}, cut), "metadata.deletionTimestamp: "},
		"a field that nobody reads":    {in([]protowire.Number{2}, message{0x0a, 200}), "spec: field 1: unexpected EOF"},
		"no field at all":              {message{0xff}, "unexpected EOF"},
	} {
		err := shootShape.Decode(c.raw, &gardencorev1beta1.Shoot{})
		expect.True(t, err != nil && strings.HasPrefix(err.Error(), c.want), "%s: got %v, want %s…", name, err, c.want)
	}
	expect.Error(t, shootShape.Decode(nil, &partialmeta.Object{}), "a Shoot is decoded into something else")
}

func TestMissing(t *testing.T) {
	m := protodecode.Message{"metadata": {Number: 1, Of: partialmeta.ObjectMessage.Only("name")}, "spec": {Number: 2, Of: gardencorev1beta1.ShootMessage["spec"].Of.Only("seedName", "dns")}, "status": {}}
	missing := strings.Join(protodecode.Missing(reflect.TypeFor[gardencorev1beta1.Shoot](), m), " ")
	if !strings.HasPrefix(missing, "metadata.annotations metadata.deletionTimestamp metadata.labels ") || !strings.Contains(missing, " spec.kubernetes ") || strings.Contains(missing, "spec.dns") || strings.Contains(missing, "status") {
		t.Errorf("missing are %s", missing)
	}
}

func TestEnvelope(t *testing.T) {
	object, err := (&runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: "K"}, Raw: []byte("message")}).Marshal()
	must.Succeed(t, err)
	body := append([]byte("k8s\x00"), object...)
	got, err := protodecode.Object(body)
	expect.True(t, string(got) == "message" && err == nil, "got %q, %v", got, err)
	frame, err := (&metav1.WatchEvent{Type: "ADDED", Object: runtime.RawExtension{Raw: body}}).Marshal()
	must.Succeed(t, err)
	if kind, got, err := protodecode.Event(frame); kind != "ADDED" || string(got) != "message" || err != nil {
		t.Errorf("got %q, %q, %v", kind, got, err)
	}
	for what, bad := range map[string][]byte{"JSON": []byte(`{"kind":"K"}`), "nothing": nil, "cut off": body[:len(body)-1], "a number": append([]byte("k8s\x00"), message(nil).number(2, 1)...)} {
		if got, err := protodecode.Object(bad); err == nil {
			t.Errorf("%s is taken for an object: %q", what, got)
		}
		if _, _, err := protodecode.List(bad); err == nil {
			t.Errorf("%s is taken for a list", what)
		}
		if _, _, err := protodecode.Event(message(nil).bytes(1, "ADDED").bytes(2, string(message(nil).bytes(1, string(bad))))); err == nil || !strings.HasPrefix(err.Error(), "object: ") && !strings.HasPrefix(err.Error(), "object.raw: ") {
			t.Errorf("%s is taken for an event, or the error does not name the object: %v", what, err)
		}
	}
	list := append([]byte("k8s\x00"), message(nil).bytes(2, string(message(nil).bytes(1, "m").bytes(2, "a").number(7, 7).bytes(2, "b")))...)
	if metadata, items, err := protodecode.List(list); string(metadata) != "m" || len(items) != 2 || string(items[1]) != "b" || err != nil {
		t.Errorf("got %q, %q, %v", metadata, items, err)
	}
}

// FuzzDecode: whatever comes costs no more than any input may, and is decoded as Kubernetes decodes it if both do.
func FuzzDecode(f *testing.F) {
	seed, err := (&metav1.ObjectMeta{Name: "n", Labels: map[string]string{"a": "b"}, OwnerReferences: []metav1.OwnerReference{{Name: "x"}}, DeletionTimestamp: ptr.To(metav1.Unix(5, 0))}).Marshal()
	must.Succeed(f, err)
	f.Add(seed)
	f.Add([]byte(message(nil).bytes(2, string(message(nil).bytes(14, "s").bytes(16, "").bytes(16, "")))))
	f.Add([]byte(message(nil).bytes(11, "").bytes(11, string(message(nil).bytes(2, "only a value")))))
	f.Fuzz(func(t *testing.T, in []byte) {
		yamltest.Bounded(t, len(in), func() {
			_ = shootShape.Decode(in, &gardencorev1beta1.Shoot{})
			_, _, _ = protodecode.Event(in)
			_, _, _ = protodecode.List(in)
		})
		var whole metav1.ObjectMeta
		var got partialmeta.Object
		ours, theirs := metadataShape.Decode(in, &got), whole.Unmarshal(in)
		if ours != nil || theirs != nil {
			return
		}
		want := sliceOf(t, &whole)
		for _, m := range []*partialmeta.Object{&want, &got} { // JSON has none of what is empty.
			if len(m.Labels) == 0 {
				m.Labels = nil
			}
			if len(m.Annotations) == 0 {
				m.Annotations = nil
			}
			for i := range m.OwnerReferences {
				m.OwnerReferences[i] = metav1.OwnerReference{Name: strings.ToValidUTF8(m.OwnerReferences[i].Name, "")}
			}
			if m.DeletionTimestamp.IsZero() {
				m.DeletionTimestamp = nil
			}
		}
		expect.DeepEqual(t, got, want, "(-Kubernetes +ours)")
	})
}
