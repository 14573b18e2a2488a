package graph

import "slices"

const (
	// chunkBits is chosen so that a chunk of vertices has 64 KiB: large enough to be kept apart from small objects and to begin at a line of
	// the caches, small enough for an empty graph.
	chunkBits = 10
	chunkSize = 1 << chunkBits
)

// table has records by number. It grows without moving them: nothing is copied, and no half of it is unused.
type table[T any] struct {
	chunks []*[chunkSize]T
	// used is the highest number.
	used id
}

// at returns the record of a number that add has returned.
func (t *table[T]) at(number id) *T { return &t.chunks[number>>chunkBits][number%chunkSize] }

// add returns the next number; the first one is 1.
func (t *table[T]) add() id {
	t.used++
	if int(t.used>>chunkBits) == len(t.chunks) {
		t.chunks = append(t.chunks, new([chunkSize]T))
	}
	return t.used
}

// len is how many records there are.
func (t *table[T]) len() int { return int(t.used) }

// list is a list in place: most have one element at most, which takes no memory of its own. No element is the zero value.
type list[T comparable] struct {
	one [1]T
	// more has all elements if there are several.
	more *[]T
}

// all returns the elements. They may be changed, and are good until the list changes.
func (l *list[T]) all() []T {
	var none T
	switch {
	case l.more != nil:
		return *l.more
	case l.one[0] == none:
		return nil
	}
	return l.one[:]
}

func (l *list[T]) insert(at int, element T) {
	all := l.all()
	switch {
	case len(all) == 0:
		l.one[0] = element
	case l.more == nil:
		several := slices.Insert(all, at, element) // There is no room in place.
		*l = list[T]{more: &several}
	default:
		*l.more = slices.Insert(all, at, element)
	}
}

func (l *list[T]) remove(at int) {
	all := l.all()
	switch len(all) {
	case 1:
		*l = list[T]{}
	case 2:
		*l = list[T]{one: [1]T{all[1-at]}}
	default:
		*l.more = shrink(slices.Delete(all, at, at+1))
	}
}

// shrink gives memory back that a list no longer needs.
func shrink[T any](list []T) []T {
	if cap(list) > 64 && len(list) < cap(list)/4 {
		return slices.Clip(slices.Clone(list))
	}
	return list
}
