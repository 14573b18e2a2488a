package meta

import (
	"fmt"
	"strings"
)

// leftAlone begins the part of the message of ResourcesApplied about objects under a hold (MRF-14).
const leftAlone = " Left alone for a while: "

// ObjectName names an object in parts of messages: <kind> <namespace>/<name>.
func ObjectName(kind, namespace, name string) string {
	return fmt.Sprintf("%s %s/%s", kind, namespace, name)
}

// LeftAlone returns that part about names, which are joined.
func LeftAlone(names string) string { return leftAlone + names + "." }

// LeftAloneIn returns the names in the message of ResourcesApplied, which has the first ones only.
func LeftAloneIn(message string) []string {
	_, names, found := strings.Cut(message, leftAlone)
	if !found {
		return nil
	}
	names, _, _ = strings.Cut(strings.TrimSuffix(names, "."), " and ")
	return strings.Split(names, ", ")
}
