package configref

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/espalier-project/espalier/internal/endpoint/admission"
)

// sameSpec reports whether two Shoots have equal specifications (CV-5): an empty list equals an absent one, and
// quantities are compared by value.
func sameSpec(now, old []byte) (bool, error) {
	is, err := specOf(now)
	if err != nil {
		return false, err
	}
	was, err := specOf(old)
	if err != nil {
		return false, err
	}
	if string(is) == string(was) {
		return true, nil
	}
	if len(is) == 0 || len(was) == 0 {
		return false, nil
	}
	a, err := admission.Tree(is)
	if err != nil {
		return false, err
	}
	b, err := admission.Tree(was)
	return err == nil && same(a, b, false), err
}

func specOf(raw []byte) (json.RawMessage, error) {
	var object struct {
		Spec json.RawMessage `json:"spec"`
	}
	err := admission.Unmarshal(raw, &object)
	return object.Spec, err
}

var (
	// quantities are the fields of a Shoot whose members are quantities; quantity is a field that is a quantity
	// itself. In other fields, values that look like quantities are compared as strings: version 1.30 is not 1.3.
	quantities = []string{"evictionMinimumReclaim", "kubeReserved", "maxAllowed", "minAllowed", "systemReserved"}
	quantity   = "containerLogMaxSize"
)

// same compares two trees of JSON; amount is set if they are quantities.
func same(a, b any, amount bool) bool {
	switch a := a.(type) {
	case map[string]any:
		b, is := b.(map[string]any)
		return is && sameMembers(a, b)
	case []any:
		b, is := b.([]any)
		return is && slices.EqualFunc(a, b, func(x, y any) bool { return same(x, y, false) })
	}
	return reflect.DeepEqual(a, b) || amount && sameAmount(a, b)
}

func sameMembers(a, b map[string]any) bool {
	keys := maps.Clone(a)
	maps.Copy(keys, b)
	for key := range keys {
		x, y := a[key], b[key]
		if nothing(x) && nothing(y) {
			continue
		}
		if slices.Contains(quantities, key) {
			if !sameAmounts(x, y) {
				return false
			}
			continue
		}
		if !same(x, y, key == quantity) {
			return false
		}
	}
	return true
}

// nothing reports whether a value equals an absent one.
func nothing(value any) bool {
	list, is := value.([]any)
	return value == nil || is && len(list) == 0
}

func sameAmounts(a, b any) bool {
	x, isMap := a.(map[string]any)
	y, areMaps := b.(map[string]any)
	return isMap && areMaps && maps.EqualFunc(x, y, func(v, w any) bool { return same(v, w, true) })
}

// sameAmount compares quantities, which are strings or numbers.
func sameAmount(a, b any) bool {
	x, err := amountOf(a)
	if err != nil {
		return false
	}
	y, err := amountOf(b)
	return err == nil && x.Cmp(y) == 0
}

func amountOf(value any) (resource.Quantity, error) {
	switch value := value.(type) {
	case string:
		return resource.ParseQuantity(value)
	case json.Number:
		return resource.ParseQuantity(value.String())
	}
	return resource.Quantity{}, resource.ErrFormatWrong
}
