package cluster

import "testing"

func TestFreePortsAreGivenOnce(t *testing.T) {
	seen := map[int]bool{}
	for range 50 {
		ports, err := FreePorts(3)
		if err != nil {
			t.Fatal(err)
		}
		for _, port := range ports {
			if seen[port] || port < firstPort || port >= lastPort {
				t.Fatalf("%d, after %v", port, seen)
			}
			seen[port] = true
		}
	}
}
