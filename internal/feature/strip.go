package feature

// Strip removes the fields that a reader does not need from objects before they are kept. Readers with the same Strip (==) need the same fields;
// for readers with different Strips, every field is kept that one of them needs.
type Strip interface {
	// Strip may change the object, and returns the kept part.
	Strip(object any) (any, error)
}

// Stripping returns a Strip that removes parts of objects of one type, and leaves others as they are. It equals no
// other one: readers that share it have it from a variable.
func Stripping[T any](remove func(*T)) Strip { return &stripping[T]{remove} }

type stripping[T any] struct{ remove func(*T) }

// Strip implements Strip.
func (s *stripping[T]) Strip(object any) (any, error) {
	if typed, ok := object.(*T); ok {
		s.remove(typed)
	}
	return object, nil
}
