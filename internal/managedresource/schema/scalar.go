package schema

import (
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// sameScalar compares values that can be written in more than one way.
func sameScalar(t *Type, live, merged any) bool {
	switch t.Kind {
	case Quantity:
		return sameQuantity(live, merged, t)
	case Bytes:
		return sameText(live, merged, withoutLineBreaks)
	case Time:
		layout := time.RFC3339Nano
		if t.micro {
			layout = metav1.RFC3339Micro
		}
		return sameText(live, merged, func(text string) string { return canonicalTime(text, layout) })
	case Duration:
		return sameText(live, merged, canonicalDuration)
	}
	return sameAny(live, merged)
}

// sameNumber compares numbers by value, with all digits of large integers.
func sameNumber(live, merged any) bool {
	switch merged := merged.(type) {
	case int64:
		switch live := live.(type) {
		case int64:
			return live == merged
		case float64:
			return live == float64(merged) && int64(live) == merged
		}
	case float64:
		switch live := live.(type) {
		case int64:
			return merged == float64(live) && int64(merged) == live
		case float64:
			return live == merged
		}
	}
	return false
}

// sameQuantity compares quantities in the form of the API server: 1000m equals 1, but 1Gi differs from 1073741824.
func sameQuantity(live, merged any, t *Type) bool {
	a, okA := canonicalQuantity(live, t)
	b, okB := canonicalQuantity(merged, t)
	return okA && okB && a == b || sameAny(live, merged)
}

func canonicalQuantity(value any, t *Type) (string, bool) {
	var text string
	switch value := value.(type) {
	case nil:
		return "0", !t.Pointer
	case string:
		text = value
	case int64:
		text = strconv.FormatInt(value, 10)
	case float64:
		text = strconv.FormatFloat(value, 'f', -1, 64)
	default:
		return "", false
	}
	quantity, err := resource.ParseQuantity(strings.TrimSpace(text))
	if err != nil {
		return "", false
	}
	if t.milli {
		quantity.RoundUp(resource.Milli)
	}
	return quantity.String(), true
}

func sameText(live, merged any, canonical func(string) string) bool {
	a, okA := live.(string)
	b, okB := merged.(string)
	return okA && okB && canonical(a) == canonical(b) || sameAny(live, merged)
}

func withoutLineBreaks(text string) string {
	return strings.NewReplacer("\r", "", "\n", "").Replace(text)
}

func canonicalTime(text, layout string) string {
	if t, err := time.Parse(layout, text); err == nil {
		return t.UTC().Format(layout)
	}
	return text
}

func canonicalDuration(text string) string {
	if d, err := time.ParseDuration(text); err == nil {
		return d.String()
	}
	return text
}
