package highavailabilityconfig

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/espalier-project/espalier/internal/endpoint/admission/admissiontest"
)

// HA-44: constraints about hosts and zones are dropped and put anew, so that fields that the types do not know go with those that are dropped;
// constraints about anything else keep theirs, and so do all where none is dropped.
func TestDroppedConstraints(t *testing.T) {
	const (
		other = `{"topologyKey":"rack","maxSkew":2,"whenUnsatisfiable":"DoNotSchedule","future":"a"}`
		host  = `{"topologyKey":"kubernetes.io/hostname","maxSkew":5,"whenUnsatisfiable":"DoNotSchedule","future":"b"}`
		ours  = `{"topologyKey":"kubernetes.io/hostname","maxSkew":1,"whenUnsatisfiable":"ScheduleAnyway","labelSelector":{"matchLabels":{"app":"x"}}}`
	)
	for name, c := range map[string]struct{ replicas, before, want string }{
		"HA-44/dropped":              {"2", host, ours},
		"HA-44/others stay":          {"2", other + "," + host, other + "," + ours},
		"HA-44/others behind it":     {"2", host + "," + other, other + "," + ours},
		"HA-44/nothing that is new":  {"2", other + "," + ours, other + "," + ours},
		"HA-40/one replica, no drop": {"1", host + "," + other, host + "," + other},
	} {
		t.Run(name, func(t *testing.T) {
			object := workloadOf(statefulSets, nil, nil, `{"replicas":`+c.replicas+`,"selector":{"matchLabels":{"app":"x"}},"template":{"metadata":{"labels":{"app":"x"}},"spec":{"topologySpreadConstraints":[`+c.before+`]}}}`)
			for range 2 { // The second time nothing is left to be done.
				result, admitted, err := admissiontest.Apply(Decide(plain, in("failure-tolerance-type", ""), in("failure-tolerance-type", "")), object)
				if err != nil || !admitted {
					t.Fatalf("admitted %t, %v", admitted, err)
				}
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
				if err := json.Unmarshal(result, &got); err != nil {
					t.Fatal(err)
				}
				if err := json.Unmarshal([]byte("["+c.want+"]"), &want); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, got.Spec.Template.Spec.TopologySpreadConstraints); diff != "" {
					t.Errorf("-want, +got:\n%s", diff)
				}
				object = result
			}
		})
	}
}
