package highavailabilityconfig

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/espalier-project/espalier/internal/endpoint/admission"
)

const constraintsPath = "/spec/template/spec/topologySpreadConstraints"

// replacing returns a patch that puts new constraints in the place of those that were dropped. A patch keeps what the types do not know of an
// element that has changed; a constraint that is dropped takes such fields with it, as they would say something about another constraint.
// Kept values keep theirs.
func replacing(patch admission.Patch, sent []byte, now []corev1.TopologySpreadConstraint) (admission.Patch, error) {
	touches := func(o admission.Operation) bool {
		return o.Path == constraintsPath || strings.HasPrefix(o.Path, constraintsPath+"/")
	}
	if !slices.ContainsFunc(patch, touches) {
		return patch, nil
	}
	var content struct {
		Spec struct {
			Template struct {
				Spec struct {
					Constraints []map[string]json.RawMessage `json:"topologySpreadConstraints"`
				} `json:"spec"`
			} `json:"template"`
		} `json:"spec"`
	}
	if err := admission.Unmarshal(sent, &content); err != nil {
		return nil, err
	}
	var kept []map[string]json.RawMessage
	hasUnknown := false
	for _, c := range content.Spec.Template.Spec.Constraints {
		if !isSpread(c) {
			kept = append(kept, c)
			continue
		}
		for key := range c {
			hasUnknown = hasUnknown || !knownFields[key]
		}
	}
	if !hasUnknown || len(kept) > len(now) {
		return patch, nil
	}
	all := make([]any, 0, len(now))
	for i := range now {
		if i >= len(kept) {
			all = append(all, now[i])
			continue
		}
		if keys := now[i].MatchLabelKeys; len(keys) > 0 {
			text, err := json.Marshal(keys)
			if err != nil {
				return nil, err
			}
			kept[i]["matchLabelKeys"] = text
		}
		all = append(all, kept[i])
	}
	value, err := json.Marshal(all)
	return append(slices.DeleteFunc(patch, touches), admission.Operation{Op: "replace", Path: constraintsPath, Value: value}), err
}

// isSpread says whether a constraint is about hosts or zones.
func isSpread(c map[string]json.RawMessage) bool {
	key := ""
	_ = admission.Unmarshal(c["topologyKey"], &key) // The object was decoded before.
	return key == corev1.LabelHostname || key == corev1.LabelTopologyZone
}

// knownFields are the fields of constraints that the types know.
var knownFields = func() map[string]bool {
	known, t := map[string]bool{}, reflect.TypeFor[corev1.TopologySpreadConstraint]()
	for n := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(n).Tag.Get("json"), ",")
		known[name] = true
	}
	return known
}()
