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
			must.True(t, !seen[port] && port >= firstPort && port < lastPort, "%d, after %v", port, seen)
			seen[port] = true
		}
	}
}
