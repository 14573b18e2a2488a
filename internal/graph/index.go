package graph

import (
	"hash/maphash"
	"math/bits"
)

type namespaceID uint32

const (
	// noNamespace marks a vertex that is free.
	noNamespace namespaceID = 1<<32 - 1
	// smallest is the number of slots of an empty table; a power of two.
	smallest = 64
)

// index finds vertices by kind, namespace and name. It is an open-addressed table of vertex numbers. The names are in
// the vertices already; a map would store a second string header for each.
type index struct {
	seed maphash.Seed
	// slots hold a vertex's number with its hash above; 0 is free. Linear probing, at most three quarters full. The
	// hash distinguishes vertices without reading them, and places a slot when the table grows.
	slots []slot
	used  int
	// long has the names that are too long for their vertices.
	long map[id]string

	namespaces map[string]namespaceID
	labels     []label
	unused     []namespaceID
}

// label is an interned namespace. It has 64 bytes, as a check reads it, too.
type label struct {
	short shortName
	users int32
	text  string
}

func labelOf(namespace string) label {
	return label{short: shorten(namespace), text: namespace, users: 1}
}

func (l *label) equals(namespace string) bool {
	return l.short.equals(namespace) || l.short.length == longName && l.text == namespace
}

type slot uint64

func slotOf(number id, hash uint32) slot { return slot(hash)<<32 | slot(number) }
func (s slot) number() id                { return id(s) }
func (s slot) hash() uint32              { return uint32(s >> 32) }

// shortName is a name that is stored in its vertex.
type shortName struct {
	// length is longName if the name is too long, and stored in index.long.
	length uint8
	text   [nameBytes]byte
}

const (
	// nameBytes fills a vertex up to 64 bytes. Names of a Shoot's objects have about thirty bytes at most.
	nameBytes = 43
	longName  = 255
)

func shorten(name string) (short shortName) {
	short.length = uint8(copy(short.text[:], name))
	if len(name) > nameBytes {
		short.length = longName
	}
	return short
}

// equals reports whether it is the given name, which must be short enough.
func (s *shortName) equals(name string) bool {
	return s.length != longName && string(s.text[:s.length]) == name
}

func newIndex() index {
	x := index{seed: maphash.MakeSeed(), slots: make([]slot, smallest), long: map[id]string{}, namespaces: map[string]namespaceID{}}
	x.namespaces[""] = 0
	x.labels = []label{labelOf("")}
	return x
}

// shorten returns the part of a vertex's name that is stored in the vertex.
func (x *index) shorten(number id, name string) shortName {
	short := shorten(name)
	if short.length == longName {
		x.long[number] = name
	}
	return short
}

// name returns a vertex's name.
func (x *index) name(number id, short *shortName) string {
	if short.length == longName {
		return x.long[number]
	}
	return string(short.text[:short.length])
}

func (x *index) hash(v Vertex) uint32 {
	h := maphash.String(x.seed, v.Name)
	h ^= bits.RotateLeft64(maphash.String(x.seed, v.Namespace), 32) + uint64(v.Kind)
	return uint32(h * 0x9e3779b97f4a7c15 >> 32)
}

func (x *index) find(g *Graph, v Vertex) (id, bool) { return x.findHashed(g, v, x.hash(v)) }

func (x *index) findHashed(g *Graph, v Vertex, hash uint32) (id, bool) {
	mask := uint32(len(x.slots) - 1)
	for at := hash & mask; ; at = (at + 1) & mask {
		s := x.slots[at]
		if s == 0 {
			return 0, false
		}
		if s.hash() != hash {
			continue
		}
		if x.equals(g, s.number(), v) {
			return s.number(), true
		}
	}
}

// equals reports whether the vertex with a number is the given one.
func (x *index) equals(g *Graph, number id, v Vertex) bool {
	candidate := g.vertices.at(number)
	return candidate.kind == v.Kind && (candidate.name.equals(v.Name) || candidate.name.length == longName && x.long[number] == v.Name) &&
		x.labels[candidate.namespace].equals(v.Namespace)
}

func (x *index) insert(number id, hash uint32) {
	if (x.used+1)*4 > len(x.slots)*3 {
		x.resize(len(x.slots) * 2)
	}
	x.place(slotOf(number, hash))
	x.used++
}

func (x *index) place(s slot) {
	mask := uint32(len(x.slots) - 1)
	at := s.hash() & mask
	for x.slots[at] != 0 {
		at = (at + 1) & mask
	}
	x.slots[at] = s
}

func (x *index) resize(size int) {
	old := x.slots
	x.slots = make([]slot, size)
	for _, s := range old {
		if s != 0 {
			x.place(s)
		}
	}
}

// remove closes the gap that a vertex leaves, so that no probe ends too early.
func (x *index) remove(v Vertex, number id) {
	mask := uint32(len(x.slots) - 1)
	hash := x.hash(v)
	at := hash & mask
	for x.slots[at] != slotOf(number, hash) {
		at = (at + 1) & mask
	}
	x.used--
	for next := (at + 1) & mask; x.slots[next] != 0; next = (next + 1) & mask {
		home := x.slots[next].hash() & mask
		if (next-home)&mask >= (next-at)&mask {
			x.slots[at] = x.slots[next]
			at = next
		}
	}
	x.slots[at] = 0
	delete(x.long, number)
	if len(x.slots) > smallest && x.used*8 < len(x.slots) {
		x.resize(len(x.slots) / 2)
	}
}

func (x *index) intern(namespace string) namespaceID {
	if known, found := x.namespaces[namespace]; found {
		x.labels[known].users++
		return known
	}
	var fresh namespaceID
	if n := len(x.unused); n > 0 {
		fresh = x.unused[n-1]
		x.unused = x.unused[:n-1]
		x.labels[fresh] = labelOf(namespace)
	} else {
		fresh = namespaceID(len(x.labels))
		x.labels = append(x.labels, labelOf(namespace))
	}
	x.namespaces[namespace] = fresh
	return fresh
}

// release removes a namespace with its last vertex (GR-6).
func (x *index) release(namespace namespaceID) {
	l := &x.labels[namespace]
	if l.users--; l.users > 0 {
		return
	}
	delete(x.namespaces, l.text)
	*l = label{}
	x.unused = append(x.unused, namespace)
}

func (x *index) namespace(number namespaceID) string { return x.labels[number].text }
