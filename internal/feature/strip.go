package feature

// Strip removes the fields that a reader does not need from objects before they are cached. Readers with the same
// Strip (==) need the same fields; for readers with different Strips, all fields that one of them needs are kept.
type Strip interface {
	// Strip may change the object, and returns the kept part.
	Strip(object any) (any, error)
}

// Stripping returns a Strip for objects of one type. It ignores objects of other types. Each call returns a different
// Strip, so readers that need the same one share a variable.
func Stripping[T any](remove func(*T)) Strip { return &stripping[T]{remove} }

type stripping[T any] struct{ remove func(*T) }

// Strip implements Strip.
func (s *stripping[T]) Strip(object any) (any, error) {
	if typed, ok := object.(*T); ok {
		s.remove(typed)
	}
	return object, nil
}
