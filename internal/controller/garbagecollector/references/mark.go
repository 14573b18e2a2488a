package references

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
)

// The collector deletes in two phases (GC-17 to GC-20):
//
//	unreferenced in a look ──▶ marked ──▶ unreferenced in a look that began Grace later ──▶ deleted
//	                               │
//	                               ├──▶ referenced, or a referrer passes this process ──▶ unmarked
//	                               └──▶ changed by somebody else ──▶ marked anew

// Collector is the field manager of marks: its own writes do not count as changes.
const Collector = "resource-manager-garbage-collector"

// Standing is the progress of an object towards its deletion.
type Standing int

const (
	// Free objects are not marked, or were changed since.
	Free Standing = iota
	// Waiting objects are marked, but not for long enough.
	Waiting
	// Due objects are deleted if nothing refers to them.
	Due
)

// Grace is the minimum time between the mark and the deletion of an object: half of a period, so that the next
// regular run deletes the object, and an early one, after a failure or a change of the leader, does not.
func Grace(period time.Duration) time.Duration { return period / 2 }

// Fresh is the maximum age of the list of marked objects in processes that look for references to them. So they have
// a marked object in their lists at least for the difference to Grace before its deletion, which is longer than the
// time from the admission of an object until it is stored.
func Fresh(period time.Duration) time.Duration { return period / 4 }

// Marked reports whether an object has any part of a mark.
func Marked(object *metav1.ObjectMeta) bool {
	for _, key := range []string{resourcesv1alpha1.AnnotationCondemnedAt, resourcesv1alpha1.AnnotationCondemnedAs} {
		if _, found := object.Annotations[key]; found {
			return true
		}
	}
	_, found := object.Labels[resourcesv1alpha1.LabelCondemned]
	return found
}

// StandingOf returns the standing of an object. Only a full mark counts, and only if the object has not changed
// since.
func StandingOf(object *metav1.ObjectMeta, grace time.Duration, now time.Time) Standing {
	at := object.Annotations[resourcesv1alpha1.AnnotationCondemnedAt]
	since, err := time.Parse(time.RFC3339Nano, at)
	if err != nil || object.Labels[resourcesv1alpha1.LabelCondemned] != "true" || object.Annotations[resourcesv1alpha1.AnnotationCondemnedAs] != seal(at, Content(object)) {
		return Free
	}
	if since.Add(grace).After(now) {
		return Waiting
	}
	return Due
}

// Mark returns the label and the annotations that mark an object. content is the digest of Content.
func Mark(content string, now time.Time) (labels, annotations map[string]string) {
	at := now.UTC().Format(time.RFC3339Nano)
	return map[string]string{resourcesv1alpha1.LabelCondemned: "true"}, map[string]string{
		resourcesv1alpha1.AnnotationCondemnedAt: at, resourcesv1alpha1.AnnotationCondemnedAs: seal(at, content),
	}
}

// seal binds the time of a mark to the digest of the marked content.
func seal(at, content string) string { return digest([]byte(at + " " + content)) }

// digest is short, as it protects against accidents only: a client that could forge it may delete the object as well.
func digest(of []byte) string {
	sum := sha256.Sum256(of)
	return hex.EncodeToString(sum[:8])
}

// Content returns a digest of the metadata of an object without its mark. The managed fields of other writers, with
// their times, are included, so that changes of the data change the digest.
func Content(object *metav1.ObjectMeta) string {
	content := struct {
		Labels, Annotations map[string]string
		Owners              []metav1.OwnerReference
		Finalizers          []string
		Writers             []metav1.ManagedFieldsEntry
	}{map[string]string{}, map[string]string{}, object.OwnerReferences, object.Finalizers, nil}
	for key, value := range object.Labels {
		if key != resourcesv1alpha1.LabelCondemned {
			content.Labels[key] = value
		}
	}
	for key, value := range object.Annotations {
		if key != resourcesv1alpha1.AnnotationCondemnedAt && key != resourcesv1alpha1.AnnotationCondemnedAs {
			content.Annotations[key] = value
		}
	}
	for _, writer := range object.ManagedFields {
		if writer.Manager != Collector {
			content.Writers = append(content.Writers, metav1.ManagedFieldsEntry{Manager: writer.Manager, Operation: writer.Operation, Subresource: writer.Subresource, Time: writer.Time})
		}
	}
	encoded, err := json.Marshal(content)
	if err != nil {
		panic(err) // It has only strings and times.
	}
	return digest(encoded)
}
