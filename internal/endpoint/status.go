package endpoint

import (
	"errors"
	"net/http"
)

// statusError is an error with its HTTP status.
type statusError struct {
	code int
	error
}

func (e *statusError) Unwrap() error { return e.error }

// WithStatus sets the HTTP status of an error; without one it is 500.
func WithStatus(code int, err error) error { return &statusError{code, err} }

// StatusOf returns the status of an error.
func StatusOf(err error) int {
	if known := (*statusError)(nil); errors.As(err, &known) {
		return known.code
	}
	return http.StatusInternalServerError
}
