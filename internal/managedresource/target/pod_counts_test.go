package target

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestPodCounts(t *testing.T) {
	var told []types.UID
	c := newPodCounts(func(deployments ...types.UID) {
		if slices.Contains(deployments, "d") {
			told = append(told, "d")
		}
	})
	c.setPod(labelled, "ns", "p0", "rs1", true) // The order of the events does not matter.
	c.setReplicaSet(labelled, "ns", "rs1", "d")
	c.setReplicaSet(labelled, "ns", "rs2", "d")
	c.setPod(labelled, "ns", "p1", "rs1", true)
	c.setPod(labelled, "ns", "p2", "rs2", true)
	c.setPod(labelled, "ns", "p3", "rs2", false)
	c.setPod(labelled, "ns", "p4", "foreign", true)
	if got := c.of(labelled, "d"); got != 3 {
		t.Errorf("MRB-30: got %d", got)
	}
	if len(told) != 5 {
		t.Errorf("MRT-13/MRV-153: told %d times", len(told))
	}
	c.setPod(labelled, "ns", "p2", "", false)
	c.setPod(labelled, "ns", "p1", "rs1", false)
	if got := c.of(labelled, "d"); got != 1 {
		t.Errorf("got %d", got)
	}
	c.setReplicaSet(labelled, "ns", "rs1", "")
	if got := c.of(labelled, "d"); got != 0 {
		t.Errorf("got %d", got)
	}
}
