package apply

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Equal says whether writing merged over live would change nothing (MR-26, MRB-8): nil and empty are the same, numbers are
// compared by value, and for kinds of Kubernetes itself a field that merged leaves out may hold the API server's default,
// and quantities may be spelt differently. managedFields do not count.
func Equal(live, merged *unstructured.Unstructured) bool {
	builtIn := isBuiltIn(live.GroupVersionKind().Group)
	comparison := comparison{quantities: builtIn}
	var defaults *defaultNode
	if builtIn {
		defaults = defaultsFor(live.GroupVersionKind().GroupKind())
	}
	return comparison.maps(live.Object, merged.Object, defaults, "")
}

// isBuiltIn says whether the group is one of Kubernetes' own: those have no dot, or end in .k8s.io but are no CRDs.
func isBuiltIn(group string) bool {
	switch group {
	case "", "apps", "batch", "autoscaling", "policy", "extensions", "networking.k8s.io", "rbac.authorization.k8s.io",
		"storage.k8s.io", "scheduling.k8s.io", "admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io",
		"coordination.k8s.io", "discovery.k8s.io", "certificates.k8s.io", "node.k8s.io", "flowcontrol.apiserver.k8s.io":
		return true
	}
	return false
}

type comparison struct {
	quantities bool
}

func (c comparison) values(live, merged any, defaults *defaultNode, key string) bool {
	if isEmptyContainer(live) && isEmptyContainer(merged) {
		return true
	}
	switch merged := merged.(type) {
	case map[string]any:
		live, ok := live.(map[string]any)
		return (ok || live == nil) && c.maps(live, merged, defaults, key)
	case []any:
		live, ok := live.([]any)
		if !ok || len(live) != len(merged) {
			return false
		}
		for i := range merged {
			if !c.values(live[i], merged[i], defaults.item(), key) {
				return false
			}
		}
		return true
	case string:
		liveText, ok := live.(string)
		return ok && (liveText == merged || c.sameQuantity(liveText, merged, key)) || !ok && c.sameQuantityNumber(live, merged, key)
	case int64:
		return sameNumber(live, float64(merged), merged) || c.sameQuantityNumber(merged, live, key)
	case float64:
		return sameNumber(live, merged, int64(merged))
	case bool:
		liveBool, ok := live.(bool)
		return ok && liveBool == merged
	}
	return false
}

func (c comparison) maps(live, merged map[string]any, defaults *defaultNode, parent string) bool {
	for key, value := range merged {
		liveValue := live[key]
		if liveValue == nil && isEmptyContainer(value) {
			continue
		}
		if !c.values(liveValue, value, defaults.child(key), quantityParent(parent, key)) {
			return false
		}
	}
	for key, liveValue := range live {
		if value, found := merged[key]; found && value != nil {
			continue
		}
		if isEmptyContainer(liveValue) || (key == "managedFields" && parent == "metadata") || defaults.child(key).isDefault(liveValue, live) {
			continue
		}
		return false
	}
	return true
}

func isEmptyContainer(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case map[string]any:
		return len(value) == 0
	case []any:
		return len(value) == 0
	}
	return false
}

func sameNumber(value any, asFloat float64, asInt int64) bool {
	switch value := value.(type) {
	case int64:
		return value == asInt && float64(asInt) == asFloat
	case float64:
		return value == asFloat
	}
	return false
}

// quantityFields hold quantities, or maps of quantities, in Kubernetes' own kinds.
var quantityFields = map[string]bool{
	"requests": true, "limits": true, "hard": true, "capacity": true, "allocatable": true, "default": true, "defaultRequest": true,
	"max": true, "min": true, "maxLimitRequestRatio": true, "sizeLimit": true, "divisor": true, "averageValue": true, "value": true, "overhead": true,
}

// quantityParent passes on which field the comparison is in: below a field of quantities everything is one.
func quantityParent(parent, key string) string {
	if quantityFields[parent] {
		return parent
	}
	return key
}

func (c comparison) sameQuantity(live, merged, field string) bool {
	if !c.quantities || !quantityFields[field] {
		return false
	}
	a, errA := resource.ParseQuantity(live)
	b, errB := resource.ParseQuantity(merged)
	return errA == nil && errB == nil && a.Cmp(b) == 0
}

// sameQuantityNumber compares a quantity that one side writes as a number.
func (c comparison) sameQuantityNumber(number, text any, field string) bool {
	n, isNumber := number.(int64)
	s, isText := text.(string)
	return isNumber && isText && c.sameQuantity(resource.NewQuantity(n, resource.DecimalSI).String(), s, field)
}

// defaultNode is a tree of what the API server fills in: for each field its default, or how to compute it.
type defaultNode struct {
	children map[string]*defaultNode
	items    *defaultNode
	values   []any
	computed func(value any, siblings map[string]any) bool
}

func (n *defaultNode) child(key string) *defaultNode {
	if n == nil {
		return nil
	}
	return n.children[key]
}

func (n *defaultNode) item() *defaultNode {
	if n == nil {
		return nil
	}
	return n.items
}

// isDefault says whether the live value is what the API server fills in. A mapping is if all in it is.
func (n *defaultNode) isDefault(value any, siblings map[string]any) bool {
	if n == nil {
		return false
	}
	if n.computed != nil {
		return n.computed(value, siblings)
	}
	if fields, ok := value.(map[string]any); ok && len(n.values) > 0 && n.values[0] == wholeMap {
		for key, field := range fields {
			if !n.child(key).isDefault(field, fields) {
				return false
			}
		}
		return true
	}
	return slices.ContainsFunc(n.values, func(d any) bool {
		switch d := d.(type) {
		case int:
			return sameNumber(value, float64(d), int64(d))
		case string, bool:
			return value == d
		}
		return false
	})
}

// wholeMap marks a mapping that the API server makes up as a whole from its fields' defaults.
const wholeMap = "\x00map"

// tree builds nodes from a literal: keys are paths with dots, "[]" stands for the items of a list.
func tree(parts ...map[string]any) *defaultNode {
	root := &defaultNode{}
	for _, part := range parts {
		for _, path := range slices.Sorted(maps.Keys(part)) {
			root.graft(strings.Split(path, "."), part[path])
		}
	}
	return root
}

func (n *defaultNode) graft(path []string, value any) {
	for _, step := range path {
		name, isList := strings.CutSuffix(step, "[]")
		if n.children == nil {
			n.children = map[string]*defaultNode{}
		}
		if n.children[name] == nil {
			n.children[name] = &defaultNode{}
		}
		n = n.children[name]
		if isList {
			if n.items == nil {
				n.items = &defaultNode{}
			}
			n = n.items
		}
	}
	switch value := value.(type) {
	case *defaultNode:
		n.children, n.items = value.children, value.items
	case func(any, map[string]any) bool:
		n.computed = value
	default:
		n.values = append(n.values, value)
	}
}

func defaultsFor(kind schema.GroupKind) *defaultNode { return kindDefaults()[kind] }
