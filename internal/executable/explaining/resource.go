package explaining

import (
	"fmt"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-project/espalier/internal/kinds"
)

// resource is a resource that a request names.
type resource struct {
	name, group string
	// known is false if only the user claims that there is such a resource.
	known, clusterScoped bool
}

// shortNames are those of resources that are not Kubernetes' own.
var shortNames = map[string]string{"mr": "managedresources"}

// resolve finds the resource that a word means, in upper or lower case: a plural, a singular or a short name, of the
// rules, or else of Kubernetes. A resource that neither knows needs its group.
func (a *asked) resolve(word string) (resource, error) {
	text, group, grouped := strings.Cut(strings.ToLower(word), ".")
	candidates := []string{text}
	if plural := shortNames[text]; plural != "" {
		candidates = append(candidates, plural)
	}
	builtin := kinds.Find(text, group, grouped)
	if builtin != nil {
		candidates = append(candidates, builtin.Resource)
	}
	guessed, _ := apimeta.UnsafeGuessKindToResource(schema.GroupVersionKind{Kind: text})
	for _, name := range append(candidates, guessed.Resource) {
		of, clusterScoped, known := a.resources(name)
		if known && (!grouped || of == group) {
			return resource{name, of, true, clusterScoped}, nil
		}
	}
	switch {
	case builtin != nil:
		return resource{builtin.Resource, builtin.Group, true, !builtin.Namespaced}, nil
	case grouped:
		return resource{name: text, group: group}, nil
	}
	return resource{}, fmt.Errorf("neither the rules nor Kubernetes have a resource %q: name its group, as in %s.example.com", word, text)
}
