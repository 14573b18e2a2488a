package brake

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/test/expect"
)

func refs(apiVersion, kind string, n int) (refs []resourcesv1alpha1.ObjectReference) {
	for i := range n {
		refs = append(refs, resourcesv1alpha1.ObjectReference{ObjectReference: corev1.ObjectReference{APIVersion: apiVersion, Kind: kind, Namespace: "n", Name: fmt.Sprintf("o%02d", i)}})
	}
	return refs
}

// ids are the objects of refs with the indexes from and before to.
func ids(refs []resourcesv1alpha1.ObjectReference) (ids []objects.ID) {
	for i := range refs {
		ids = append(ids, objects.IDOfEntry(&refs[i]))
	}
	return ids
}

// TestDeletion_Rule has the deletions of some of 60 ConfigMaps, of which the first 30 are in Secret a (15 in each of two keys), and the others in Secret b.
func TestDeletion_Rule(t *testing.T) {
	all := refs("v1", "ConfigMap", 60)
	manifests := Manifests{}
	for i, id := range ids(all) {
		switch {
		case i < 15:
			manifests[id] = Manifest{"n/a", "x"}
		case i < 30:
			manifests[id] = Manifest{"n/a", "y"}
		default:
			manifests[id] = Manifest{"n/b", "x"}
		}
	}
	const half = "they are half or more of the objects"
	for name, c := range map[string]struct {
		deletion Deletion
		want     string
	}{
		"MRX-20/nothing":                      {Deletion{Had: 20}, ""},
		"MRX-20/all of nine":                  {Deletion{Had: 9, Objects: all[:9]}, ""},
		"MRX-20/all of ten":                   {Deletion{Had: 10, Objects: all[:10]}, half},
		"MRX-20/all but one":                  {Deletion{Had: 11, Objects: all[:10]}, half},
		"MRX-20/half of many":                 {Deletion{Had: 60, Objects: all[20:50], Stay: ids(append(all[:20:20], all[50:]...)), Manifests: manifests}, half},
		"MRX-20/nine of ten":                  {Deletion{Had: 10, Objects: all[:9]}, ""},
		"MRX-20/less than half, of two keys":  {Deletion{Had: 60, Objects: all[5:25], Stay: ids(append(all[:5:5], all[25:]...)), Manifests: manifests}, ""},
		"MRX-20/a key of a Secret":            {Deletion{Had: 60, Objects: all[:15], Stay: ids(all[15:]), Manifests: manifests}, `they include all objects of key "x" of Secret n/a`},
		"MRX-20/a key but one":                {Deletion{Had: 60, Objects: all[:14], Stay: ids(all[14:]), Manifests: manifests}, ""},
		"MRX-20/a Secret":                     {Deletion{Had: 70, Objects: all[:30], Stay: ids(all[30:]), Manifests: manifests}, "they include all objects of Secret n/a"},
		"MRX-20/a small Secret":               {Deletion{Had: 100, Objects: all[:9], Stay: ids(all[30:]), Manifests: manifests}, ""},
		"MRX-20/before the first run is over": {Deletion{Had: 60, Objects: all[:10], Stay: ids(all[10:])}, "it is unknown which Secrets their manifests were in"},
		"MRX-20/a Namespace":                  {Deletion{Had: 30, Objects: refs("v1", "Namespace", 1)}, "v1/Namespace/n/o00 is among them"},
		"MRX-20/a PersistentVolume":           {Deletion{Had: 30, Objects: refs("v1", "PersistentVolume", 1)}, "v1/PersistentVolume/n/o00 is among them"},
		"MRX-20/a PersistentVolumeClaim":      {Deletion{Had: 30, Objects: refs("v1", "PersistentVolumeClaim", 1)}, "v1/PersistentVolumeClaim/n/o00 is among them"},
		"MRX-20/a definition of a kind": {Deletion{Had: 30, Objects: refs("apiextensions.k8s.io/v1", "CustomResourceDefinition", 1)},
			"apiextensions.k8s.io/v1/CustomResourceDefinition/n/o00 is among them"},
		"MRX-20/a Namespace of another API": {Deletion{Had: 30, Objects: refs("example.org/v1", "Namespace", 1)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := c.deletion.Rule()
			expect.True(t, got == c.want && c.deletion.IsMass() == (c.want != ""), "got %q, want %q", got, c.want)
		})
	}
}

func TestJudge(t *testing.T) {
	d := Deletion{Had: 12, Objects: refs("v1", "ConfigMap", 12)}
	for name, c := range map[string]struct {
		deletion  Deletion
		wait      time.Duration
		confirmed string
		waited    time.Duration
		want      Outcome
	}{
		"MRX-20/an ordinary deletion":       {Deletion{Had: 12, Objects: d.Objects[:1]}, time.Minute, "", 0, Ordinary},
		"MRX-21/it begins to wait":          {d, time.Minute, "", 0, Waits},
		"MRX-21/almost at the end":          {d, time.Minute, "", time.Minute - 1, Waits},
		"MRX-21/the wait is over":           {d, time.Minute, "", time.Minute, Elapsed},
		"MRX-22/confirmed":                  {d, time.Minute, d.Checksum(), 0, Confirmed},
		"MRX-22/another set is confirmed":   {d, time.Minute, Deletion{Had: 12, Objects: d.Objects[1:]}.Checksum(), 0, Waits},
		"MRX-22/any word confirms nothing":  {d, time.Minute, "true", 0, Waits},
		"MRX-23/nothing waits":              {d, 0, "", 0, Observed},
		"MRX-23/confirmed, nothing to wait": {d, 0, d.Checksum(), 0, Observed},
	} {
		t.Run(name, func(t *testing.T) {
			expect.Equal(t, c.deletion.Judge(c.wait, c.confirmed, c.waited), c.want)
		})
	}
}

func TestMessage(t *testing.T) {
	d := Deletion{Had: 12, Objects: refs("v1", "ConfigMap", 12)}
	turned := slices.Clone(d.Objects)
	slices.Reverse(turned)
	message := d.Message(10 * time.Minute)
	expect.Equal(t, message, (Deletion{Had: 12, Objects: turned}).Message(10*time.Minute), "MRX-21: the message depends on the order")
	const want = "The deletion of 12 of 12 objects that no manifest has any more waits, because they are half or more of the objects: v1/ConfigMap/n/o00, "
	if !strings.HasPrefix(message, want) || !strings.Contains(message, "o09 and 2 more. It begins when this condition has been visible for 10m0s, or at once") || strings.Contains(message, "o10") {
		t.Errorf("MRX-21: %s", message)
	}
	expect.Equal(t, ChecksumIn("2 errors occurred: ["+message+": b]"), d.Checksum(), "MRX-22: the checksum in the middle of a message")
	if got := ChecksumIn(message); got != d.Checksum() || len(got) != 12 {
		t.Errorf("MRX-22: the message has the checksum %q, want %q", got, d.Checksum())
	}
	for _, other := range []string{"", "All resources are applied.", confirmation + "x", confirmation + "abcd", message + "0"} {
		expect.Equal(t, ChecksumIn(other), "", "MRX-22: %q has the checksum", other)
	}
}
