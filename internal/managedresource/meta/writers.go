package meta

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
)

// ReasonSourceFight is the reason of the Event about several managers that overwrite one object of the source in turn
// (MRB-41).
const ReasonSourceFight = "SourceFight"

// ReasonObjectsWritten is the reason of the Event about the objects that a run wrote (MRB-51).
const ReasonObjectsWritten = "ObjectsWritten"

// DeletionLogger is the name of the logger of deletions, whose lines are not sampled (MRB-51).
const DeletionLogger = "deletions"

const (
	// maxWriters bounds the remembered writers of one object. Objects of the source have a few.
	maxWriters = 16
	// maxNamed is the number of managers that an Event names.
	maxNamed = 4
)

// Kinds of the source whose content is applied.
const (
	KindSecret          = "Secret"
	KindManagedResource = "ManagedResource"
)

// SourceObject is an object of the source.
type SourceObject struct{ Kind, Name string }

// Writer is a manager that owns a part of the content of an object. Fields is a digest of the names of the fields that
// it owns.
type Writer struct {
	Object  SourceObject
	Manager string
	Fields  uint64
}

// WritersOf returns the owners of an object's content, by its managed fields: the data of a Secret, the specification
// of a ManagedResource. They are sorted by name.
func WritersOf(object SourceObject, fields []metav1.ManagedFieldsEntry) []Writer {
	owned := map[string]uint64{}
	for _, entry := range fields {
		if digest, found := contentFields(entry.FieldsV1); found {
			owned[entry.Manager] += digest // A manager has an entry for each operation and version.
		}
	}
	writers := make([]Writer, 0, len(owned))
	for manager, digest := range owned {
		writers = append(writers, Writer{object, manager, digest})
	}
	slices.SortFunc(writers, func(a, b Writer) int { return cmp.Compare(a.Manager, b.Manager) })
	return writers[:min(len(writers), maxWriters)]
}

// contentFields returns a digest of the fields that belong to the content. The API server writes a set of fields always
// in the same way.
func contentFields(fields *metav1.FieldsV1) (digest uint64, found bool) {
	if fields == nil {
		return 0, false
	}
	var content struct {
		Data       json.RawMessage `json:"f:data"`
		StringData json.RawMessage `json:"f:stringData"`
		Spec       json.RawMessage `json:"f:spec"`
	}
	if json.Unmarshal(fields.GetRawBytes(), &content) != nil {
		return 0, false
	}
	hash := fnv.New64a()
	for _, part := range []json.RawMessage{content.Data, content.StringData, content.Spec} {
		_, _ = hash.Write(append(part, '\n'))
		found = found || len(part) > 0
	}
	return hash.Sum64(), found
}

// SourceFight is an object of the source whose content changes hands between managers.
type SourceFight struct {
	Object   SourceObject
	Managers []string
}

// ChangedHands compares the owners of the content of objects at two moments, and returns the objects of which several
// managers gained or lost fields in between: at least two of them wrote. One manager that writes alone gains and loses
// fields alone, or none.
func ChangedHands(before, after []Writer) []SourceFight {
	var fights []SourceFight
	for _, object := range objectsOf(before) {
		if !slices.Contains(objectsOf(after), object) {
			continue
		}
		was, is := ownersOf(before, object), ownersOf(after, object)
		var managers []string
		for manager, fields := range was {
			if is[manager] != fields {
				managers = append(managers, manager)
			}
		}
		for manager := range is {
			if _, found := was[manager]; !found {
				managers = append(managers, manager)
			}
		}
		if len(managers) > 1 {
			fights = append(fights, SourceFight{object, slices.Sorted(slices.Values(managers))})
		}
	}
	return fights
}

func objectsOf(writers []Writer) (objects []SourceObject) {
	for _, writer := range writers {
		if !slices.Contains(objects, writer.Object) {
			objects = append(objects, writer.Object)
		}
	}
	return objects
}

func ownersOf(writers []Writer, object SourceObject) map[string]uint64 {
	owners := map[string]uint64{}
	for _, writer := range writers {
		if writer.Object == object {
			owners[writer.Manager] = writer.Fields
		}
	}
	return owners
}

// String names the object and its managers, and nothing of the content.
func (f SourceFight) String() string {
	names := make([]string, 0, maxNamed)
	for _, manager := range f.Managers[:min(len(f.Managers), maxNamed)] {
		names = append(names, fmt.Sprintf("%q", manager))
	}
	text := fmt.Sprintf("%s %s is overwritten alternately by %s", f.Object.Kind, f.Object.Name,
		strings.Join(names, " and "))
	if more := len(f.Managers) - maxNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// ContentDigest stands for the content that a ManagedResource asks for: its specification, and the checksum of its
// Secrets.
func ContentDigest(spec *resourcesv1alpha1.ManagedResourceSpec, checksum string) uint64 {
	digest := fnv.New64a()
	_ = json.NewEncoder(digest).Encode(spec) // Texts, flags, lists and maps of texts.
	_, _ = digest.Write([]byte(checksum))
	return digest.Sum64()
}
