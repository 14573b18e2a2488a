package steps

import (
	"context"
	"fmt"
	"slices"
	"strings"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/source"
)

// Warn records one Event about several objects, with the reports about the first few. Without reports, it records no
// Event.
func Warn(ctx context.Context, to *source.Events, mr *resourcesv1alpha1.ManagedResource, reason string, events []string) {
	const named = 3
	if len(events) == 0 {
		return
	}
	events = slices.Sorted(slices.Values(events))
	message := strings.Join(events[:min(len(events), named)], ". ")
	if more := len(events) - named; more > 0 {
		message += fmt.Sprintf(". And %d more objects", more)
	}
	to.Warn(ctx, mr, reason, message)
}
