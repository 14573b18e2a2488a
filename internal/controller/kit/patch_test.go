package kit

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// patches are those that were written.
type patches []string

var errFake = errors.New("fake")

func (p *patches) Patch(_ context.Context, object client.Object, patch client.Patch, _ ...client.PatchOption) error {
	data, err := patch.Data(object)
	if err != nil {
		return err
	}
	*p = append(*p, string(data))
	return errFake
}

func TestPatch(t *testing.T) {
	from := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", ResourceVersion: "7", Annotations: map[string]string{"a": "b"}}}
	for name, c := range map[string]struct {
		change func(*corev1.Node)
		want   string
	}{
		"one difference":                 {func(n *corev1.Node) { n.Spec.Unschedulable = true }, `{"metadata":{"resourceVersion":"7"},"spec":{"unschedulable":true}}`},
		"what is taken away":             {func(n *corev1.Node) { n.Annotations = nil }, `{"metadata":{"annotations":null,"resourceVersion":"7"}}`},
		"none":                           {func(*corev1.Node) {}, ""},
		"none but absent and empty maps": {func(n *corev1.Node) { n.Labels = map[string]string{} }, ""},
	} {
		var written patches
		to := from.DeepCopy()
		c.change(to)
		err := Patch(t.Context(), &written, from, to)
		if got := append(written, "")[0]; got != c.want || errors.Is(err, errFake) != (c.want != "") {
			t.Errorf("%s: got %s and %v, want %s", name, got, err, c.want)
		}
	}
}
