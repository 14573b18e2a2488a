package endpoint

import (
	"errors"
	"net/http"
)

// statusError is an error with the HTTP status that belongs to it.
type statusError struct {
	code int
	error
}

func (e *statusError) Unwrap() error { return e.error }

// WithStatus gives an error the HTTP status that it is answered with; without one it is 500.
func WithStatus(code int, err error) error { return &statusError{code, err} }

// StatusOf returns the status of an error.
func StatusOf(err error) int {
	if known := (*statusError)(nil); errors.As(err, &known) {
		return known.code
	}
	return http.StatusInternalServerError
}
