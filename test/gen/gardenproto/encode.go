// Package gardenproto encodes objects of the garden as gardener-apiserver sends them to clients that read Protocol Buffers. It knows nothing of the
// decoder of this project: numbers and types are written down a second time (messages.go), and what Kubernetes has encodes itself.
package gardenproto

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"google.golang.org/protobuf/encoding/protowire"
)

// field is a field of a message.
type field struct {
	number protowire.Number
	of     string
}

// Encoder encodes objects.
type Encoder struct {
	messages map[string]map[string]field
}

// New returns an encoder.
func New() (*Encoder, error) {
	e := &Encoder{messages: map[string]map[string]field{}}
	for line := range strings.Lines(messages) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		fields := map[string]field{}
		for _, word := range words[1:] {
			name, rest, _ := strings.Cut(word, "=")
			digits, of, _ := strings.Cut(rest, ":")
			number, err := strconv.Atoi(digits)
			if err != nil {
				return nil, fmt.Errorf("%s %s: %w", words[0], word, err)
			}
			fields[name] = field{protowire.Number(number), of}
		}
		e.messages[words[0]] = fields
	}
	return e, nil
}

// marshaler is implemented by types of Kubernetes.
type marshaler interface{ Marshal() ([]byte, error) }

// kubernetes are kinds that encode themselves.
var kubernetes = map[string]func() marshaler{
	"Namespace":                 func() marshaler { return &corev1.Namespace{} },
	"ServiceAccount":            func() marshaler { return &corev1.ServiceAccount{} },
	"CertificateSigningRequest": func() marshaler { return &certificatesv1.CertificateSigningRequest{} },
}

// Message encodes an object, which is in the form of its JSON.
func (e *Encoder) Message(object map[string]any) ([]byte, error) {
	kind, _ := object["kind"].(string)
	if fresh := kubernetes[kind]; fresh != nil {
		return themselves(object, fresh())
	}
	if e.messages[kind] == nil {
		return nil, fmt.Errorf("no message of kind %q", kind)
	}
	content := maps.Clone(object)
	delete(content, "apiVersion")
	delete(content, "kind")
	return e.message(nil, kind, content)
}

// themselves has a value in the form of its JSON encoded by its type.
func themselves(value any, as marshaler) ([]byte, error) {
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(raw, as); err != nil {
		return nil, err
	}
	return as.Marshal()
}

func (e *Encoder) message(out []byte, name string, content map[string]any) ([]byte, error) {
	fields, known := e.messages[name]
	if !known {
		return nil, fmt.Errorf("no message %q", name)
	}
	for _, key := range slices.Sorted(maps.Keys(content)) {
		f, known := fields[key]
		if !known {
			return nil, fmt.Errorf("message %s has no field %q", name, key)
		}
		var err error
		if out, err = e.field(out, f, content[key]); err != nil {
			return nil, fmt.Errorf("%s.%w", key, err)
		}
	}
	return out, nil
}

func (e *Encoder) field(out []byte, f field, value any) ([]byte, error) {
	if list, is := value.([]any); is && f.of != "Raw" { // An extension may be a list itself.
		for _, element := range list {
			var err error
			if out, err = e.field(out, f, element); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	switch f.of {
	case "int":
		number, err := numberOf(value)
		return protowire.AppendVarint(protowire.AppendTag(out, f.number, protowire.VarintType), number), err
	case "map":
		return appendMap(out, f.number, value.(map[string]any)), nil
	}
	raw, err := e.bytes(f.of, value)
	return protowire.AppendBytes(protowire.AppendTag(out, f.number, protowire.BytesType), raw), err
}

// bytes encodes what has a length.
func (e *Encoder) bytes(of string, value any) ([]byte, error) {
	switch of {
	case "":
		text, is := value.(string)
		if !is {
			return nil, fmt.Errorf("%v is no text", value)
		}
		return []byte(text), nil
	case "ObjectMeta":
		return themselves(value, &metav1.ObjectMeta{})
	case "Time":
		return themselves(value, &metav1.Time{})
	case "Raw":
		return themselves(value, &runtime.RawExtension{})
	case "IntOrString":
		return themselves(value, &intstr.IntOrString{})
	}
	content, is := value.(map[string]any)
	if !is {
		return nil, fmt.Errorf("%v is no %s", value, of)
	}
	return e.message(nil, of, content)
}

func appendMap(out []byte, number protowire.Number, content map[string]any) []byte {
	for _, key := range slices.Sorted(maps.Keys(content)) {
		entry := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), key)
		entry = protowire.AppendString(protowire.AppendTag(entry, 2, protowire.BytesType), fmt.Sprint(content[key]))
		out = protowire.AppendBytes(protowire.AppendTag(out, number, protowire.BytesType), entry)
	}
	return out
}

func numberOf(value any) (uint64, error) {
	switch number := value.(type) {
	case bool:
		return protowire.EncodeBool(number), nil
	case int:
		return uint64(number), nil
	case int64:
		return uint64(number), nil
	case float64:
		return uint64(number), nil
	}
	return 0, fmt.Errorf("%v is no number", value)
}

// Object puts a message into the envelope that an API server sends it in.
func Object(apiVersion, kind string, message []byte) ([]byte, error) {
	raw, err := (&runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: apiVersion, Kind: kind}, Raw: message}).Marshal()
	return append([]byte("k8s\x00"), raw...), err
}

// Event returns the frame of an event of a watch.
func Event(kind string, object []byte) ([]byte, error) {
	raw, err := (&metav1.WatchEvent{Type: kind, Object: runtime.RawExtension{Raw: object}}).Marshal()
	if err != nil {
		return nil, err
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(raw))), raw...), nil
}

// List returns a list of messages in its envelope.
func List(apiVersion, kind string, metadata metav1.ListMeta, messages [][]byte) ([]byte, error) {
	raw, err := metadata.Marshal()
	if err != nil {
		return nil, err
	}
	list := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), raw)
	for _, message := range messages {
		list = protowire.AppendBytes(protowire.AppendTag(list, 2, protowire.BytesType), message)
	}
	return Object(apiVersion, kind+"List", list)
}
