package rules

import (
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/espalier-project/espalier/test/gen/gardengen"
)

// Parts of the drawn selectors: keys and values of the rules, and some that look like them.
var (
	labelKeys = []string{
		"name.seed.gardener.cloud/a", "name.seed.gardener.cloud/a", "name.seed.gardener.cloud/b", "name.seed.gardener.cloud/child", "name.seed.gardener.cloud/aa",
		"gardener.cloud/role", "gardener.cloud/role", "gardener.cloud/roles", "role", "foo",
	}
	labelValues    = []string{"true", "true", "false", "", "shoot-service-account-issuer", "shoot-service-account-issuer", "shoot-service-account-issuers", "monitoring", "a", "1"}
	labelOperators = []selection.Operator{
		selection.Equals, selection.DoubleEquals, selection.In, selection.In, selection.NotIn, selection.NotEquals, selection.Exists, selection.DoesNotExist, selection.GreaterThan, selection.LessThan,
	}
	fieldKeys = []string{
		"spec.seedName", "spec.seedRef.name", "metadata.name", "metadata.name", "spec.shootRef.name", "spec.shootRef.namespace", "spec.shoot.name", "spec.shoot", "metadata.namespace",
	}
	fieldValues    = []string{"a", "b", "s", "ss", "t", "garden-n", "garden", "self-hosted-shoot-s", "self-hosted-shoot-ss", ""}
	fieldOperators = []selection.Operator{selection.Equals, selection.DoubleEquals, selection.In, selection.NotEquals, selection.NotIn}
)

// labelSelector draws up to three requirements with all operators.
func labelSelector(g gardengen.Gen) (result labels.Requirements) {
	for range g.IntN(4) {
		if r := labelRequirement(g); r != nil {
			result = append(result, *r)
		}
	}
	return result
}

// labelRequirement is nil if the library has no such requirement.
func labelRequirement(g gardengen.Gen) *labels.Requirement {
	operator := gardengen.One(g, labelOperators)
	var values []string
	switch operator {
	case selection.Exists, selection.DoesNotExist:
	case selection.In, selection.NotIn:
		for range 1 + g.IntN(3) {
			values = append(values, gardengen.One(g, labelValues))
		}
	case selection.GreaterThan, selection.LessThan:
		values = []string{"1"}
	default:
		values = []string{gardengen.One(g, labelValues)}
	}
	r, err := labels.NewRequirement(gardengen.One(g, labelKeys), operator, values)
	if err != nil {
		return nil
	}
	return r
}

// fieldSelector draws up to three requirements; every other one has both fields that the rules about references to Shoots want.
func fieldSelector(g gardengen.Gen) (result fields.Requirements) {
	if g.IntN(2) == 0 {
		for _, own := range [][2]string{{"spec.shootRef.name", "s"}, {"spec.shootRef.namespace", "garden-n"}} {
			if g.IntN(8) > 0 {
				result = append(result, fields.Requirement{Field: own[0], Operator: gardengen.One(g, fieldOperators[:3]), Value: own[1]})
			}
		}
	}
	for range g.IntN(3) {
		result = append(result, fields.Requirement{Field: gardengen.One(g, fieldKeys), Operator: gardengen.One(g, fieldOperators), Value: gardengen.One(g, fieldValues)})
	}
	return result
}
