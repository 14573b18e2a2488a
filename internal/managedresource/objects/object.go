package objects

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-project/espalier/internal/managedresource/healthcheck"
)

// Revision is what was on record of an object at a moment, as far as it tells whether anything was reported since.
type Revision struct {
	resourceVersion string
	uid             types.UID
	state           state
	era, asked      uint16
}

// Era is which of the times it was of in which what is known was not called into question.
func (m Revision) Era() uint16 { return m.era }

// Object is the answer of Lookup.
type Object struct {
	// Tracked is true if a ManagedResource has the object.
	Tracked bool
	// Known is true once anybody has looked; Present if it was there then.
	Known, Present bool
	// Unlisted is true if it is not present as a list that goes by the label did not have it: it may be there without.
	MissingFromList bool
	// Unwatched is true if it is present as a request found it, though lists or watches had said that it is not there: none need tell what happens to it.
	UnlabelledLive bool
	// OutOfSync is true if it is about to be looked at; InSync if it was found as it should be and nothing was seen since.
	OutOfSync, InSync bool
	// Again is true if it is in doubt only as the API server kept a part of what was written, and may keep more by now.
	RetryPartial bool
	// Terminating is true if its deletion was accepted and waits for something. Its end is told as drift.
	Terminating     bool
	UID             types.UID
	ResourceVersion string
	// Judged is true if the object was seen in the version that was asked for, by whoever tells of its health; Verdict is what it said then.
	Judged  bool
	Verdict healthcheck.Verdict
	// Revision is for answers to requests that are sent now.
	Revision Revision
}

// GoneSince says whether the object was seen to be gone later than at a resource version. An object that left the filter of a watch looks the
// same, so that it must not be concluded of one whose end takes time.
func (f Object) GoneSince(resourceVersion string) bool {
	return f.Known && !f.Present && newer(f.ResourceVersion, resourceVersion)
}

// Get returns what is known of an object, but for what it says of itself.
func (l *Tracker) Get(key Key) Object {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r := l.findLocked(key); r != nil {
		return r.finding()
	}
	return Object{}
}

// GetIn is Lookup with what the object says of itself in the version of a reference: another one may say something else (MRH-8).
func (l *Tracker) GetIn(ref Ref) Object {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.findLocked(ref.Key)
	if r == nil {
		return Object{}
	}
	f := r.finding()
	f.Verdict, f.Judged = r.verdictIn(versionOf(ref))
	return f
}

func (r *record) finding() Object {
	return Object{
		Tracked: true, Known: r.state != unseen, Present: r.state == present, MissingFromList: r.missingFromList, UnlabelledLive: r.unlabelledLive, OutOfSync: r.certainty == suspect, InSync: r.certainty == verified, RetryPartial: r.retryPartial,
		Terminating: r.terminating, UID: r.uid, ResourceVersion: r.resourceVersion, Revision: r.mark(),
	}
}
