package fake

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Key names a stored object. Versions of a group share the storage.
type Key struct {
	schema.GroupResource
	Namespace, Name string
}

func (k Key) String() string {
	return strings.TrimPrefix(fmt.Sprintf("%s/%s/%s", k.GroupResource, k.Namespace, k.Name), "/")
}

// Change is one write, told to the observer under the server's lock.
type Change struct {
	// By is the name that the client gave itself.
	By   string
	Verb string
	Key  Key
	// Before and After are nil where there was or is nothing. Graceful is true for a deletion that finalizers hold up.
	Before, After Object
	Graceful      bool
}

type record struct {
	revision      int64
	key           Key
	before, after Object
	at            time.Time
}

// Server is the API server of one cluster.
type Server struct {
	mu       *sync.Mutex
	kinds    map[string]*Kind
	objects  map[Key]Object
	revision int64
	// compacted is the revision below which no event is known any more.
	compacted int64
	records   []record
	watches   map[*stream]struct{}
	uids      int
	// Cluster begins the UIDs: no two clusters have the same ones.
	Cluster int
	// encoded and discovered are answers that were given before, by what is stored and by path.
	encoded    map[uintptr]*encoded
	discovered map[string][]byte
	// QuietEnd has a watch whose client is gone end like one that is over. The library's cache of metadata leaves a goroutine behind for each
	// that ends with an error.
	QuietEnd bool
	// Loses, if it is set, returns for how long a watch of a kind that begins now loses events.
	Loses func(*Kind) time.Duration
	// behind is the state that reads get.
	behind behind
	// observe is called with every write, in order, while the lock is held.
	observe func(Change)
}

// behind is an earlier state, and until when reads get it: all reads, as of an etcd that answers with what it had before it was paused, or only reads that
// do not ask for the latest state, as of an API server whose cache lags behind another one.
type behind struct {
	revision int64
	until    time.Time
	all      bool
}

// StayBehind has reads get the present state for some time.
func (s *Server) StayBehind(lasts time.Duration, all bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.behind = behind{s.revision, time.Now().Add(lasts), all}
}

// seen is the revision whose state a read gets.
func (s *Server) seen(r *Request) int64 {
	b, asked := s.behind, r.Query.Get("resourceVersion")
	known, _ := strconv.ParseInt(asked, 10, 64)
	lags := b.all || asked != "" && known <= b.revision && r.Query.Get("resourceVersionMatch") != "Exact"
	if !lags || !time.Now().Before(b.until) || b.revision < s.compacted || b.revision > s.revision {
		return s.revision
	}
	return b.revision
}

// New returns a server that serves the kinds and has the namespaces. Servers of one world share a lock, so that an observer of
// one may read the other.
func New(mu *sync.Mutex, kinds []*Kind, observe func(Change), namespaces ...string) *Server {
	s := &Server{
		mu: mu, kinds: map[string]*Kind{}, objects: map[Key]Object{}, revision: 100, compacted: 100,
		watches: map[*stream]struct{}{}, observe: observe, encoded: map[uintptr]*encoded{}, discovered: map[string][]byte{},
	}
	s.Serve(kinds...)
	for _, namespace := range namespaces {
		o := Object{"apiVersion": "v1", "kind": "Namespace", "metadata": Object{"name": namespace}}
		s.stamp(o)
		s.put("", "create", Key{GroupResource: schema.GroupResource{Resource: "namespaces"}, Name: namespace}, nil, o)
	}
	return s
}

// stamp sets what the server sets of a new object.
func (s *Server) stamp(o Object) {
	s.uids++
	metadata := meta(o)
	metadata["uid"] = fmt.Sprintf("%08d-0000-4000-8000-%012d", s.Cluster, s.uids)
	metadata["creationTimestamp"] = time.Now().UTC().Format(time.RFC3339)
	delete(metadata, "deletionTimestamp")
	delete(metadata, "deletionGracePeriodSeconds")
	delete(metadata, "generation")
}

// put stores after, or removes the object if it is nil, and tells everybody.
func (s *Server) put(by, verb string, key Key, before, after Object) {
	s.revision++
	version := strconv.FormatInt(s.revision, 10)
	last := before
	if after != nil {
		meta(after)["resourceVersion"] = version
		s.objects[key] = after
		s.forget(before)
	} else {
		delete(s.objects, key)
		last = runtime.DeepCopyJSON(before)
		meta(last)["resourceVersion"] = version
	}
	r := record{s.revision, key, before, after, time.Now()}
	s.records = append(s.records, r)
	for w := range s.watches {
		if w.kind.groupResource() == key.GroupResource {
			w.deliver(r, last)
		}
	}
	if s.observe != nil {
		graceful := after != nil && before != nil && meta(before)["deletionTimestamp"] == nil && meta(after)["deletionTimestamp"] != nil
		s.observe(Change{By: by, Verb: verb, Key: key, Before: before, After: after, Graceful: graceful})
	}
}

// GetLocked returns an object for a look that is no request; nil if there is none. It must not be changed.
func (s *Server) GetLocked(key Key) Object { return s.objects[key] }

// AllLocked returns all objects for a look that is no request. They must not be changed.
func (s *Server) AllLocked() map[Key]Object { return s.objects }

// ServedLocked returns the kind of a resource, nil if it is not served.
func (s *Server) ServedLocked(resource schema.GroupResource) *Kind {
	for _, k := range s.kinds {
		if k.groupResource() == resource {
			return k
		}
	}
	return nil
}

// at returns the objects as they were at a revision.
func (s *Server) at(revision int64) map[Key]Object {
	if revision >= s.revision {
		return s.objects
	}
	objects := maps.Clone(s.objects)
	for _, r := range slices.Backward(s.records) {
		if r.revision <= revision {
			break
		}
		if r.before == nil {
			delete(objects, r.key)
		} else {
			objects[r.key] = r.before
		}
	}
	return objects
}

// Compact forgets all events: whoever resumes a watch from before is told that it is too old.
func (s *Server) Compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.compacted, s.records = s.revision, nil
}

// Advance lets many revisions go by and compacts them, so that no watch can go on from any revision of before, and not from one that a restore took back.
// It returns the revision that it reaches.
func (s *Server) Advance(revisions int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revision += revisions
	s.compacted, s.records = s.revision, nil
	return s.revision
}

// Snapshot is a backup of the store.
type Snapshot struct {
	objects  map[Key]Object
	revision int64
}

// Backup takes a snapshot.
func (s *Server) Backup() Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Snapshot{maps.Clone(s.objects), s.revision}
}

// Restore puts a snapshot back: resource versions turn back with it, and all watches end. As after a restore that marks
// everything as compacted, no watch can be resumed from before the revision that it returns.
func (s *Server) Restore(snapshot Snapshot) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects, s.revision, s.behind = maps.Clone(snapshot.objects), snapshot.revision+1, behind{}
	s.compacted, s.records = s.revision, nil
	for w := range s.watches {
		w.end()
	}
	return s.revision
}

// CutWatches ends the watches that match.
func (s *Server) CutWatches(match func(by string, k *Kind) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.watches {
		if match(w.by, w.kind) {
			w.end()
		}
	}
}

// Meta returns the metadata of an object.
func Meta(o Object) Object { return meta(o) }

// Text returns the value at a path as text, "" if there is none.
func Text(o Object, path ...string) string { return text(o, path...) }

func meta(o Object) Object {
	metadata, _ := o["metadata"].(map[string]any)
	if metadata == nil {
		metadata = Object{}
		o["metadata"] = metadata
	}
	return metadata
}

func text(o Object, path ...string) string {
	value, _, _ := unstructured.NestedFieldNoCopy(o, path...)
	if value == nil {
		return ""
	}
	return fmt.Sprint(value)
}

func compare(a, b string) int { return cmp.Compare(a, b) }

func compareKeys(a, b Key) int {
	return cmp.Or(compare(a.Resource, b.Resource), compare(a.Group, b.Group), compare(a.Namespace, b.Namespace), compare(a.Name, b.Name))
}
