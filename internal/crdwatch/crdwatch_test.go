package crdwatch

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-project/espalier/internal/externalapi/apiextensions"
	"github.com/espalier-project/espalier/internal/externalapi/partialmeta"
	"github.com/espalier-project/espalier/internal/reflector"
	"github.com/espalier-project/espalier/test/expect"
)

func definition(name, established string, versions ...string) *apiextensions.CustomResourceDefinition {
	d := &apiextensions.CustomResourceDefinition{Object: partialmeta.Object{Name: name}, Status: apiextensions.CustomResourceDefinitionStatus{Conditions: []apiextensions.Condition{{Type: "Established", Status: established}}}}
	for _, version := range versions {
		d.Spec.Versions = append(d.Spec.Versions, apiextensions.Version{Name: version, Served: true})
	}
	return d
}

func list(names ...string) reflector.Names {
	var all []types.NamespacedName
	for _, name := range names {
		all = append(all, types.NamespacedName{Name: name})
	}
	return reflector.NamesOf(all...)
}

// NP-44, ICC-1: definitions that are there, come, change and go.
func TestKind(t *testing.T) {
	var notified []string
	kind := kindOf(map[string][]string{"a": {"v2", "v1"}}, func(name, version string) { notified = append(notified, name+"="+version) })
	expect := func(what string, want ...string) {
		t.Helper()
		expect.DeepEqual(t, notified, want, "%s", what)
		notified = nil
	}
	kind.Set(definition("a", "True", "v1"))
	expect("nothing is told before all are known")
	kind.Retain(list("b"))
	expect("none is there", "a=")
	kind.Set(definition("a", "False", "v1"))
	expect("not established")
	kind.Set(definition("a", "True", "v1"))
	expect("it comes", "a=v1")
	kind.Set(definition("a", "True", "v1"))
	expect("nothing is new")
	kind.Set(definition("a", "True", "v1", "v2"))
	expect("a better version", "a=v2")
	kind.Undecodable("", "a", errors.New("no number"))
	kind.Set(definition("a", ""))
	expect("it cannot be read")
	kind.Remove("", "a")
	expect("it goes", "a=")
	kind.Set(definition("a", "True", "v1"))
	kind.Retain(list("a"))
	expect("it is back after a list", "a=v1")
	kind.Retain(list())
	expect("it is not in the list", "a=")
	kind.Set(definition("other", "True", "v1"))
	expect("another one")
}
