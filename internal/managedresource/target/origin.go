package target

import (
	"cmp"
	"encoding/json"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
)

// managerOf returns the field manager that API servers record for a client.
func managerOf(config *rest.Config) string {
	name, _, _ := strings.Cut(cmp.Or(config.UserAgent, rest.DefaultKubernetesUserAgent()), "/")
	return name
}

// Manager returns the field manager of this process, which is the same for former and later leaders.
func (c *Client) Manager() string { return c.manager }

// WroteOrigin reports whether a process like this one wrote the origin of an object, according to the managed fields.
// Other controllers copy annotations, for example from Deployments to ReplicaSets, or from Secrets to copies in other
// Namespaces. It is false without managed fields.
func (c *Client) WroteOrigin(object metav1.Object) bool {
	if metav1.GetControllerOf(object) != nil {
		return false // Its controller created it, and would create it again.
	}
	for _, entry := range object.GetManagedFields() {
		if entry.Manager == c.manager && entry.Subresource == "" && hasOrigin(entry.FieldsV1) {
			return true
		}
	}
	return false
}

func hasOrigin(fields *metav1.FieldsV1) bool {
	if fields == nil {
		return false
	}
	var written struct {
		Metadata struct {
			Annotations map[string]json.RawMessage `json:"f:annotations"`
		} `json:"f:metadata"`
	}
	if json.Unmarshal(fields.GetRawBytes(), &written) != nil {
		return false
	}
	_, found := written.Metadata.Annotations["f:"+resourcesv1alpha1.AnnotationOrigin]
	return found
}
