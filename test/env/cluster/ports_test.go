package cluster

import (
	"testing"

	"github.com/espalier-project/espalier/test/must"
)

func TestFreePortsAreGivenOnce(t *testing.T) {
	seen := map[int]bool{}
	for range 50 {
		ports, err := FreePorts(3)
		must.Succeed(t, err)
		for _, port := range ports {
			if seen[port] || port < firstPort || port >= lastPort {
				t.Fatalf("%d, after %v", port, seen)
			}
			seen[port] = true
		}
	}
}
