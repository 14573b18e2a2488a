package meta

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// MaxMessage is the longest message of a condition, in bytes. The three conditions of a ManagedResource then leave the
// larger part of etcd's limit (1.5 MiB) to the inventory, and the errors of twenty objects and an API server fit in.
const MaxMessage = 16 << 10

// Shortened returns a message of at most limit bytes, which is at least 64: cut between two characters, with a note of
// how many bytes were cut. Bytes that are no UTF-8 are replaced, as on the way to the API server.
func Shortened(message string, limit int) string {
	if !utf8.ValidString(message) {
		message = strings.ToValidUTF8(message, "\ufffd")
	}
	if len(message) <= limit {
		return message
	}
	// The note is longest if everything is cut.
	cut := limit - len(cutNote(len(message)))
	for !utf8.RuneStart(message[cut]) {
		cut--
	}
	return message[:cut] + cutNote(len(message)-cut)
}

func cutNote(bytes int) string { return fmt.Sprintf(" … (%d more bytes)", bytes) }

// maxName is the longest name that an Event may have, as any object.
const maxName = 253

// EventName returns the name of an Event about an object, of which it keeps as much as there is room for.
func EventName(about string, number int64) string {
	end := fmt.Sprintf(".%x", number)
	return strings.TrimRight(about[:min(len(about), maxName-len(end))], ".-") + end
}

// ReasonObjectsWritten is the reason of the Event about the objects that a run wrote (MRB-51).
const ReasonObjectsWritten = "ObjectsWritten"

// DeletionLogger is the name of the logger of deletions, whose lines are not sampled (MRB-51).
const DeletionLogger = "deletions"
