package feature

// Strip removes from objects what a reader has no use for, before they are kept. Readers with the same one (==) have the same use for them;
// for readers with different ones all is kept that one of them needs.
type Strip interface {
	// Strip may change the object, and returns what is kept of it.
	Strip(object any) (any, error)
}

// Stripping returns what removes something from objects of one type, and leaves others as they are. It equals no other one: readers that
// have it in common have it from a variable.
func Stripping[T any](remove func(*T)) Strip { return &stripping[T]{remove} }

type stripping[T any] struct{ remove func(*T) }

// Strip implements Strip.
func (s *stripping[T]) Strip(object any) (any, error) {
	if typed, ok := object.(*T); ok {
		s.remove(typed)
	}
	return object, nil
}
