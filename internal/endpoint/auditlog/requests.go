package auditlog

import (
	"hash/maphash"
	"time"
)

// startedLimit bounds the requests in progress, to 32 MiB: a thousand seeds have 50,000 watches at a time.
const startedLimit = 1 << 20

// lasting is the minimum duration of a long request; shorter ones race with every write.
const lasting = time.Second

// Requests finds the event of each request at which its decision counts: ResponseStarted of a long one, such as a
// watch, if the log has that stage, otherwise the last event. So the decision uses the facts at the beginning of the
// request.
type Requests struct {
	seed    maphash.Seed
	started map[uint64]struct{}
	// written is the end of the last write.
	written time.Time
}

// NewRequests returns a Requests without requests in progress.
func NewRequests() *Requests {
	return &Requests{seed: maphash.MakeSeed(), started: map[uint64]struct{}{}}
}

// Counts reports whether the decision counts at this event. It is called once for each event of a client.
func (r *Requests) Counts(e *Event) bool {
	// A client can choose the ID, but not the time.
	key := maphash.Comparable(r.seed, [4]string{e.ID, e.Received, e.User, e.RequestURI})
	_, counted := r.started[key]
	if e.Stage != responseStarted {
		delete(r.started, key)
		return !counted
	}
	if counted || e.ID == "" || len(r.started) >= startedLimit {
		return false // It counts at its end.
	}
	r.started[key] = struct{}{}
	return true
}

// Wrote records the end of a write.
func (r *Requests) Wrote(e *Event) {
	if at := timeOf(e.Reached); at.After(r.written) {
		r.written = at
	}
}

// Overtaken reports whether a long request began before the end of the last write, so that the facts of its decision
// are lost.
func (r *Requests) Overtaken(e *Event) bool {
	began := timeOf(e.Received)
	return timeOf(e.Reached).Sub(began) >= lasting && began.Before(r.written)
}

func timeOf(text string) time.Time {
	at, _ := time.Parse(time.RFC3339Nano, text)
	return at
}

const responseStarted = "ResponseStarted"

// Answered reports whether the event has the response to the request: it is over, or its response began.
func (e *Event) Answered() bool { return e.Over() || e.Stage == responseStarted }

// Over reports whether the request is over.
func (e *Event) Over() bool { return e.Stage == "ResponseComplete" || e.Stage == "Panic" }
