package protodecode

import (
	"bytes"
	"errors"

	"google.golang.org/protobuf/encoding/protowire"
)

// magic begins each object that an API server of Kubernetes sends in Protocol Buffers.
var magic = []byte("k8s\x00")

// Is reports whether a body of an API server is in Protocol Buffers. JSON never begins like it.
func Is(body []byte) bool { return bytes.HasPrefix(body, magic) }

var errNoObject = errors.New("no object of Kubernetes in Protocol Buffers")

// Object returns the message of an object from its envelope, which has the type of the object.
func Object(body []byte) ([]byte, error) {
	if !Is(body) {
		return nil, errNoObject
	}
	message, err := last(body[len(magic):], 2)
	return message, at("raw", err)
}

// Event returns the type of an event of a watch, and the message of its object.
func Event(frame []byte) (kind string, object []byte, err error) {
	name, err := last(frame, 1)
	if err != nil {
		return "", nil, at("type", err)
	}
	body, err := last(frame, 2)
	if err == nil {
		body, err = last(body, 1)
	}
	if err == nil {
		object, err = Object(body)
	}
	return text(name), object, at("object", err)
}

// List returns the messages of the metadata and of each object of a list.
func List(body []byte) (metadata []byte, items [][]byte, err error) {
	message, err := Object(body)
	if err != nil {
		return nil, nil, err
	}
	err = Each(message, func(number protowire.Number, value []byte, is bool) error {
		switch {
		case number != 1 && number != 2:
		case !is:
			return errWireType
		case number == 1:
			metadata = value
		default:
			items = append(items, value)
		}
		return nil
	})
	return metadata, items, err
}

// last returns the last value of a field of bytes, nil if there is none.
func last(message []byte, wanted protowire.Number) (found []byte, err error) {
	err = Each(message, func(number protowire.Number, value []byte, is bool) error {
		switch {
		case number != wanted:
		case !is:
			return errWireType
		default:
			found = value
		}
		return nil
	})
	return found, err
}
