package cluster

import (
	"maps"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/espalier-project/espalier/internal/feature"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// node is one whose fields somebody may need.
func node() *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: "n", Labels: map[string]string{"a": "1", "b": "2"}, Annotations: map[string]string{"c": "3"},
			DeletionTimestamp: &metav1.Time{Time: time.Unix(1, 0)}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}},
		},
		Spec:   corev1.NodeSpec{Taints: []corev1.Taint{{Key: "x"}, {Key: "y"}}, Unschedulable: true, PodCIDR: "10.0.0.0/24"},
		Status: corev1.NodeStatus{Images: []corev1.ContainerImage{{SizeBytes: 1}}},
	}
}

// needs are what readers of Nodes may keep, each a field.
var needs = map[string]func(from, into *corev1.Node){
	"labels":   func(from, into *corev1.Node) { into.Labels = from.Labels },
	"a":        func(from, into *corev1.Node) { into.Labels = map[string]string{"a": from.Labels["a"]} },
	"c":        func(from, into *corev1.Node) { into.Annotations = from.Annotations },
	"deletion": func(from, into *corev1.Node) { into.DeletionTimestamp = from.DeletionTimestamp },
	"taints":   func(from, into *corev1.Node) { into.Spec.Taints = from.Spec.Taints },
	"x":        func(from, into *corev1.Node) { into.Spec.Taints = from.Spec.Taints[:1] },
	"y":        func(from, into *corev1.Node) { into.Spec.Taints = from.Spec.Taints[1:] },
	"cordoned": func(from, into *corev1.Node) { into.Spec.Unschedulable = from.Spec.Unschedulable },
}

// keeping is what a reader strips that needs some of it.
func keeping(names []string) feature.Strip {
	return feature.Stripping(func(node *corev1.Node) {
		into := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node.Name}}
		for _, name := range names {
			needs[name](node, &into)
		}
		*node = into
	})
}

// TestStrippedOnce: what readers strip alike is stripped once, and what one of them needs whole is not stripped.
func TestStrippedOnce(t *testing.T) {
	stripped := map[string]int{}
	counting := func(name string) feature.Read {
		return feature.Read{Strip: feature.Stripping(func(*corev1.Node) { stripped[name]++ })}
	}
	a, b := counting("a"), counting("b")
	for name, c := range map[string]struct {
		reads []feature.Read
		want  map[string]int
	}{
		"one reader":                           {[]feature.Read{a}, map[string]int{"a": 1}},
		"readers that strip alike":             {[]feature.Read{a, a, a}, map[string]int{"a": 1}},
		"readers that do not":                  {[]feature.Read{a, b, a}, map[string]int{"a": 1, "b": 1}},
		"one of the readers needs all of them": {[]feature.Read{a, {}, b}, nil},
	} {
		clear(stripped)
		if strip := stripping(c.reads); (strip == nil) != (c.want == nil) {
			t.Errorf("%s: stripped: %t", name, strip != nil)
		} else if strip != nil {
			_, err := strip(node())
			expect.True(t, err == nil && maps.Equal(stripped, c.want), "%s: got %v, %v", name, stripped, err)
		}
	}
}

// TestStrippingProperty: what is kept for several readers has for each of them what it would have kept, and nothing that none of them keeps.
func TestStrippingProperty(t *testing.T) {
	// A reader keeps at most one of each.
	all := [][]string{{"labels", "a"}, {"c"}, {"deletion"}, {"taints", "x", "y"}, {"cordoned"}}
	reader := rapid.Custom(func(t *rapid.T) (names []string) {
		for _, one := range all {
			if name := rapid.SampledFrom(append([]string{""}, one...)).Draw(t, "field"); name != "" {
				names = append(names, name)
			}
		}
		return names
	})
	rapid.Check(t, func(t *rapid.T) {
		readers := rapid.SliceOfN(reader, 1, 4).Draw(t, "readers")
		var reads []feature.Read
		needed := map[string]bool{}
		for _, names := range readers {
			reads = append(reads, feature.Read{Strip: keeping(names)})
			for _, name := range names {
				needed[name] = true
			}
		}
		whole := node()
		object, err := stripping(reads)(whole.DeepCopy())
		must.Succeed(t, err)
		kept := object.(*corev1.Node)
		if needed["labels"] {
			expect.DeepEqual(t, kept.Labels, whole.Labels, "labels")
		} else if needed["a"] != (len(kept.Labels) == 1) {
			t.Errorf("labels %v", kept.Labels)
		}
		if needed["c"] != (kept.Annotations["c"] == "3") || needed["deletion"] != (kept.DeletionTimestamp != nil) || needed["cordoned"] != kept.Spec.Unschedulable {
			t.Errorf("for %v: %v", readers, kept)
		}
		for key, wanted := range map[string]bool{"x": needed["x"] || needed["taints"], "y": needed["y"] || needed["taints"]} {
			has := false
			for _, taint := range kept.Spec.Taints {
				has = has || taint.Key == key
			}
			if wanted && !has {
				t.Errorf("taint %s is missing for %v", key, readers)
			}
		}
		expect.True(t, kept.Spec.PodCIDR == "" && kept.Status.Images == nil && kept.ManagedFields == nil,
			"what nobody needs is kept: %v", kept)
		expect.DeepEqual(t, whole, node(), "the whole was changed")
	})
}
