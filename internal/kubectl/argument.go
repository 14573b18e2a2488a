package kubectl

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
)

// isManagedResource reports whether a kind, a plural or a short name means ManagedResources.
func isManagedResource(word string) bool {
	name, group, _ := strings.Cut(strings.ToLower(word), ".")
	own := resourcesv1alpha1.SchemeGroupVersion
	return slices.Contains([]string{"mr", "managedresource", "managedresources"}, name) &&
		slices.Contains([]string{"", own.Group, own.Version + "." + own.Group}, group)
}

func kindOfManagedResources() *kind {
	return &kind{apimeta.RESTMapping{
		Resource: managedResources, GroupVersionKind: resourcesv1alpha1.SchemeGroupVersion.WithKind("ManagedResource"), Scope: apimeta.RESTScopeNamespace,
	}}
}

// managedResourceName reads NAME, KIND/NAME or KIND NAME, where KIND is ManagedResource. Without an argument the name
// is empty.
func managedResourceName(arguments []string) (string, error) {
	if len(arguments) == 0 {
		return "", nil
	}
	if len(arguments) == 1 && arguments[0] != "" && !strings.Contains(arguments[0], "/") {
		return arguments[0], nil
	}
	kind, name, err := kindAndName(arguments)
	if err != nil {
		return "", errors.New("want NAME, mr/NAME or mr NAME of one ManagedResource")
	}
	if !isManagedResource(kind) {
		return "", fmt.Errorf("%s is not a ManagedResource: want NAME, mr/NAME or mr NAME", kind)
	}
	return name, nil
}

// oneManagedResource is managedResourceName for verbs that need a name.
func oneManagedResource(arguments []string) (string, error) {
	if len(arguments) == 0 {
		return "", errors.New("want the name of one ManagedResource")
	}
	return managedResourceName(arguments)
}

// wantsManagedResource checks the arguments of verbs about one ManagedResource.
func wantsManagedResource(arguments []string) error {
	_, err := oneManagedResource(arguments)
	return err
}

// wantsObject checks the arguments of verbs about an object.
func wantsObject(arguments []string) error {
	_, _, err := kindAndName(arguments)
	return err
}
