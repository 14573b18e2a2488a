package plan

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/test/expect"
)

// MRD-9: the record that a cluster-scoped object was created counts whatever namespace it names, if it names the instance. An object
// that was created once is not created again, and a record without an instance is no proof in another place.
func TestPlan_RecordOfClusterScopedObjectCounts(t *testing.T) {
	once := map[string]string{resourcesv1alpha1.AnnotationIgnore: "true"}
	entry := func(namespace, uid string, annotations map[string]string) resourcesv1alpha1.ObjectReference {
		return resourcesv1alpha1.ObjectReference{Annotations: annotations, ObjectReference: corev1.ObjectReference{
			APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Namespace: namespace, Name: "r", UID: types.UID(uid)}}
	}
	other := entry("n", "u", once)
	other.Name = "other"
	for name, tc := range map[string]struct {
		inventory []resourcesv1alpha1.ObjectReference
		uid       string
	}{
		"where it is":                     {[]resourcesv1alpha1.ObjectReference{entry("", "u", once)}, "u"},
		"elsewhere":                       {[]resourcesv1alpha1.ObjectReference{entry("n", "u", once)}, "u"},
		"elsewhere, without instance":     {[]resourcesv1alpha1.ObjectReference{entry("n", "", once)}, ""},
		"elsewhere, planned":              {[]resourcesv1alpha1.ObjectReference{meta.AsTentative(entry("n", "u", once))}, ""},
		"elsewhere, not created once":     {[]resourcesv1alpha1.ObjectReference{entry("n", "u", nil)}, ""},
		"elsewhere, of another object":    {[]resourcesv1alpha1.ObjectReference{other}, ""},
		"planned here, created elsewhere": {[]resourcesv1alpha1.ObjectReference{meta.AsTentative(entry("", "", once)), entry("n", "u", once)}, "u"},
		"nowhere":                         {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := plan(t, "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: r, annotations: {resources.gardener.cloud/ignore: 'true'}}\n", tc.inventory)
			if got := p.Apply[0].Reference; string(got.UID) != tc.uid || got.Namespace != "" {
				t.Errorf("got instance %q in namespace %q, want %q in none", got.UID, got.Namespace, tc.uid)
			}
		})
	}
}

// An object without an identity, or with one that no API server takes, is an error that says which field is wrong.
func TestPlan_RefusesObjectsWithoutIdentity(t *testing.T) {
	for text, want := range map[string]string{
		"kind: X\nmetadata: {name: a}\n":                         "Object 'apiVersion' is missing",
		"apiVersion: v1\nmetadata: {name: a}\n":                  "Object 'Kind' is missing",
		"apiVersion: v1\nkind: X\nmetadata: {generateName: a}\n": "metadata.name is missing",
		"apiVersion: a/b/c\nkind: X\nmetadata: {name: a}\n":      "a/b/c",
		"apiVersion: v1\nkind: X\nmetadata: {name: a/b}\n":       "metadata.name",
	} {
		p := plan(t, text, nil)
		expect.True(t, len(p.Apply) == 0 && strings.Contains(fmt.Sprint(p.Errors), want),
			"%q: got %v, want %s", text, p.Errors, want)
	}
}
