package brake

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
)

func refs(apiVersion, kind string, n int) (refs []resourcesv1alpha1.ObjectReference) {
	for i := range n {
		refs = append(refs, resourcesv1alpha1.ObjectReference{ObjectReference: corev1.ObjectReference{APIVersion: apiVersion, Kind: kind, Namespace: "n", Name: fmt.Sprintf("o%02d", i)}})
	}
	return refs
}

func TestIsMass(t *testing.T) {
	for name, c := range map[string]struct {
		deletion Deletion
		want     bool
	}{
		"MRX-20/nothing":                    {Deletion{Had: 20}, false},
		"MRX-20/all of nine":                {Deletion{9, refs("v1", "ConfigMap", 9)}, false},
		"MRX-20/all of ten":                 {Deletion{10, refs("v1", "ConfigMap", 10)}, true},
		"MRX-20/all but one":                {Deletion{11, refs("v1", "ConfigMap", 10)}, false},
		"MRX-20/a Namespace":                {Deletion{30, refs("v1", "Namespace", 1)}, true},
		"MRX-20/a PersistentVolume":         {Deletion{30, refs("v1", "PersistentVolume", 1)}, true},
		"MRX-20/a PersistentVolumeClaim":    {Deletion{30, refs("v1", "PersistentVolumeClaim", 1)}, true},
		"MRX-20/a definition of a kind":     {Deletion{30, refs("apiextensions.k8s.io/v1", "CustomResourceDefinition", 1)}, true},
		"MRX-20/a Namespace of another API": {Deletion{30, refs("example.org/v1", "Namespace", 1)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.deletion.IsMass(); got != c.want {
				t.Errorf("%v", got)
			}
		})
	}
}

func TestJudge(t *testing.T) {
	d := Deletion{12, refs("v1", "ConfigMap", 12)}
	for name, c := range map[string]struct {
		deletion  Deletion
		wait      time.Duration
		confirmed string
		waited    time.Duration
		want      Verdict
	}{
		"MRX-20/an ordinary deletion":       {Deletion{12, d.Objects[:1]}, time.Minute, "", 0, Ordinary},
		"MRX-21/it begins to wait":          {d, time.Minute, "", 0, Waits},
		"MRX-21/almost at the end":          {d, time.Minute, "", time.Minute - 1, Waits},
		"MRX-21/the wait is over":           {d, time.Minute, "", time.Minute, Elapsed},
		"MRX-22/confirmed":                  {d, time.Minute, d.Checksum(), 0, Confirmed},
		"MRX-22/another set is confirmed":   {d, time.Minute, Deletion{12, d.Objects[1:]}.Checksum(), 0, Waits},
		"MRX-22/any word confirms nothing":  {d, time.Minute, "true", 0, Waits},
		"MRX-23/nothing waits":              {d, 0, "", 0, Observed},
		"MRX-23/confirmed, nothing to wait": {d, 0, d.Checksum(), 0, Observed},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.deletion.Judge(c.wait, c.confirmed, c.waited); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}

func TestMessage(t *testing.T) {
	d := Deletion{12, refs("v1", "ConfigMap", 12)}
	turned := slices.Clone(d.Objects)
	slices.Reverse(turned)
	message := d.Message(10 * time.Minute)
	if message != (Deletion{12, turned}).Message(10*time.Minute) {
		t.Error("MRX-21: the message depends on the order")
	}
	const want = "The deletion of 12 of 12 objects that no manifest has any more waits: v1/ConfigMap/n/o00, "
	if !strings.HasPrefix(message, want) || !strings.Contains(message, "o09 and 2 more. It begins 10m0s after") || strings.Contains(message, "o10") {
		t.Errorf("MRX-21: %s", message)
	}
	if got := ChecksumIn(message); got != d.Checksum() || len(got) != 12 {
		t.Errorf("MRX-22: the message has the checksum %q, want %q", got, d.Checksum())
	}
	for _, other := range []string{"", "All resources are applied.", confirmation + "x", confirmation + "abcd", message + "."} {
		if got := ChecksumIn(other); got != "" {
			t.Errorf("MRX-22: %q has the checksum %q", other, got)
		}
	}
}
