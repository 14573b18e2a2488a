package schema

// DropEmpty removes fields in place that mean the same as absent: null, and empty lists, maps and bytes. In maps of
// strings, it replaces null by "". The API server does not store such fields, but if they are sent, it may increase
// the generation or write the same object again.
//
// It has one branch for each pair of a JSON type and a Go type.
func (t *Type) DropEmpty(value any) {
	switch value := value.(type) {
	case map[string]any:
		switch t.Kind {
		case Struct:
			t.dropEmptyFields(value)
		case Map:
			for key, item := range value {
				if item == nil && (t.items.Kind == Bytes || t.items.Kind == String) {
					value[key] = "" // Only the key matters; null is stored as "".
				}
				t.items.DropEmpty(item)
			}
		case Union:
			t.items.DropEmpty(value)
		}
	case []any:
		if t.Kind == List || t.Kind == Union {
			for _, item := range value {
				t.items.DropEmpty(item)
			}
		}
	}
}

func (t *Type) dropEmptyFields(fields map[string]any) {
	for name, value := range fields {
		f := t.fields[name]
		if f == nil {
			continue
		}
		if value == nil && f.Kind != Any || f.isEmpty(value) {
			delete(fields, name)
			continue
		}
		f.DropEmpty(value)
	}
}

func (f *Field) isEmpty(value any) bool {
	switch f.Kind {
	case List, Map, Bytes:
		return f.IsZero(value)
	}
	return false
}
