package configref

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	kubejson "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-project/espalier/internal/endpoint/admission"
	"github.com/espalier-project/espalier/internal/externalapi/boundedyaml"
)

// Decoder decodes configurations into the internal types of a scheme, as API servers do that read them from a file. A member of a project
// writes them, so that their expansion is bounded first.
type Decoder struct{ json runtime.Decoder }

// NewDecoder returns the decoder of a scheme.
func NewDecoder(scheme *runtime.Scheme) Decoder {
	json := kubejson.NewSerializerWithOptions(kubejson.DefaultMetaFactory, scheme, scheme, kubejson.SerializerOptions{})
	return Decoder{serializer.NewCodecFactory(scheme).DecoderToVersion(json, runtime.InternalGroupVersioner)}
}

// Decode returns a configuration and its kind. Other texts are refused with 422.
func (d Decoder) Decode(purpose, content string) (runtime.Object, *schema.GroupVersionKind, error) {
	text, err := toJSON(content)
	if err == nil {
		var object runtime.Object
		var kind *schema.GroupVersionKind
		if object, kind, err = d.json.Decode(text, nil, nil); err == nil {
			return object, kind, nil
		}
	}
	why := shortened(err.Error())
	switch { // Their texts have the whole configuration.
	case runtime.IsMissingKind(err):
		why = "Object 'Kind' is missing"
	case runtime.IsMissingVersion(err):
		why = "Object 'apiVersion' is missing"
	}
	return nil, nil, admission.Refuse(http.StatusUnprocessableEntity, "failed to decode the provided %s: %s", purpose, why)
}

// toJSON takes content that begins with a brace for JSON, as API servers do.
func toJSON(content string) ([]byte, error) {
	if err := boundedyaml.CheckSize(len(content)); err != nil {
		return nil, err
	}
	text := []byte(content)
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) {
		return text, boundedyaml.CheckJSON(text)
	}
	return boundedyaml.ToJSON(text)
}

// An answer has at most so many faults of at most this size: people correct some faults at a time, and each fault may quote a megabyte.
const (
	shownFaults    = 20
	shownFaultSize = 1 << 10
)

// Invalid refuses a configuration for its faults with 422; nil if there are none.
func Invalid(purpose string, faults field.ErrorList) error {
	if len(faults) == 0 {
		return nil
	}
	var all []string
	for _, fault := range faults[:min(len(faults), shownFaults)] {
		all = append(all, shortened(fault.Error()))
	}
	if more := len(faults) - len(all); more > 0 {
		all = append(all, fmt.Sprintf("and %d more", more))
	}
	return admission.Refuse(http.StatusUnprocessableEntity, "provided invalid %s: [%s]", purpose, strings.Join(all, " "))
}

func shortened(text string) string {
	if len(text) <= shownFaultSize {
		return text
	}
	return strings.ToValidUTF8(text[:shownFaultSize], "") + "…"
}
