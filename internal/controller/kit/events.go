package kit

import (
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// NoCreate passes no creation.
func NoCreate(event.CreateEvent) bool { return false }

// NoUpdate passes no update.
func NoUpdate(event.UpdateEvent) bool { return false }

// NoDelete passes no deletion.
func NoDelete(event.DeleteEvent) bool { return false }

// NoGeneric passes nothing from elsewhere.
func NoGeneric(event.GenericEvent) bool { return false }

// Retrieving returns the error of a reconciliation whose object could not be read: none if it is gone (COM-7).
func Retrieving(err error) error {
	if client.IgnoreNotFound(err) == nil {
		return nil
	}
	return fmt.Errorf("error retrieving object from store: %w", err)
}
