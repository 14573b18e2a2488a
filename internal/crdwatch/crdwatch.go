// Package crdwatch reports which kinds of CustomResourceDefinitions are served, now and later. It does not poll: one
// watch reports all definitions, and only the served versions of the wanted ones are kept.
package crdwatch

import (
	"context"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"

	"github.com/espalier-project/espalier/internal/cluster"
	"github.com/espalier-project/espalier/internal/externalapi/apiextensions"
	"github.com/espalier-project/espalier/internal/reflector"
)

// Notify receives the version in which the kind of a definition is served, empty if the kind is not served. It is called for each definition once all
// definitions are known, and at each change; never for two definitions at once.
type Notify func(definition, version string)

// Follow follows the definitions until the context ends. wanted has the acceptable versions of each definition by its
// name, the best first.
func Follow(ctx context.Context, connection cluster.Connection, wanted map[string][]string, notify Notify, c clock.WithTicker, log logr.Logger) error {
	client, err := reflector.NewClient(connection.REST, connection.HTTP, apiextensions.CustomResourceDefinitions.GroupVersion())
	if err != nil {
		return err
	}
	reflector.New(kindOf(wanted, notify), client, c, log).Start(ctx)
	return nil
}

// kindOf returns the source of changes. Its functions are called one after another, by the watch.
func kindOf(wanted map[string][]string, notify Notify) reflector.Kind {
	served, unreadable, complete := map[string]string{}, map[string]bool{}, false
	// version returns the served version of a definition. For one that cannot be decoded, it returns the last known
	// version.
	version := func(definition *apiextensions.CustomResourceDefinition) string {
		if unreadable[definition.Name] {
			delete(unreadable, definition.Name)
			return served[definition.Name]
		}
		return definition.Serves(wanted[definition.Name]...)
	}
	set := func(definition, version string) {
		if wanted[definition] == nil || complete && served[definition] == version {
			return
		}
		served[definition] = version
		if complete {
			notify(definition, version)
		}
	}
	return reflector.Kind{
		Name: "CustomResourceDefinition", Resource: apiextensions.CustomResourceDefinitions,
		New: func() runtime.Object { return &apiextensions.CustomResourceDefinition{} },
		Set: func(object runtime.Object) {
			definition := object.(*apiextensions.CustomResourceDefinition)
			set(definition.Name, version(definition))
		},
		Remove:      func(_, name string) { set(name, "") },
		Undecodable: func(_, name string, _ error) { unreadable[name] = true },
		Retain: func(there reflector.Names) {
			for name := range wanted {
				if !there.Has("", name) {
					set(name, "")
				}
			}
			if complete {
				return
			}
			complete = true
			for name := range wanted {
				notify(name, served[name])
			}
		},
	}
}
