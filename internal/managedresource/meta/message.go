package meta

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// MaxMessage is the longest message of a condition, in bytes. It has room for the errors of twenty objects and of an
// API server, and the three conditions of a ManagedResource leave most of etcd's limit (1.5 MiB) to the inventory.
const MaxMessage = 16 << 10

// Shortened returns a message of at most limit bytes, which must be 64 or more. It cuts between two characters and
// appends the number of cut bytes. Invalid UTF-8 is replaced, as in requests to the API server.
func Shortened(message string, limit int) string {
	if !utf8.ValidString(message) {
		message = strings.ToValidUTF8(message, "\ufffd")
	}
	if len(message) <= limit {
		return message
	}
	// The note is longest if all bytes are cut.
	cut := limit - len(cutNote(len(message)))
	for !utf8.RuneStart(message[cut]) {
		cut--
	}
	return message[:cut] + cutNote(len(message)-cut)
}

func cutNote(bytes int) string { return fmt.Sprintf(" … (%d more bytes)", bytes) }

// maxName is the longest name of an Event, as of any object.
const maxName = 253

// EventName returns the name of an Event about an object. It shortens the object's name if necessary.
func EventName(about string, number int64) string {
	end := fmt.Sprintf(".%x", number)
	return strings.TrimRight(about[:min(len(about), maxName-len(end))], ".-") + end
}

// ReasonObjectsWritten is the reason of the Event about the objects that a run has written (MRB-51).
const ReasonObjectsWritten = "ObjectsWritten"

// DeletionLogger is the name of the logger for deletions, whose lines are not sampled (MRB-51).
const DeletionLogger = "deletions"
