package admission

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Patch is a JSON patch (RFC 6902).
type Patch []Operation

// Operation is a step of a patch.
type Operation struct {
	// Op is add, replace or remove.
	Op string
	// Path is a JSON pointer.
	Path string
	// Value is that of add and replace.
	Value json.RawMessage
}

// MarshalJSON implements json.Marshaler; nothing to do is null.
func (p Patch) MarshalJSON() ([]byte, error) {
	if len(p) == 0 {
		return []byte("null"), nil
	}
	size := 0
	for i := range p {
		size += len(p[i].Path) + len(p[i].Value) + len(`{"op":"replace","path":"","value":},`)
	}
	out := make([]byte, 0, size+2)
	for i, o := range p {
		separator := byte(',')
		if i == 0 {
			separator = '['
		}
		out = append(append(append(append(out, separator), `{"op":"`...), o.Op...), `","path":`...)
		out = appendText(out, o.Path)
		if o.Op != "remove" {
			out = append(append(out, `,"value":`...), o.Value...)
		}
		out = append(out, '}')
	}
	return append(out, ']'), nil
}

// appendText appends a text in JSON.
func appendText(out []byte, text string) []byte {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			quoted, err := json.Marshal(text)
			if err != nil { // Any text can be encoded.
				panic(err)
			}
			return append(out, quoted...)
		}
	}
	return append(append(append(out, '"'), text...), '"')
}

// differ collects operations. Its methods take a path, the typed forms before and after, and the present JSON.
type differ struct {
	// sent is the object as it was sent.
	sent  []byte
	patch Patch
	err   error
}

func (d *differ) add(op, path string, value any) {
	o := Operation{Op: op, Path: path}
	if op != "remove" {
		var err error
		if o.Value, err = json.Marshal(value); err != nil {
			d.err = err
		}
	}
	d.patch = append(d.patch, o)
}

var escape = strings.NewReplacer("~", "~0", "/", "~1")

func (d *differ) object(path string, was, is, there map[string]any) {
	keys := maps.Clone(was)
	if keys == nil {
		keys = map[string]any{}
	}
	maps.Copy(keys, is)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if reflect.DeepEqual(was[key], is[key]) {
			continue
		}
		have, found := there[key]
		d.value(path+"/"+escape.Replace(key), was[key], is[key], have, found)
	}
}

func (d *differ) value(path string, was, is, there any, found bool) {
	switch is := is.(type) {
	case nil:
		if found {
			d.add("remove", path, nil)
		}
		return
	case map[string]any:
		if there, same := there.(map[string]any); same {
			was, _ := was.(map[string]any)
			d.object(path, was, is, there)
			return
		}
	case []any:
		there, same := there.([]any)
		was, _ := was.([]any)
		if same && len(was) == len(there) {
			d.list(path, was, is, there)
			return
		}
	}
	if found {
		d.add("replace", path, is)
		return
	}
	d.add("add", path, is)
}

// list keeps elements that are still there, so that what the type does not know of them stays. Elements are the same if they have the same
// name, or are equal. Between them, if as many come as go and have no names, each is taken for the changed form of its predecessor.
func (d *differ) list(path string, was, is, there []any) {
	at, gone, come := 0, 0, 0
	moved := movedFrom(was, there)
	step := func(toWas, toIs int) {
		if toWas-gone == toIs-come && unnamed(was[gone:toWas]) && unnamed(is[come:toIs]) {
			for ; gone < toWas; gone, come, at = gone+1, come+1, at+1 {
				d.value(path+"/"+strconv.Itoa(at), was[gone], is[come], there[gone], true)
			}
			return
		}
		for ; gone < toWas; gone++ {
			d.add("remove", path+"/"+strconv.Itoa(at), nil)
		}
		for ; come < toIs; come, at = come+1, at+1 {
			d.add("add", path+"/"+strconv.Itoa(at), moved(is[come]))
		}
	}
	for _, pair := range kept(was, is) {
		step(pair[0], pair[1])
		if !reflect.DeepEqual(was[gone], is[come]) {
			d.value(path+"/"+strconv.Itoa(at), was[gone], is[come], there[gone], true)
		}
		gone, come, at = gone+1, come+1, at+1
	}
	step(len(was), len(is))
}

// kept returns the elements that are kept, as pairs of ascending indices before and after.
func kept(was, is []any) (pairs [][2]int) {
	places := map[string][]int{}
	for i, element := range was {
		id := identity(element)
		places[id] = append(places[id], i)
	}
	next := 0
	for j, element := range is {
		id := identity(element)
		for len(places[id]) > 0 {
			i := places[id][0]
			places[id] = places[id][1:]
			if i >= next {
				pairs, next = append(pairs, [2]int{i, j}), i+1
				break
			}
		}
	}
	return pairs
}

// movedFrom returns a function that returns an element in the form in which it was sent, if it is one that has only changed its place. It looks
// at the list once, and only if it is asked.
func movedFrom(was, there []any) func(element any) any {
	var places map[string]int
	return func(element any) any {
		if places == nil {
			places = make(map[string]int, len(was))
			for i := len(was) - 1; i >= 0; i-- {
				places[encoded(was[i])] = i
			}
		}
		if i, found := places[encoded(element)]; found && reflect.DeepEqual(was[i], element) {
			return there[i]
		}
		return element
	}
}

// identity is the name of an element, or the whole of it.
func identity(element any) string {
	if name := nameIn(element); name != "" {
		return "name " + name
	}
	return encoded(element)
}

func encoded(element any) string {
	text, err := json.Marshal(element)
	if err != nil { // Values that were decoded from JSON can be encoded.
		return ""
	}
	return string(text)
}

func nameIn(element any) string {
	fields, _ := element.(map[string]any)
	name, _ := fields["name"].(string)
	return name
}

func unnamed(elements []any) bool {
	return !slices.ContainsFunc(elements, func(e any) bool { return nameIn(e) != "" })
}
