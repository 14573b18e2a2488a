package targets

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/pager"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/source"
)

// Enumerated is a target of a list that is read once, by a process that does not hold targets.
type Enumerated struct {
	// Name is the namespace, or the name of the entry in the folder of targets.
	Name    string
	resolve func(context.Context) (string, *credentials, error)
}

// Resolve reads the way to the target, and the configuration for it.
func (e *Enumerated) Resolve(ctx context.Context,
	common *config.ResourceManagerConfiguration) (*rest.Config, *config.ResourceManagerConfiguration, error) {
	namespace, found, err := e.resolve(ctx)
	if err != nil {
		return nil, nil, err
	}
	found.config.BearerToken = found.token
	return found.config, common.For(namespace, found.overrides), nil
}

// Enumerate lists the targets of a configuration, sorted by name. Of the options it needs Config, Source, Load, Clock
// and Log.
func Enumerate(ctx context.Context, o Options) ([]Enumerated, error) {
	t := &Targets{Options: o, Secrets: source.NewSecrets(o.Source.CoreV1(), nil, o.Clock, o.Log)}
	if o.Config.Targets.NamespaceSelector == nil {
		return t.enumerateEntries()
	}
	selector, err := metav1.LabelSelectorAsSelector(o.Config.Targets.NamespaceSelector)
	if err != nil {
		return nil, err
	}
	namespaces := pager.New(pager.SimplePageFunc(func(options metav1.ListOptions) (runtime.Object, error) {
		return o.Source.CoreV1().Namespaces().List(ctx, options)
	}))
	var all []Enumerated
	err = namespaces.EachListItem(ctx, metav1.ListOptions{LabelSelector: selector.String()},
		func(object runtime.Object) error {
			name := object.(*corev1.Namespace).Name
			resolve := t.fromSecrets(name)
			all = append(all, Enumerated{name, func(ctx context.Context) (string, *credentials, error) {
				found, err := resolve(ctx)
				return name, found, err
			}})
			return nil
		})
	if err != nil {
		return nil, fmt.Errorf("listing namespaces: %w", err)
	}
	return all, nil
}

func (t *Targets) enumerateEntries() ([]Enumerated, error) {
	present, err := t.entries()
	if err != nil {
		return nil, err
	}
	var all []Enumerated
	for _, name := range slices.Sorted(maps.Keys(present)) {
		all = append(all, Enumerated{name, func(ctx context.Context) (string, *credentials, error) {
			namespace, resolve, err := t.fromEntry(present[name])
			if err != nil {
				return "", nil, err
			}
			found, err := resolve(ctx)
			return namespace, found, err
		}})
	}
	return all, nil
}
