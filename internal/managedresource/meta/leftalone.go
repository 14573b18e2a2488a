package meta

import (
	"fmt"
	"strings"
)

// leftAlone begins the part of the ResourcesApplied message about objects on hold (MRF-14).
const leftAlone = " Left alone for a while: "

// ObjectName returns the name of an object in messages: <kind> <namespace>/<name>.
func ObjectName(kind, namespace, name string) string {
	return fmt.Sprintf("%s %s/%s", kind, namespace, name)
}

// LeftAlone returns the part of the ResourcesApplied message about objects on hold. names are already joined.
func LeftAlone(names string) string { return leftAlone + names + "." }

// LeftAloneIn returns the names of the objects on hold in a ResourcesApplied message, which has only the first ones.
func LeftAloneIn(message string) []string {
	_, names, found := strings.Cut(message, leftAlone)
	if !found {
		return nil
	}
	names, _, _ = strings.Cut(strings.TrimSuffix(names, "."), " and ")
	return strings.Split(names, ", ")
}
