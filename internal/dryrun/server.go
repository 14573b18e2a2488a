package dryrun

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"
)

// Write is a write that was not sent. It has no content, because an object may be a Secret.
type Write struct {
	Cluster     string `json:"cluster"`
	Verb        string `json:"verb"`
	Group       string `json:"group,omitempty"`
	Resource    string `json:"resource"`
	Subresource string `json:"subresource,omitempty"`
	Namespace   string `json:"namespace,omitempty"`
	Name        string `json:"name"`
	// Fields are the paths of the changes by an update or a patch; an update without any changes nothing.
	Fields []string `json:"fields,omitempty"`
	// Controller is the controller that would write the object. For is the object that it reconciles, if that is
	// another one.
	Controller string `json:"controller,omitempty"`
	For        string `json:"for,omitempty"`
}

// object is an API object, decoded from JSON.
type object = map[string]any

// entry overlays an object of the API server.
type entry struct {
	// object is nil if the object was deleted; before is its content before the last write.
	object, before object
	// base is the object's version in the API server, "" if it has none. The entry ends when the API server has
	// another version.
	base string
}

// Server is an API server in the state in which the process would have left it.
type Server struct {
	cluster string

	mu      sync.Mutex
	entries map[collection]map[key]entry
	feeds   map[*feed]struct{}
	// highest is the highest version that was handed out.
	highest uint64
	writes  []Write
	places  map[string]int
	// troubles are the errors of reads, until the reads succeed.
	troubles map[string]error
	accepted int
	activity Activity
}

// Activity counts requests and writes.
type Activity struct {
	// Begun counts requests; Open counts those under way, except for watches.
	Begun, Open int
	Writes      int
}

// New returns a server for a cluster. Its writes have the name of the cluster.
func New(cluster string) *Server {
	return &Server{
		cluster: cluster, entries: map[collection]map[key]entry{}, feeds: map[*feed]struct{}{}, places: map[string]int{}, troubles: map[string]error{},
	}
}

// Wrap returns a transport that sends only GET requests over another one.
func (s *Server) Wrap(next http.RoundTripper) http.RoundTripper {
	return &transport{Server: s, next: next}
}

// Writes returns the writes that were not sent, each write of an object once.
func (s *Server) Writes() []Write {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.writes)
}

// Troubles returns an error for each read that failed: without its result the writes are unknown.
func (s *Server) Troubles() []error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []error
	for _, name := range slices.Sorted(maps.Keys(s.troubles)) {
		all = append(all, fmt.Errorf("%s cluster: %s: %w", s.cluster, name, s.troubles[name]))
	}
	return all
}

// Assumed returns the number of tokens that were assumed to be valid, because a TokenReview would be a write.
func (s *Server) Assumed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.accepted
}

// Activity returns the counts until now.
func (s *Server) Activity() Activity {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.activity
	now.Writes = len(s.writes)
	return now
}

func (s *Server) begin() (end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.activity.Begun++
	s.activity.Open++
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.activity.Open--
	})
}

// trouble records the result of a read; nil forgets a former error.
func (s *Server) trouble(q *request, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		delete(s.troubles, q.String())
		return
	}
	s.troubles[q.String()] = err
}

// has reports whether a collection has overlays.
func (s *Server) has(c collection) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.entries[c]) > 0
}

// overLocked returns the overlay of an object, given the version that the API server has of it, "" if it has none.
func (s *Server) overLocked(k key, version string) (object, bool) {
	found, is := s.entries[k.collection][k]
	late := version != "" && number(version) < number(found.base) // An event of a watch that lags.
	if is && found.base != version && !late {
		delete(s.entries[k.collection], k) // Another client has written it since.
		return nil, false
	}
	return found.object, is
}

// current returns an object with its overlay. live is the API server's object, nil if it has none.
func (s *Server) current(k key, live object) object {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.currentLocked(k, live)
}

func (s *Server) currentLocked(k key, live object) object {
	if over, found := s.overLocked(k, versionOf(live)); found {
		return over
	}
	return live
}

// putLocked overlays an object of the API server, with nil if it is deleted, and notifies the watches.
func (s *Server) putLocked(k key, base string, before, after object) {
	if s.entries[k.collection] == nil {
		s.entries[k.collection] = map[key]entry{}
	}
	s.entries[k.collection][k] = entry{after, before, base}
	for f := range s.feeds {
		if f.of == k.collection {
			f.add(before, after)
		}
	}
}

// nextLocked returns a version above another one.
func (s *Server) nextLocked(version string) string {
	s.highest = max(s.highest, number(version)) + 1
	return strconv.FormatUint(s.highest, 10)
}

// recordLocked records a write; another write of the same object adds its fields.
func (s *Server) recordLocked(w Write) {
	w.Cluster = s.cluster
	name := fmt.Sprint(w.Verb, " ", w.Resource, ".", w.Group, "/", w.Subresource, " ", w.Namespace, "/", w.Name)
	if at, found := s.places[name]; found {
		known := &s.writes[at]
		known.Fields = slices.Compact(slices.Sorted(slices.Values(slices.Concat(known.Fields, w.Fields))))
		return
	}
	s.places[name] = len(s.writes)
	s.writes = append(s.writes, w)
}

// Compare sorts writes by cluster, object and verb.
func Compare(a, b Write) int {
	return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.For, b.For), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource),
		cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Subresource, b.Subresource), cmp.Compare(a.Verb, b.Verb))
}

func number(version string) uint64 {
	n, _ := strconv.ParseUint(version, 10, 64) // Zero if it is not a number.
	return n
}
