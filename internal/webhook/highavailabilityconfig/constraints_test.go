package highavailabilityconfig

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/espalier-project/espalier/internal/endpoint/admission"

	"github.com/espalier-project/espalier/internal/endpoint/admission/admissiontest"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// TestKeptConstraints: a constraint keeps the fields that the types do not have, wherever it goes, while others are dropped, added and changed.
func TestKeptConstraints(t *testing.T) {
	const kept = `{"topologyKey":"%s","maxSkew":2,"whenUnsatisfiable":"DoNotSchedule","labelSelector":{"matchLabels":{"app":"x"}},"future":{"deep":[1.50]}%s}`
	const host = `{"topologyKey":"kubernetes.io/hostname","maxSkew":5,"whenUnsatisfiable":"DoNotSchedule","future":"b"}`
	rapid.Check(t, func(rt *rapid.T) {
		var before, want []string
		future := ""
		for n := range rapid.IntRange(1, 4).Draw(rt, "constraints") {
			if rapid.Bool().Draw(rt, "about hosts") {
				before, future = append(before, host), `,"future":"b"`
				continue
			}
			before = append(before, fmt.Sprintf(kept, strconv.Itoa(n), ""))
			want = append(want, fmt.Sprintf(kept, strconv.Itoa(n), `,"matchLabelKeys":["pod-template-hash"]`))
		}
		want = append(want, `{"topologyKey":"kubernetes.io/hostname","maxSkew":1,"whenUnsatisfiable":"ScheduleAnyway","labelSelector":{"matchLabels":{"app":"x"}},"matchLabelKeys":["pod-template-hash"]`+future+`}`)
		object := workloadOf(deployments, nil, nil, `{"replicas":2,"template":{"metadata":{"labels":{"app":"x"}},"spec":{"topologySpreadConstraints":[`+strings.Join(before, ",")+`]}}}`)
		for range 2 { // The second time nothing is left to be done.
			result, admitted, err := admissiontest.Apply(Decide(plain, in("failure-tolerance-type", ""), in("failure-tolerance-type", "")), object)
			must.True(rt, err == nil && admitted, "admitted %t, %v", admitted, err)
			expect.DeepEqual(rt, constraintsOf(rt, result), constraintsOf(rt, []byte(`{"spec":{"template":{"spec":{"topologySpreadConstraints":[`+strings.Join(want, ",")+`]}}}}`)), "FM-8: -want, +got")
			object = result
		}
	})
}

func constraintsOf(t rapid.TB, object []byte) []any {
	tree, err := admission.Tree(object)
	must.Succeed(t, err)
	all, _, err := unstructured.NestedFieldNoCopy(tree.(map[string]any), "spec", "template", "spec", "topologySpreadConstraints")
	must.Succeed(t, err)
	return all.([]any)
}

// HA-44: constraints about hosts and zones are replaced, and move behind constraints about anything else. Fields that the types do not have stay.
func TestDroppedConstraints(t *testing.T) {
	const (
		other = `{"topologyKey":"rack","maxSkew":2,"whenUnsatisfiable":"DoNotSchedule","future":"a"}`
		host  = `{"topologyKey":"kubernetes.io/hostname","maxSkew":5,"whenUnsatisfiable":"DoNotSchedule","future":"b"}`
		newer = `{"topologyKey":"kubernetes.io/hostname","maxSkew":1,"whenUnsatisfiable":"ScheduleAnyway","labelSelector":{"matchLabels":{"app":"x"}},"future":"b"}`
		ours  = `{"topologyKey":"kubernetes.io/hostname","maxSkew":1,"whenUnsatisfiable":"ScheduleAnyway","labelSelector":{"matchLabels":{"app":"x"}}}`
	)
	for name, c := range map[string]struct{ replicas, before, want string }{
		"HA-44/replaced":             {"2", host, newer},
		"HA-44/others stay":          {"2", other + "," + host, other + "," + newer},
		"HA-44/others behind it":     {"2", host + "," + other, other + "," + newer},
		"HA-44/nothing that is new":  {"2", other + "," + ours, other + "," + ours},
		"HA-40/one replica, no drop": {"1", host + "," + other, host + "," + other},
	} {
		t.Run(name, func(t *testing.T) {
			object := workloadOf(statefulSets, nil, nil, `{"replicas":`+c.replicas+`,"selector":{"matchLabels":{"app":"x"}},"template":{"metadata":{"labels":{"app":"x"}},"spec":{"topologySpreadConstraints":[`+c.before+`]}}}`)
			for range 2 { // The second time nothing is left to be done.
				result, admitted, err := admissiontest.Apply(Decide(plain, in("failure-tolerance-type", ""), in("failure-tolerance-type", "")), object)
				must.True(t, err == nil && admitted, "admitted %t, %v", admitted, err)
				var got struct {
					Spec struct {
						Template struct {
							Spec struct {
								TopologySpreadConstraints []map[string]any `json:"topologySpreadConstraints"`
							} `json:"spec"`
						} `json:"template"`
					} `json:"spec"`
				}
				var want []map[string]any
				must.Succeed(t, json.Unmarshal(result, &got))
				must.Succeed(t, json.Unmarshal([]byte("["+c.want+"]"), &want))
				expect.DeepEqual(t, got.Spec.Template.Spec.TopologySpreadConstraints, want, "-want, +got")
				object = result
			}
		})
	}
}
