package merge

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/espalier-project/espalier/internal/managedresource/schema"
)

// Equal reports whether writing merged over live would change nothing (MR-26, MRB-8). For Kubernetes' own kinds that
// follows their types and what the API server fills in; of all others only the metadata is known, and {} and absent
// differ. managedFields do not count. Merge takes the fields that Equal ignores from the live object.
func Equal(live, merged *unstructured.Unstructured) bool { return differ(live, merged) == nil }

// Difference names the first field found that writing merged over live would change, such as spec.ports[http].port, or
// returns "". It holds no content.
func Difference(live, merged *unstructured.Unstructured) string {
	return strings.ReplaceAll(strings.Join(differ(live, merged), "."), ".[", "[")
}

func differ(live, merged *unstructured.Unstructured) []string {
	kind, _ := schema.Of(live.GroupVersionKind())
	return kind.Differ(live.Object, merged.Object)
}
