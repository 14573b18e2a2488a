package fake

import (
	"maps"
	"reflect"
	"strings"
	"time"
)

// fieldsManaged notes in metadata.managedFields who wrote which fields, as the API server does for creations, updates and merge
// patches: what a write changes is the writer's alone from then on. Lists are fields as a whole, and the maps around fields are none.
func fieldsManaged(r *Request, k *Kind, before, after Object) {
	was, is := fieldsOf(before), fieldsOf(after)
	changed := map[string]struct{}{}
	for path, value := range is {
		if old, found := was[path]; !found || !reflect.DeepEqual(old, value) {
			changed[path] = struct{}{}
		}
	}
	var entries []any
	own := -1
	for _, entry := range list(meta(before)["managedFields"]) {
		e := maps.Clone(entry.(map[string]any))
		left := map[string]struct{}{}
		paths(e["fieldsV1"].(map[string]any), "", left)
		maps.DeleteFunc(left, func(path string, _ struct{}) bool {
			_, there := is[path]
			_, taken := changed[path]
			return !there || taken
		})
		mine := e["manager"] == r.Manager && text(e, "subresource") == r.Subresource && e["apiVersion"] == k.GroupVersion().String()
		if len(left) == 0 && (!mine || len(changed) == 0) {
			continue
		}
		if mine {
			own = len(entries)
			maps.Copy(left, changed)
		}
		e["fieldsV1"] = nested(left)
		entries = append(entries, e)
	}
	if len(changed) > 0 {
		now := time.Now().UTC().Format(time.RFC3339)
		if own < 0 {
			e := Object{"manager": r.Manager, "operation": "Update", "apiVersion": k.GroupVersion().String(), "fieldsType": "FieldsV1", "fieldsV1": nested(changed)}
			if r.Subresource != "" {
				e["subresource"] = r.Subresource
			}
			own, entries = len(entries), append(entries, e)
		}
		entries[own].(map[string]any)["time"] = now
	}
	if delete(meta(after), "managedFields"); len(entries) > 0 {
		meta(after)["managedFields"] = entries
	}
}

// fieldsOf are the values of an object that have managers, by path.
func fieldsOf(o Object) map[string]any {
	fields := map[string]any{}
	for name, value := range o {
		switch name {
		case "apiVersion", "kind":
		case "metadata":
			for _, below := range []string{"annotations", "labels", "finalizers", "ownerReferences"} {
				if value, found := meta(o)[below]; found {
					leaves("f:metadata\x00f:"+below, value, fields)
				}
			}
		default:
			leaves("f:"+name, value, fields)
		}
	}
	return fields
}

func leaves(path string, value any, to map[string]any) {
	below, isMap := value.(map[string]any)
	if !isMap || len(below) == 0 {
		to[path] = value
		return
	}
	for name, value := range below {
		leaves(path+"\x00f:"+name, value, to)
	}
}

// nested are paths as they are sent, and paths reads them back.
func nested(set map[string]struct{}) Object {
	fields := Object{}
	for path := range set {
		at := fields
		for step := range strings.SplitSeq(path, "\x00") {
			below, _ := at[step].(map[string]any)
			if below == nil {
				below = Object{}
				at[step] = below
			}
			at = below
		}
	}
	return fields
}

func paths(fields Object, path string, to map[string]struct{}) {
	for name, below := range fields {
		at := name
		if path != "" {
			at = path + "\x00" + name
		}
		if below := below.(map[string]any); len(below) > 0 {
			paths(below, at, to)
		} else {
			to[at] = struct{}{}
		}
	}
}
