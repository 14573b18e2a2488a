package schema

// DropEmpty removes in place the fields that mean the same as none: null, and empty lists, maps and bytes; in maps of
// texts null becomes "". The API server does not store them, but where one is sent it may count a new generation or
// write the same object once more.
//
// Its branches are one row for each pair of a type of JSON and of Go.
func (t *Type) DropEmpty(value any) {
	switch value := value.(type) {
	case map[string]any:
		switch t.Kind {
		case Struct:
			t.dropEmptyFields(value)
		case Map:
			for key, item := range value {
				if item == nil && (t.items.Kind == Bytes || t.items.Kind == String) {
					value[key] = "" // The key counts; null is not how it is stored.
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
