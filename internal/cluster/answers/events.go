package answers

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// maxEvent limits an event of a watch. API servers take objects of 3 MiB at most.
const maxEvent = 8 << 20

var errEvent = errors.New("an event of the watch is too large, or does not end with its line")

// events is a watch whose events are checked before they are handed on. In JSON each event is a line, and so are the objects that the client library
// finds: within an object no "}" stands before a "{".
type events struct {
	body     *body
	protobuf bool
	check    func([]byte) error
	// held has the incomplete events that were read, of which sent bytes went on, and searched bytes have no end of a
	// line.
	held           []byte
	sent, searched int
	// ready holds checked bytes to hand on; passing counts the remaining bytes of a small event that is handed on as
	// it arrives.
	ready   []byte
	passing int
	err     error
}

// Read implements io.Reader.
func (e *events) Read(p []byte) (int, error) {
	for len(e.ready) == 0 {
		if e.err != nil {
			return 0, e.err
		}
		n, err := e.read(p)
		switch {
		case n > 0:
			e.err = err
			e.body.done(int64(n))
			return n, nil
		case err == nil:
			err = e.take()
		}
		e.err = err
	}
	n := copy(p, e.ready)
	if e.ready = e.ready[n:]; len(e.ready) == 0 {
		e.ready = nil
	}
	e.body.done(int64(n))
	return n, nil
}

// Close implements io.Closer.
func (e *events) Close() error { return e.body.Close() }

// read reads the next bytes: into the buffer of the client, if they can be handed on at once, and into the held bytes
// otherwise.
func (e *events) read(p []byte) (handedOn int, err error) {
	if len(e.held) > 0 {
		e.held = slices.Grow(e.held, min(max(len(e.held), 4<<10), 1<<20))
		n, err := e.body.Read(e.held[len(e.held):cap(e.held)])
		e.held = e.held[:len(e.held)+n]
		if n > 0 {
			err = nil // It comes again.
		}
		return 0, err
	}
	if e.passing > 0 {
		p = p[:min(len(p), e.passing)]
	}
	n, err := e.body.Read(p)
	if e.passes(p[:n]) {
		return n, err
	}
	e.held = append(e.held, p[:n]...)
	if n > 0 {
		err = nil
	}
	return 0, err
}

// passes reports whether the read bytes are handed on without a copy: the events in them are small.
func (e *events) passes(read []byte) bool {
	switch {
	case len(read) == 0:
		return false
	case e.passing > 0:
		e.passing -= len(read)
		return true
	case e.protobuf:
		if len(read) != lengthBytes || binary.BigEndian.Uint32(read) > small {
			return false
		}
		e.passing = int(binary.BigEndian.Uint32(read))
		return true
	}
	for line := range bytes.Lines(read) {
		if len(line) > small || line[len(line)-1] != '\n' || !isObject(line) {
			return false
		}
	}
	return true
}

// take checks events that are complete.
func (e *events) take() error {
	for end := e.next(); end > 0; end = e.next() {
		if err := e.checked(e.held[:end]); err != nil {
			return err
		}
		e.ready = append(e.ready, e.held[e.sent:end]...)
		e.held, e.sent, e.searched = e.held[end:], 0, 0
	}
	switch {
	case len(e.held) > maxEvent:
		return errEvent
	case len(e.held) == 0:
		e.held = nil // An event may have been large.
	case !e.protobuf && len(e.held) <= small:
		// A server without ends of lines is understood as long as its events are small.
		e.ready = append(e.ready, e.held[e.sent:]...)
		e.sent = len(e.held)
	}
	return nil
}

// next returns the end of the first event that is held, 0 if it is not complete.
func (e *events) next() int {
	switch {
	case !e.protobuf:
		n := bytes.IndexByte(e.held[e.searched:], '\n') + 1
		if n == 0 {
			e.searched = len(e.held)
			return 0
		}
		return e.searched + n
	case len(e.held) < lengthBytes:
		return 0
	case binary.BigEndian.Uint32(e.held) > maxEvent:
		return len(e.held) // It is refused.
	}
	if end := lengthBytes + int(binary.BigEndian.Uint32(e.held)); end <= len(e.held) {
		return end
	}
	return 0
}

// lengthBytes are the bytes before an event in Protocol Buffers that are its length.
const lengthBytes = 4

func (e *events) checked(event []byte) error {
	switch {
	case !e.protobuf && !isObject(event):
		return errEvent
	case !e.protobuf:
		return e.check(event)
	case binary.BigEndian.Uint32(event) > maxEvent:
		return errEvent
	}
	return e.check(event[lengthBytes:])
}

// isObject reports whether a line is empty, or begins and ends as an object does.
func isObject(line []byte) bool {
	line = bytes.TrimSpace(line)
	return len(line) == 0 || line[0] == '{' && line[len(line)-1] == '}'
}

// first and second return a field of a message.
func first(text []byte) ([]byte, error)  { return only(text, 1) }
func second(text []byte) ([]byte, error) { return only(text, 2) }

func only(text []byte, wanted protowire.Number) (found []byte, err error) {
	times := 0
	err = fields(text, func(number protowire.Number, wire protowire.Type, value []byte) error {
		if number == wanted && wire == protowire.BytesType {
			found, times = value, times+1
		}
		return nil
	})
	if err == nil && times != 1 {
		err = errNoKind
	}
	return found, err
}
