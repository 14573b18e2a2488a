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

// Decoder decodes configurations into the internal types of a scheme, as API servers decode them from a file. A
// member of a project writes them, so the decoder bounds the expansion of YAML first.
type Decoder struct{ json runtime.Decoder }

// NewDecoder returns a decoder of the types of a scheme.
func NewDecoder(scheme *runtime.Scheme) Decoder {
	json := kubejson.NewSerializerWithOptions(kubejson.DefaultMetaFactory, scheme, scheme, kubejson.SerializerOptions{})
	return Decoder{serializer.NewCodecFactory(scheme).DecoderToVersion(json, runtime.InternalGroupVersioner)}
}

// Decode returns a configuration and its kind. Other content is refused with 422.
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
	switch { // These errors would quote the entire configuration.
	case runtime.IsMissingKind(err):
		why = "Object 'Kind' is missing"
	case runtime.IsMissingVersion(err):
		why = "Object 'apiVersion' is missing"
	}
	return nil, nil, admission.Refuse(http.StatusUnprocessableEntity, "failed to decode the provided %s: %s", purpose, why)
}

// toJSON converts YAML to JSON. Content that begins with a brace counts as JSON, as in API servers.
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

// These bound the number and size of the errors in a response: people correct a few at a time, and one error may
// quote a megabyte.
const (
	shownFaults    = 20
	shownFaultSize = 1 << 10
)

// Invalid returns a refusal with 422 for the errors of a configuration; nil if there are none.
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
