package admissioncontroller

import (
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
)

// patience is how long the first requests for what is not kept yet wait for it; kube-apiserver waits ten seconds.
const patience = 5 * time.Second

// asked has what webhooks keep of the garden begin with the first of their requests: all Shoots are as much as the graph itself, and a
// garden that does not register these webhooks pays nothing for them.
type asked struct {
	once  atomic.Bool
	clock clock.Clock
}

// Asked says whether there was a request.
func (a *asked) Asked() bool { return a.once.Load() }

// ready returns what a webhook waits for: that its caches are complete. A request before that waits a little.
func (a *asked) ready(synced func() bool) func() bool {
	return func() bool {
		a.once.Store(true)
		for begin := a.clock.Now(); !synced(); {
			if a.clock.Since(begin) >= patience {
				return false
			}
			<-a.clock.After(soon)
		}
		return true
	}
}
