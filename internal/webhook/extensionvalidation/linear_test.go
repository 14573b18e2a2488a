package extensionvalidation

import (
	"fmt"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/espalier-project/espalier/internal/externalapi/boundedyaml/yamltest"
	"github.com/espalier-project/espalier/test/expect"
)

// TestWorkIsLinear: four times as many files or families take four times the work (WB-20, EV-21).
func TestWorkIsLinear(t *testing.T) {
	t.Run("WB-20/a path for many hosts", func(t *testing.T) {
		yamltest.Linear(t, 8000, func(n int) {
			seen := placed{}
			for i := range n {
				host := strconv.Itoa(i)
				expect.False(t, seen.add("path", &host), "WB-20/another host is a duplicate")
			}
		})
	})
	t.Run("EV-21/many families", func(t *testing.T) {
		yamltest.Linear(t, 4000, func(n int) {
			families := make([]string, n)
			for i := range families {
				families[i] = fmt.Sprint("family ", i)
			}
			got := len(ipFamilies(families))
			expect.Equal(t, got, n, "EV-21/%d faults", got)
		})
	})
}

// TestPropertyOfPlaces: a file is a duplicate exactly if an earlier one of its path is on all hosts, on the same host, or on any while it is on all
// (WB-20, EV-31).
func TestPropertyOfPlaces(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		hosts, seen := map[string][]*string{}, placed{}
		for range rapid.IntRange(1, 12).Draw(rt, "files") {
			path := rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "path")
			var host *string
			if rapid.IntRange(0, 3).Draw(rt, "has a host") > 0 {
				host = new(string)
				*host = rapid.SampledFrom([]string{"", "h1", "h2"}).Draw(rt, "host")
			}
			want := slices.ContainsFunc(hosts[path], func(other *string) bool { return other == nil || host == nil || *other == *host })
			hosts[path] = append(hosts[path], host)
			expect.Equal(rt, seen.add(path, host), want, "WB-20/%s", path)
		}
	})
}
