package fieldpointer

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

const (
	// maxPointers bounds the pointers in an annotation: more than that is a whole object, for which there are other
	// annotations.
	maxPointers = 64
	// maxLength is the length of a pointer in bytes: a path of twenty fields and a key of 253 bytes fit.
	maxLength = 512
	// maxSteps bounds the steps of a pointer: twice the depth of a Pod template's deepest field. With maxPointers it
	// bounds the cost.
	maxSteps = 32
)

// Pointer names fields of an object.
type Pointer struct {
	text  string
	steps []step
}

// step is one step of a pointer: into an entry by its name, which may be the index of a list, into every entry, or into
// the items of a list that have a value at a key.
type step struct {
	name       string
	every      bool
	key, value string
}

// String returns the pointer as it was written.
func (p Pointer) String() string { return p.text }

// ParseList reads pointers that are separated by commas or spaces. An error names the pointer.
func ParseList(text string) ([]Pointer, error) {
	texts := strings.FieldsFunc(text, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
	if len(texts) > maxPointers {
		return nil, fmt.Errorf("has %d pointers, which is more than %d", len(texts), maxPointers)
	}
	pointers := make([]Pointer, 0, len(texts))
	for _, text := range texts {
		pointer, err := Parse(text)
		if err != nil {
			return nil, err
		}
		pointers = append(pointers, pointer)
	}
	return pointers, nil
}

// Parse reads one pointer.
func Parse(text string) (Pointer, error) {
	if len(text) > maxLength {
		return Pointer{}, fmt.Errorf("pointer %q… has %d bytes, which is more than %d", text[:32], len(text), maxLength)
	}
	rest, found := strings.CutPrefix(text, "/")
	if !found {
		return Pointer{}, fmt.Errorf("pointer %q must begin with a slash", text)
	}
	parts := strings.Split(rest, "/")
	if len(parts) > maxSteps {
		return Pointer{}, fmt.Errorf("pointer %q has %d steps, which is more than %d", text, len(parts), maxSteps)
	}
	pointer := Pointer{text: text}
	for _, part := range parts {
		step, err := parseStep(part)
		if err != nil {
			return Pointer{}, fmt.Errorf("pointer %q: %w", text, err)
		}
		pointer.steps = append(pointer.steps, step)
	}
	return pointer, nil
}

func parseStep(text string) (step, error) {
	if text == "" {
		return step{}, errors.New("has an empty step")
	}
	if text == "*" {
		return step{every: true}, nil
	}
	inner, opened := strings.CutPrefix(text, "[")
	inner, closed := strings.CutSuffix(inner, "]")
	if opened != closed {
		return step{}, fmt.Errorf("step %q must be [key=value]", text)
	}
	if !opened {
		name, err := unescape(text)
		return step{name: name}, err
	}
	key, value, found := strings.Cut(inner, "=")
	if !found || key == "" || value == "" {
		return step{}, fmt.Errorf("step %q must be [key=value]", text)
	}
	key, keyErr := unescape(key)
	value, valueErr := unescape(value)
	return step{key: key, value: value}, errors.Join(keyErr, valueErr)
}

// unescape reads ~1 as a slash and ~0 as a tilde.
func unescape(text string) (string, error) {
	for i := range len(text) {
		if text[i] == '~' && (i+1 == len(text) || text[i+1] != '0' && text[i+1] != '1') {
			return "", fmt.Errorf("step %q has a ~ that is followed by neither 0 nor 1", text)
		}
	}
	return strings.ReplaceAll(strings.ReplaceAll(text, "~1", "/"), "~0", "~"), nil
}

// index reads a step as the index of a list.
func (s step) index() (int, bool) {
	i, err := strconv.Atoi(s.name)
	return i, err == nil && i >= 0 && strconv.Itoa(i) == s.name
}

// identity are the fields at the top that identify the object.
var identity = []string{"apiVersion", "kind"}

// ownPrefix is that of the labels and annotations by which ManagedResources know their objects.
const ownPrefix = "resources.gardener.cloud"

// Check refuses pointers to fields that must not be left alone: those with the object's identity, owner and treatment.
// It names the pointer. kind is that of the object, with its group.
func Check(pointers []Pointer, group, kind string) error {
	for _, pointer := range pointers {
		if err := pointer.check(); err != nil {
			return fmt.Errorf("pointer %q %w", pointer, err)
		}
		if group == "" && kind == "Secret" && pointer.steps[0].name == "stringData" {
			return fmt.Errorf("pointer %q names a field that is only written; the value is at /data", pointer)
		}
	}
	return nil
}

func (p Pointer) check() error {
	first := p.steps[0]
	switch {
	case first.every || first.key != "":
		return errors.New("must name a field at the top of the object")
	case slices.Contains(identity, first.name):
		return errors.New("names a field that says which object it is")
	case first.name == "metadata":
		return p.checkMetadata()
	}
	return nil
}

func (p Pointer) checkMetadata() error {
	if len(p.steps) != 3 || p.steps[1].name != "labels" && p.steps[1].name != "annotations" || p.steps[2].name == "" {
		return errors.New("must name one label or one annotation by its key; the rest of the metadata is never left alone")
	}
	prefix, _, found := strings.Cut(p.steps[2].name, "/")
	if found && (prefix == ownPrefix || strings.HasSuffix(prefix, "."+ownPrefix)) {
		return errors.New("names a label or annotation by which ManagedResources know their objects")
	}
	return nil
}
