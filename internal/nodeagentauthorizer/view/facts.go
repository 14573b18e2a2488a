package view

import (
	"fmt"
	"maps"
	"time"

	"github.com/espalier-project/espalier/internal/nodeagentauthorizer/agent"
	"github.com/espalier-project/espalier/internal/reflector"
)

const (
	// pause is the time after which a shoot that exceeds its limits is read anew.
	pause = time.Minute
	// bytesPerPage is the limit, for each page that a list may have, of the facts about a shoot: 260 bytes for each
	// object.
	bytesPerPage = 128 << 10
	// factBytes is the size of a fact without its strings.
	factBytes = 96
)

// facts are a few strings of each object of a kind.
type facts[K comparable, W any] struct {
	known map[K]W
	// bytes is the size of all facts, and of computes the size of the strings of one.
	bytes int
	of    func(K, W) int
}

func factsOf[K comparable, W any](of func(K, W) int) facts[K, W] {
	return facts[K, W]{known: map[K]W{}, of: of}
}

func (f *facts[K, W]) set(key K, word W) {
	f.remove(key)
	f.known[key] = word
	f.bytes += factBytes + f.of(key, word)
}

func (f *facts[K, W]) remove(key K) {
	if word, found := f.known[key]; found {
		f.bytes -= factBytes + f.of(key, word)
		delete(f.known, key)
	}
}

// retain removes the facts about missing objects.
func (f *facts[K, W]) retain(isThere func(K) bool) {
	for key := range maps.Keys(f.known) {
		if !isThere(key) {
			f.remove(key)
		}
	}
}

// retain removes missing objects from facts that are indexed by name alone.
func retain[W any](f *facts[string, W], namespace string) func(reflector.Names) {
	return func(names reflector.Names) { f.retain(func(name string) bool { return names.Has(namespace, name) }) }
}

// forget removes all facts.
func (v *View) forget() {
	text := func(key, value string) int { return len(key) + len(value) }
	v.machines = factsOf(func(name string, m agent.Machine) int { return len(name) + len(m.Node) + len(m.Secret) })
	v.nodes = factsOf(func(name string, n agent.Node) int {
		return len(name) + len(n.UID) + len(n.Hostname) + len(n.Pool) + len(n.FirstSecret) + len(n.Secret)
	})
	v.pods = factsOf(func(pod podKey, node string) int { return len(pod.namespace) + len(pod.name) + len(node) })
	v.requests = factsOf(text)
	v.configurations = factsOf(func(name string, c configuration) int {
		bytes := len(name) + len(c.pool)
		for _, reference := range c.references {
			bytes += factBytes + len(reference.Secret)
			if reference.HostName != nil {
				bytes += len(*reference.HostName)
			}
		}
		return bytes
	})
	v.names = map[string]string{}
}

// checkSize compares the facts about the target with their limit.
func (v *View) checkSize(kind string) {
	if v.bounds == nil {
		return
	}
	limit := v.bounds.Pages * bytesPerPage
	if v.nodes.bytes+v.pods.bytes+v.requests.bytes+v.configurations.bytes > limit {
		v.exceedLocked(kind, fmt.Errorf("the facts about the shoot take more than %d MiB", limit>>20))
	}
}

// exceed removes all facts about a shoot that exceeds its limits, and ends the view.
func (v *View) exceed(kind string, reason error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.exceedLocked(kind, reason)
}

func (v *View) exceedLocked(kind string, reason error) {
	if v.exceeded != nil {
		return
	}
	v.exceeded = fmt.Errorf("the shoot exceeds its limits (%s): %w", kind, reason)
	v.forget()
	close(v.over)
}

// isOver returns 1 if the shoot exceeds its limits, else 0.
func (v *View) isOver() float64 {
	select {
	case <-v.over:
		return 1
	default:
		return 0
	}
}
