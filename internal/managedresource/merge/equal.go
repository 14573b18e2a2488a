package merge

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/espalier-project/espalier/internal/managedresource/schema"
)

// Equal reports whether writing merged over live would change nothing (MR-26, MRB-8). For built-in kinds, this
// follows from their types and the defaults of the API server. For all other kinds only the metadata has a known
// type, so that {} and absent differ. managedFields are ignored. Merge takes all fields that Equal ignores from the
// live object.
func Equal(live, merged *unstructured.Unstructured) bool { return differ(live, merged) == nil }

// Difference returns the path of the first field that writing merged over live would change, such as
// spec.ports[http].port, or "". It has no values.
func Difference(live, merged *unstructured.Unstructured) string {
	return strings.ReplaceAll(strings.Join(differ(live, merged), "."), ".[", "[")
}

func differ(live, merged *unstructured.Unstructured) []string {
	kind, _ := schema.Of(live.GroupVersionKind())
	return kind.Differ(live.Object, merged.Object)
}
