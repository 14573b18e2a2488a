package simulation

import (
	"context"
	"errors"
	"hash/fnv"
	"net/http"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-project/espalier/test/fake"
)

// network is the way of one instance to one cluster. The delay of a request follows from the seed, from what is requested
// and from how often it was before, so that it is the same in every repetition.
type network struct {
	world    *world
	instance *instance
	cluster  string
}

var (
	errReset   = errors.New("read: connection reset by peer")
	errRefused = errors.New("dial: connection refused")
	errGone    = errors.New("the process is gone")
)

// Carry implements fake.Network.
func (n *network) Carry(from *http.Request, r *fake.Request, do func() *http.Response) (*http.Response, error) {
	w := n.world
	if n.instance.lost.Load() {
		return nil, errGone
	}
	chance := w.chance(n.instance.name, n.cluster, r.String())
	fault := w.meet(n, r)
	if fault != "" {
		w.meets("fault " + n.cluster + " " + fault)
	}
	before, after := w.delays(chance)
	if r.Verb == "discovery" {
		// The libraries hold a mutex meanwhile, and a bubble's time does not pass for whoever waits for a mutex.
		before, after = 0, 0
		// The client waits for when a 429 says to come again, and tries again after a reset. In the world of controllers several wait for it.
		if fault == "429" || w.heard != nil && (fault == "lost" || fault == "reset") {
			fault = "500"
		}
	}
	if fault == "slow" && r.Verb != "discovery" {
		before += 4 * time.Second
	}
	if err := sleep(from.Context(), before); err != nil || n.instance.lost.Load() {
		// Messages on the way may still arrive.
		if r.Writes() && chance%3 == 0 {
			w.tracef("%s %s %s: arrives although nobody waits for it", n.instance.name, n.cluster, r)
			do()
		}
		return nil, errors.Join(errGone, err)
	}
	if w.beside != nil {
		w.beside(n, r, false)
	}
	response, err := n.answer(from, r, fault, do)
	if w.beside != nil {
		w.beside(n, r, true)
	}
	if w.heard != nil {
		w.heard(n, r, response != nil && response.StatusCode < http.StatusBadRequest)
	}
	if response != nil && r.Verb != "watch" {
		w.tracef("%s %s %s: %d%s", n.instance.name, n.cluster, r, response.StatusCode, suffix(fault))
	} else {
		w.tracef("%s %s %s%s", n.instance.name, n.cluster, r, suffix(fault))
	}
	if err != nil {
		return nil, err
	}
	if err := sleep(from.Context(), after); err != nil || n.instance.lost.Load() {
		response.Body.Close() //nolint:errcheck // it is in memory
		return nil, errors.Join(errGone, err)
	}
	return response, nil
}

func suffix(fault string) string {
	if fault == "" {
		return ""
	}
	return " (" + fault + ")"
}

// answer carries out a request that met a fault, or none.
func (n *network) answer(from *http.Request, r *fake.Request, fault string, do func() *http.Response) (*http.Response, error) {
	w := n.world
	if w.isDown(n.cluster) {
		return nil, errRefused
	}
	resource := schema.GroupResource{Group: r.Group, Resource: r.Resource}
	if w.isDenied(n.cluster, r) {
		return fake.Refusal(from, apierrors.NewForbidden(resource, r.Name, errors.New("it is denied for a while")).Status()), nil
	}
	if w.refuses(n.cluster, r) {
		return fake.Refusal(from, apierrors.NewForbidden(resource, r.Name, errors.New("somebody protects it")).Status()), nil
	}
	switch fault {
	case "500":
		return fake.Refusal(from, apierrors.NewInternalError(errors.New("simulated")).Status()), nil
	case "429":
		return fake.Refusal(from, apierrors.NewTooManyRequests("simulated", 1).Status()), nil
	case "504":
		return fake.Refusal(from, apierrors.NewTimeoutError("simulated", 0).Status()), nil
	case "504-done":
		do()
		w.untold(n.cluster, r)
		return fake.Refusal(from, apierrors.NewTimeoutError("simulated", 0).Status()), nil
	case "409":
		if r.Verb == "update" || r.Verb == "patch" {
			return fake.Refusal(from, apierrors.NewConflict(resource, r.Name, errors.New("simulated")).Status()), nil
		}
	case "reset":
		return nil, errReset
	case "meddle", "meddle-delete":
		response := do()
		w.meddler(n.cluster, r, fault == "meddle-delete")
		return response, nil
	case "lost":
		do()
		w.untold(n.cluster, r)
		return nil, errReset
	case "crash":
		w.crash(n.instance)
		return nil, errGone
	case "crash-done":
		do()
		w.crash(n.instance)
		return nil, errGone
	}
	return do(), nil
}

// Delay implements fake.Network.
func (n *network) Delay(r *fake.Request) time.Duration {
	w := n.world
	delay, _ := w.delays(w.chance(n.instance.name, n.cluster, "event of "+r.String()))
	return max(delay, w.stalledFor(n.cluster, r.Resource))
}

func sleep(ctx context.Context, d time.Duration) error {
	if d == 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		<-timer.C // It is on its way for as long as it takes.
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// chance is a number that stands for the n-th time that something happens.
func (w *world) chance(parts ...string) uint64 {
	name := "[" + strings.Join(parts, " ") + "]"
	w.chances.Lock()
	w.happened[name]++
	count := w.happened[name]
	w.chances.Unlock()
	h := fnv.New64a()
	text := strconv.AppendInt(append(strconv.AppendUint(nil, w.scenario.Seed, 10), ' '), int64(count), 10)
	_, _ = h.Write(append(append(text, ' '), name...))
	x := h.Sum64()
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// delays are those of a request and of its answer: mostly a millisecond or two, sometimes much more, never the same twice.
func (w *world) delays(chance uint64) (time.Duration, time.Duration) {
	one := func(x uint64) time.Duration {
		d := 200*time.Microsecond + time.Duration(x%2_000_003)*time.Nanosecond
		switch {
		case w.scenario.Pace > 0 && x>>24%10 == 0:
			d *= late
		case w.scenario.Pace > 1 && x>>24%40 == 1:
			d *= veryLate
		}
		return d
	}
	return one(chance & 0xffffffff), one(chance >> 32)
}

// late and veryLate are by how much what takes longer than usual takes longer.
const late, veryLate = 40, 1000

// newsWithin is the longest time until a watch reports a change.
func (w *world) newsWithin() time.Duration {
	return w.lag + 2203*time.Microsecond*[]time.Duration{1, late, veryLate}[w.scenario.Pace]
}
