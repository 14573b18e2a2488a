package graph

import "hash/maphash"

type namespaceID uint32

const (
	// noNamespace marks a vertex that is free.
	noNamespace namespaceID = 1<<32 - 1
	// smallest is the number of slots of an empty table; a power of two.
	smallest = 64
)

// index finds vertices by kind, namespace and name. It is an open-addressed table of vertex numbers: the names are in the
// vertices already, a map would keep a second header of each.
type index struct {
	seed maphash.Seed
	// slots hold vertex numbers plus one; 0 is free. Linear probing, at most three quarters full.
	slots []uint32
	used  int

	namespaces map[string]namespaceID
	labels     []label
	unused     []namespaceID
}

// label is an interned namespace.
type label struct {
	text  string
	users int
}

func newIndex() index {
	x := index{seed: maphash.MakeSeed(), slots: make([]uint32, smallest), namespaces: map[string]namespaceID{}}
	x.namespaces[""] = 0
	x.labels = []label{{users: 1}}
	return x
}

func (x *index) hash(kind Kind, namespace namespaceID, name string) uint64 {
	h := maphash.String(x.seed, name)
	h ^= (uint64(namespace)<<8 | uint64(kind)) * 0x9e3779b97f4a7c15
	return h ^ h>>29
}

func (x *index) find(g *Graph, v Vertex) (id, bool) {
	namespace, found := x.namespaces[v.Namespace]
	if !found {
		return 0, false
	}
	mask := uint64(len(x.slots) - 1)
	for at := x.hash(v.Kind, namespace, v.Name) & mask; ; at = (at + 1) & mask {
		slot := x.slots[at]
		if slot == 0 {
			return 0, false
		}
		candidate := &g.vertices[slot-1]
		if candidate.namespace == namespace && candidate.kind == v.Kind && candidate.name == v.Name {
			return id(slot - 1), true
		}
	}
}

func (x *index) home(g *Graph, number id) uint64 {
	v := &g.vertices[number]
	return x.hash(v.kind, v.namespace, v.name) & uint64(len(x.slots)-1)
}

func (x *index) insert(g *Graph, number id) {
	if (x.used+1)*4 > len(x.slots)*3 {
		x.resize(g, len(x.slots)*2)
	}
	x.place(g, number)
	x.used++
}

func (x *index) place(g *Graph, number id) {
	mask := uint64(len(x.slots) - 1)
	at := x.home(g, number)
	for x.slots[at] != 0 {
		at = (at + 1) & mask
	}
	x.slots[at] = uint32(number) + 1
}

func (x *index) resize(g *Graph, size int) {
	old := x.slots
	x.slots = make([]uint32, size)
	for _, slot := range old {
		if slot != 0 {
			x.place(g, id(slot-1))
		}
	}
}

// remove closes the gap that a vertex leaves, so that no probe ends too early.
func (x *index) remove(g *Graph, number id) {
	mask := uint64(len(x.slots) - 1)
	at := x.home(g, number)
	for x.slots[at] != uint32(number)+1 {
		at = (at + 1) & mask
	}
	x.used--
	for next := (at + 1) & mask; x.slots[next] != 0; next = (next + 1) & mask {
		home := x.home(g, id(x.slots[next]-1))
		if (next-home)&mask >= (next-at)&mask {
			x.slots[at] = x.slots[next]
			at = next
		}
	}
	x.slots[at] = 0
	if len(x.slots) > smallest && x.used*8 < len(x.slots) {
		x.resize(g, len(x.slots)/2)
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
		x.labels[fresh] = label{namespace, 1}
	} else {
		fresh = namespaceID(len(x.labels))
		x.labels = append(x.labels, label{namespace, 1})
	}
	x.namespaces[namespace] = fresh
	return fresh
}

// release forgets a namespace with its last vertex (GR-6).
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
