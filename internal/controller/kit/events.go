package kit

import (
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// NoCreate filters out create events.
func NoCreate(event.CreateEvent) bool { return false }

// NoUpdate filters out update events.
func NoUpdate(event.UpdateEvent) bool { return false }

// NoDelete filters out delete events.
func NoDelete(event.DeleteEvent) bool { return false }

// NoGeneric filters out generic events.
func NoGeneric(event.GenericEvent) bool { return false }

// Retrieving returns the error of reading a reconciled object: nil if the object is gone (COM-7).
func Retrieving(err error) error {
	if client.IgnoreNotFound(err) == nil {
		return nil
	}
	return fmt.Errorf("error retrieving object from store: %w", err)
}
