package simulation

import (
	"fmt"
	"strings"

	"github.com/espalier-project/espalier/test/fake"
)

// excuses are what the oracle did not judge in the end, of one run or of many.
type excuses struct {
	runs int
	// leftovers are runs in which it was not judged what is ours and wanted by nobody, lax those in which some requests were allowed at rest, and contested
	// and fought those in which some object still was.
	leftovers, lax, contested, fought int
	// managedResources are those that somebody looked after in the end, whole those of them that were judged in every respect.
	managedResources, whole int
}

func (e *excuses) add(o excuses) {
	e.runs += o.runs
	e.leftovers += o.leftovers
	e.lax += o.lax
	e.contested += o.contested
	e.fought += o.fought
	e.managedResources += o.managedResources
	e.whole += o.whole
}

// excuseLimits are the shares of runs, and of ManagedResources, that may be excused, in percent.
var excuseLimits = struct{ leftovers, lax, parts float64 }{leftovers: 25, lax: 30, parts: 10}

// tooMany names the shares that are above their limit; "" if none is.
func (e *excuses) tooMany() string {
	var names []string
	for _, share := range []struct {
		name      string
		is, limit float64
	}{
		{"runs whose leftovers were not judged", percent(e.leftovers, e.runs), excuseLimits.leftovers},
		{"runs in which some requests were allowed at rest", percent(e.lax, e.runs), excuseLimits.lax},
		{"ManagedResources that were judged in part", percent(e.managedResources-e.whole, e.managedResources), excuseLimits.parts},
	} {
		if share.is > share.limit {
			names = append(names, fmt.Sprintf("%s: %.1f %%, at most %.0f %%", share.name, share.is, share.limit))
		}
	}
	return strings.Join(names, "; ")
}

func (e *excuses) String() string {
	return fmt.Sprintf("leftovers not judged in %.1f %% of the runs, no request allowed at rest in %.1f %%, whole ManagedResources judged %.1f %%, objects contested in %.1f %%, fought over in %.1f %%",
		percent(e.leftovers, e.runs), 100-percent(e.lax, e.runs), percent(e.whole, e.managedResources), percent(e.contested, e.runs), percent(e.fought, e.runs))
}

func percent(part, whole int) float64 {
	if whole == 0 {
		return 0
	}
	return 100 * float64(part) / float64(whole)
}

// ask is what a request is about; a list has no name.
type ask struct {
	cluster string
	key     fake.Key
}

// asksForRevision reports whether a request asks for the present revision only, as one does before a watch is resumed (GR-7).
func asksForRevision(r *fake.Request) bool {
	return r.Verb == "list" && r.Query.Get("limit") == "1"
}

func askOf(cluster string, r *fake.Request) ask {
	key := r.Key()
	if r.Verb == "create" {
		key.Name = fake.Text(decode(string(r.Body)), "metadata", "name")
	}
	return ask{cluster, key}
}
