package inspect

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/plan"
)

// Occurrence is an Event of resource-manager about an object or its ManagedResource.
type Occurrence struct {
	Time   metav1.Time `json:"time"`
	Reason string      `json:"reason"`
	Text   string      `json:"text"`
	// By is the writer that changed the object, if the Event has one.
	By string `json:"by,omitempty"`
}

// reasonRepair is the reason of Events about objects that another writer changed and that were repaired or will be.
// Other Warnings about a ManagedResource are reported unchanged.
const reasonRepair = "ObjectChanged"

// fightText is in the Events about repairs in a fight of two writers.
const fightText = "is changed repeatedly"

// eventTime returns the time of an Event's last occurrence.
func eventTime(event *corev1.Event) metav1.Time {
	if !event.LastTimestamp.IsZero() {
		return event.LastTimestamp
	}
	if !event.EventTime.IsZero() {
		return metav1.NewTime(event.EventTime.Time)
	}
	return event.CreationTimestamp
}

func isAbout(event *corev1.Event, owner types.NamespacedName) bool {
	return event.InvolvedObject.Kind == "ManagedResource" && event.InvolvedObject.Name == owner.Name &&
		event.InvolvedObject.Namespace == owner.Namespace
}

// repairsOf returns the repairs that Events report, by the names of objects, the latest first.
func repairsOf(events []corev1.Event, owner types.NamespacedName) map[string][]Occurrence {
	found := map[string][]Occurrence{}
	for i := range events {
		event := &events[i]
		if event.Reason != reasonRepair || !isAbout(event, owner) {
			continue
		}
		for sentence := range strings.SplitSeq(event.Message, ". ") {
			name, what, rest := strings.Cut(sentence, " ")
			if rest && strings.Count(name, "/") >= 3 {
				found[name] = append(found[name],
					Occurrence{Time: eventTime(event), Reason: event.Reason, Text: what, By: quoted(what)})
			}
		}
	}
	for _, occurrences := range found {
		sortOccurrences(occurrences)
	}
	return found
}

func sortOccurrences(occurrences []Occurrence) {
	slices.SortStableFunc(occurrences, func(a, b Occurrence) int { return b.Time.Compare(a.Time.Time) })
}

// quoted returns the quoted name of the writer, as in: was changed by "kubectl-edit".
func quoted(what string) string {
	_, after, found := strings.Cut(what, ` by "`)
	if !found {
		return ""
	}
	name, _, _ := strings.Cut(after, `"`)
	return name
}

// namesObject reports whether a name in an Event, <apiVersion>/<kind>/<namespace>/<name>, is the name of the object
// in any version.
func namesObject(name string, key objects.ID) bool {
	version, rest, _ := strings.Cut(name, "/")
	group := ""
	if !strings.HasPrefix(rest, key.Kind+"/") {
		group = version
		_, rest, _ = strings.Cut(rest, "/")
	}
	namespaced := plan.ObjectName("", key.Kind, key.Namespace, key.Name)
	return group == key.Group && "/"+rest == namespaced
}

// occurrencesOf returns the repairs of one object that Events report, and the fights among them.
func occurrencesOf(events []corev1.Event, owner types.NamespacedName,
	key objects.ID) (all []Occurrence, fights []Occurrence) {
	for name, occurrences := range repairsOf(events, owner) {
		if namesObject(name, key) {
			all = append(all, occurrences...)
		}
	}
	sortOccurrences(all)
	for _, occurrences := range all {
		if strings.Contains(occurrences.Text, fightText) {
			fights = append(fights, occurrences)
		}
	}
	return all, fights
}

// deletionsOf returns the deletions of an object by resource-manager. unnamed are Events that do not name all deleted
// objects, so that the object may be one of them.
func deletionsOf(events []corev1.Event, key objects.ID) (found, unnamed []Occurrence) {
	for i := range events {
		event := &events[i]
		if event.Reason != meta.ReasonObjectsWritten {
			continue
		}
		of := " of ManagedResource " + event.InvolvedObject.Namespace + "/" + event.InvolvedObject.Name
		for _, deletion := range plan.DeletionsIn(event.Message) {
			occurrence := Occurrence{Time: eventTime(event), Reason: event.Reason, Text: "a run" + of + " deleted it, because " +
				deletion.Reason}
			switch {
			case slices.ContainsFunc(deletion.Names, func(name string) bool { return namesObject(name, key) }):
				found = append(found, occurrence)
			case deletion.Cut:
				occurrence.Text = "a run" + of +
					" deleted objects of which the Event does not name all; a line of its log names each"
				unnamed = append(unnamed, occurrence)
			}
		}
	}
	sortOccurrences(found)
	return found, unnamed
}
