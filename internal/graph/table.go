package graph

import "slices"

const (
	// chunkBits is chosen so that a chunk of vertices has 64 KiB: large enough to be allocated apart from small
	// objects and aligned to cache lines, small enough for an empty graph.
	chunkBits = 10
	chunkSize = 1 << chunkBits
)

// table has records by number. It grows without moving them: nothing is copied, and never half of it is unused.
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

// len returns the number of records.
func (t *table[T]) len() int { return int(t.used) }

// pool has records that are reused.
type pool[T any] struct {
	table[T]
	free []id
}

// take returns the number of an empty record, never 0.
func (p *pool[T]) take() id {
	if n := len(p.free); n > 0 {
		number := p.free[n-1]
		p.free = p.free[:n-1]
		return number
	}
	return p.add()
}

// give returns a record to the pool.
func (p *pool[T]) give(number id) {
	var none T
	*p.at(number) = none
	p.free = append(p.free, number)
}

// shrink frees the memory that a list no longer needs.
func shrink[T any](list []T) []T {
	if cap(list) > 64 && len(list) < cap(list)/4 {
		return slices.Clip(slices.Clone(list))
	}
	return list
}
