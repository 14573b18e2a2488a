package target

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/klog/v2"

	"github.com/espalier-project/espalier/internal/cluster"
)

// warning is the kind of a warning of an API server.
type warning string

const (
	warnsOfField       warning = "field"
	warnsOfDeprecation warning = "deprecation"
	warnsOfPodSecurity warning = "podsecurity"
	// warnsOfOther is the kind of all other warnings, such as those of webhooks and policies, which choose their texts.
	warnsOfOther warning = "other"
)

// fieldOf matches a warning about a field that the API server drops, or that the object has twice.
var fieldOf = regexp.MustCompile(`^(?:unknown|duplicate) field "([^"]*)"$`)

// kindOf returns the kind of a warning, and the field that it is about.
func kindOf(text string) (kind warning, field string) {
	if found := fieldOf.FindStringSubmatch(text); found != nil {
		return warnsOfField, found[1]
	}
	switch {
	case strings.HasPrefix(text, "would violate PodSecurity"):
		return warnsOfPodSecurity, ""
	case strings.Contains(text, " is deprecated in "), strings.Contains(text, "deprecated since "):
		return warnsOfDeprecation, ""
	}
	return warnsOfOther, ""
}

type warnedKey struct{}

// WarningsTo returns a context with which writes call report for each object that the API server warns about. The
// message has the dropped fields and the kinds of other warnings. The texts may quote values, and are only logged.
func WarningsTo(ctx context.Context, report func(message string)) context.Context {
	return context.WithValue(ctx, warnedKey{}, report)
}

// warned counts the warnings about a write, and reports those that are due (CCH-5).
func (c *Client) warned(ctx context.Context, object *unstructured.Unstructured, collected *cluster.Collected) {
	name := fmt.Sprintf("%s %q", object.GetKind(), strings.TrimPrefix(object.GetNamespace()+"/"+object.GetName(), "/"))
	var fields, kinds []string
	for _, text := range collected.Texts() {
		kind, field := kindOf(text)
		c.metrics.warnings.WithLabelValues(string(kind)).Inc()
		key := object.GroupVersionKind().String() + " " + text
		if kind == warnsOfField {
			key = name + " " + key
		}
		if !collected.IsDue(key) {
			continue
		}
		if object.GetKind() == "Secret" && kind != warnsOfField {
			text = "<not shown>"
		}
		klog.FromContext(ctx).Info("The API server warns about an object", "object", name, "kind", kind, "warning", text)
		if kind == warnsOfField {
			fields = append(fields, field)
		} else {
			kinds = append(kinds, string(kind))
		}
	}
	report, wanted := ctx.Value(warnedKey{}).(func(string))
	if !wanted {
		return
	}
	if len(fields) > 0 {
		slices.Sort(fields)
		report(fmt.Sprintf("The API server drops fields of %s that it does not know, or that are there twice: %s", name,
			strings.Join(fields, ", ")))
	}
	if len(kinds) > 0 {
		slices.Sort(kinds)
		report(fmt.Sprintf("The API server warns about %s: %s; the log has the text", name,
			strings.Join(slices.Compact(kinds), ", ")))
	}
}
