package admissiontest

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/espalier-project/espalier/internal/endpoint/admission"
)

// Pods are the properties of a webhook that changes Pods.
type Pods struct {
	Decide admission.Func
	// Touches are the fields that the rule may change, as JSON pointers; * stands for one index or key. Values below
	// them may change, too.
	Touches []string
	// Spares are the lists that the rule does not change, of containers, initContainers and ephemeralContainers.
	Spares []string
	// Draw adds the fields that the webhook reads to a drawn Pod; nil adds none.
	Draw func(rt *rapid.T, pod map[string]any)
	// OnlyCreate is set if the rule is for creations only, and does not change the objects of other requests.
	OnlyCreate bool
}

var pod = corev1.SchemeGroupVersion.WithKind("Pod")

// objects returns the properties for objects of any kind.
func (l Pods) objects() Objects {
	return Objects{Decide: l.Decide, Kind: pod, Touches: l.Touches, OnlyCreate: l.OnlyCreate, Bodies: bodies, Draw: func(rt *rapid.T) map[string]any {
		object := drawPod(rt)
		if l.Draw != nil {
			l.Draw(rt, object)
		}
		return object
	}}
}

// bodies are unusual Pods.
var bodies = []string{
	`{"spec":null}`, `{"spec":{"containers":[null]}}`, `{"spec":{"initContainers":[{}],"securityContext":null,"os":null}}`,
	`{"metadata":{"labels":null,"annotations":null,"ownerReferences":[null]},"spec":{"containers":[{"env":[null],"volumeMounts":[null]}],"tolerations":[null],"affinity":{},"volumes":[null]}}`,
	`{"metadata":{"labels":{"pod-template-hash":"h"}},"spec":{"volumes":[{"projected":null},{"secret":null},{"projected":{"sources":[null]}}],"topologySpreadConstraints":[null,{"labelSelector":null}],"affinity":{"podAffinity":null,"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[null]}}}}}`,
}

// Check tests the properties with drawn Pods.
func (l Pods) Check(t *testing.T) {
	t.Helper()
	l.objects().check(t, l.alike)
}

// Fuzz is the property that no request body and no object in a review makes a webhook panic.
func (l Pods) Fuzz(f *testing.F) {
	f.Helper()
	l.objects().Fuzz(f)
}

// lists are the lists of containers in a Pod.
var lists = []string{"containers", "initContainers", "ephemeralContainers"}

// alike is the property that a container becomes the same in each list, or stays unchanged if the rule spares the
// list.
func (l Pods) alike(raw []byte, _ *int) error {
	pod := map[string]any{}
	if err := decode(raw, &pod); err != nil {
		return err
	}
	spec := pod["spec"].(map[string]any)
	container := spec["containers"].([]any)[0].(map[string]any)
	for _, list := range lists {
		copied := maps.Clone(container)
		copied["name"] = list
		spec[list] = []any{copied}
	}
	sent, err := json.Marshal(pod)
	if err != nil {
		return err
	}
	once, admitted, err := l.objects().apply(sent)
	if err != nil || !admitted {
		return err
	}
	if err := decode(once, &pod); err != nil {
		return err
	}
	spec = pod["spec"].(map[string]any)
	var like map[string]any
	first := ""
	for _, list := range lists {
		all, _ := spec[list].([]any)
		if len(all) != 1 {
			return fmt.Errorf("%s has %d containers of 1", list, len(all))
		}
		became := all[0].(map[string]any)
		delete(became, "name")
		want, of := like, first
		switch {
		case slices.Contains(l.Spares, list):
			want, of = container, "what was sent"
		case like == nil:
			like, first = became, list
			continue
		}
		delete(want, "name")
		if !reflect.DeepEqual(became, want) {
			return fmt.Errorf("the container of %s became %v, that of %s %v", list, became, of, want)
		}
	}
	return nil
}
