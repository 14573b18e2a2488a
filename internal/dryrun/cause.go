package dryrun

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
)

// cause is the controller and the object that a request is sent for.
type cause struct{ controller, namespace, name string }

// Tracing returns a logger that also stores which controller works on which object. controller-runtime passes it in
// the context to the requests that the controller sends.
func Tracing(log logr.Logger) logr.Logger { return log.WithSink(&sink{LogSink: log.GetSink()}) }

// sink is a log sink that remembers a cause.
type sink struct {
	logr.LogSink
	cause cause
}

// WithValues implements logr.LogSink.
func (s *sink) WithValues(values ...any) logr.LogSink {
	next := &sink{s.LogSink.WithValues(values...), s.cause}
	for i := 0; i+1 < len(values); i += 2 {
		switch values[i] {
		case "controller":
			next.cause.controller = fmt.Sprint(values[i+1])
		case "namespace":
			next.cause.namespace = fmt.Sprint(values[i+1])
		case "name":
			next.cause.name = fmt.Sprint(values[i+1])
		}
	}
	return next
}

// WithName implements logr.LogSink.
func (s *sink) WithName(name string) logr.LogSink { return &sink{s.LogSink.WithName(name), s.cause} }

// causeOf returns the cause in a context, as far as it is known.
func causeOf(ctx context.Context) cause {
	log, err := logr.FromContext(ctx)
	if err != nil {
		return cause{}
	}
	if s, ok := log.GetSink().(*sink); ok {
		return s.cause
	}
	return cause{}
}
