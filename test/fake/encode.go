package fake

import (
	"bytes"
	"encoding/json"
	"reflect"
)

// encoded is an object as it is sent: the same one is answered, listed and told of many times, and encoding it is the most that an
// API server in memory does. It keeps the object, so that no other one gets its place in memory.
type encoded struct {
	object         Object
	whole, partial []byte
}

// encode returns an object that is stored, or only its metadata, as it is sent.
func (s *Server) encode(o Object, partial bool) []byte {
	place := reflect.ValueOf(o).Pointer()
	known := s.encoded[place]
	if known == nil {
		known = &encoded{object: o}
		s.encoded[place] = known
	}
	switch {
	case !partial && known.whole == nil:
		known.whole = mustMarshal(o)
	case partial && known.partial == nil:
		known.partial = mustMarshal(partialOf(o))
	}
	if partial {
		return known.partial
	}
	return known.whole
}

// forget drops what was encoded of an object that is not stored any more.
func (s *Server) forget(o Object) {
	if o != nil {
		delete(s.encoded, reflect.ValueOf(o).Pointer())
	}
}

func mustMarshal(value any) []byte {
	content, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return content
}

// listed is a list as it is sent.
func listed(apiVersion, kind string, metadata Object, items [][]byte) []byte {
	var b bytes.Buffer
	b.WriteString(`{"kind":"` + kind + `","apiVersion":"` + apiVersion + `","metadata":`)
	b.Write(mustMarshal(metadata))
	b.WriteString(`,"items":[`)
	b.Write(bytes.Join(items, []byte{','}))
	b.WriteString(`]}`)
	return b.Bytes()
}

// told is an event as it is sent.
func told(event string, object []byte) []byte {
	return append(append([]byte(`{"type":"`+event+`","object":`), object...), "}\n"...)
}
