package kubectl

import (
	"maps"
	"slices"
	"sync"

	"github.com/espalier-project/espalier/internal/managedresource/schema"
)

// atOnce is the number of concurrent requests: enough to hide the latency of the API server, and fewer than its
// fairness gives one user.
const atOnce = 16

// parallel calls do with each item, at most atOnce and limit at a time, and returns when all are done.
func parallel[T any](limit int, items []T, do func(T)) {
	var group sync.WaitGroup
	turns := make(chan struct{}, max(1, min(limit, atOnce)))
	for _, item := range items {
		turns <- struct{}{}
		group.Go(func() {
			defer func() { <-turns }()
			do(item)
		})
	}
	group.Wait()
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// isCustom reports whether a group is not one of Kubernetes' own.
func isCustom(group string) bool { return schema.IsCustom(group) }
