package kubectl

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// completeWithin limits the time that a shell waits for names: longer than an API server takes, and shorter than a
// user's patience.
const completeWithin = 3 * time.Second

// complete offers the words of the clusters with a prefix; none if the clusters do not respond.
func (c *connection) complete(begun string, words func(context.Context, *clusters) []string) []string {
	ctx, cancel := context.WithTimeout(context.Background(), completeWithin)
	defer cancel()
	found, err := c.open(ctx)
	if err != nil {
		return nil
	}
	return begin(words(ctx, found), begun)
}

// completeObject offers kinds, then names.
func (c *connection) completeObject(_ *pflag.FlagSet, arguments []string, begun string) []string {
	return c.complete(begun, func(ctx context.Context, found *clusters) []string {
		switch len(arguments) {
		case 0:
			return found.target.kindNames(ctx)
		case 1:
			if k, err := found.target.resolve(ctx, arguments[0]); err == nil {
				return found.target.names(ctx, k.Resource, k.within(found.targetNamespace))
			}
		}
		return nil
	})
}

// kindNames returns the resources of a cluster with their groups.
func (r *reader) kindNames(ctx context.Context) []string {
	lists, _ := r.discovery.ServerPreferredResourcesWithContext(ctx)
	var names []string
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list"}}, lists) {
		of, _ := schema.ParseGroupVersion(list.GroupVersion)
		for i := range list.APIResources {
			names = append(names, of.WithResource(list.APIResources[i].Name).GroupResource().String())
		}
	}
	slices.Sort(names)
	return names
}

// names returns the names of the first page of objects.
func (r *reader) names(ctx context.Context, resource schema.GroupVersionResource, namespace string) []string {
	list, err := r.metadata.Resource(resource).Namespace(namespace).List(ctx, metav1.ListOptions{Limit: page})
	if err != nil {
		return nil
	}
	names := make([]string, len(list.Items))
	for i := range list.Items {
		names[i] = list.Items[i].GetName()
	}
	return names
}

func (c *connection) completeNamespace(_ *pflag.FlagSet, begun string) []string {
	return c.complete(begun, func(ctx context.Context, found *clusters) []string {
		return found.source.names(ctx, schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, "")
	})
}

func (c *connection) completeContext(_ *pflag.FlagSet, begun string) []string {
	return c.source.contexts(begun)
}

func (c *connection) completeTargetContext(_ *pflag.FlagSet, begun string) []string {
	to := access{kubeconfig: cmp.Or(c.target.kubeconfig, c.source.kubeconfig)}
	return to.contexts(begun)
}

func (a *access) contexts(begun string) []string {
	config, err := a.rules().Load()
	if err != nil {
		return nil
	}
	return begin(sortedKeys(config.Contexts), begun)
}

func completeOutput(_ *pflag.FlagSet, begun string) []string { return begin(formats, begun) }

// begin returns the words with a prefix.
func begin(words []string, begun string) []string {
	return slices.DeleteFunc(slices.Clone(words), func(word string) bool { return !strings.HasPrefix(word, begun) })
}

// completeManagedResource offers the ManagedResources of the namespace, with the kind before them if the user has
// typed it.
func (c *connection) completeManagedResource(_ *pflag.FlagSet, arguments []string, begun string) []string {
	if len(arguments) > 1 || len(arguments) == 1 && !isManagedResource(arguments[0]) {
		return nil
	}
	before := ""
	if kind, _, found := strings.Cut(begun, "/"); found && isManagedResource(kind) {
		before = kind + "/"
	}
	return c.complete(begun, func(ctx context.Context, found *clusters) []string {
		names := found.source.names(ctx, managedResources, found.namespace)
		for i := range names {
			names[i] = before + names[i]
		}
		return names
	})
}

// completeFlags completes the flags of a connection, and the additional flags of a verb.
func (c *connection) completeFlags(more map[string]func(*pflag.FlagSet, string) []string) map[string]func(*pflag.FlagSet, string) []string {
	all := map[string]func(*pflag.FlagSet, string) []string{
		"namespace": c.completeNamespace, "context": c.completeContext, "target-context": c.completeTargetContext,
	}
	maps.Copy(all, more)
	return all
}

// outputOnly completes the flags of a verb whose only additional flag is -o.
var outputOnly = map[string]func(*pflag.FlagSet, string) []string{"output": completeOutput}
