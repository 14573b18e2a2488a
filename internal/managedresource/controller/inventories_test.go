package controller

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

const onceOnly = "annotations: {resources.gardener.cloud/ignore: 'true'}"

func oldConfigMap(name, value, metadata string) string {
	return strings.Replace(configMap(name, value, metadata), "apiVersion: v1", "apiVersion: old.example/v1", 1)
}

// equivalent makes ConfigMaps of both groups one to a ManagedResource.
func (f *fixture) equivalent(name string) {
	f.Helper()
	f.edit(name, func(mr *resourcesv1alpha1.ManagedResource) {
		mr.Spec.Equivalences = [][]metav1.GroupKind{{{Kind: "ConfigMap"}, {Group: "old.example", Kind: "ConfigMap"}}}
	})
}

// entries tells the inventory of a ManagedResource.
func (f *fixture) entries(name string) string {
	var all []string
	for _, ref := range f.get(name).Status.Resources {
		all = append(all, fmt.Sprintf("%s/%s/%s uid=%s path=%s ignore=%s", ref.APIVersion, ref.Namespace, ref.Name, ref.UID, ref.FieldPath, ref.Annotations[resourcesv1alpha1.AnnotationIgnore]))
	}
	return strings.Join(all, "; ")
}

// Promises about ownership: what was created once, and moves to an equivalent kind while a deletion is pending, is on record as ours still.
func TestCreatedOnceMovesToEquivalentKind(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"at once", "while a deletion is pending", "while a deletion is pending, and a restart",
		"while a deletion is pending, and the old group is not served any more"} {
		t.Run(how, func(t *testing.T) {
			f := newFixture(t)
			f.managed("m")
			f.equivalent("m")
			f.manifests("m", "2", oldConfigMap("a", "1", onceOnly)+configMap("b", "1", ""))
			f.complete("m")
			if how != "at once" {
				f.target.change("b", func(o *unstructured.Unstructured) { o.SetFinalizers([]string{"x/y"}) })
			}
			f.target.withoutOld(strings.Contains(how, "not served"))
			f.manifests("m", "3", configMap("a", "1", onceOnly))
			_, _ = f.run("m")
			if how != "at once" {
				f.target.remove("b")
				f.clock.SetTime(f.clock.Now().Add(2 * time.Minute))
			}
			if how == "while a deletion is pending, and a restart" {
				f.restart("m")
			}
			for range 3 {
				f.complete("m")
			}
			must.True(t, strings.HasPrefix(f.condition("m"), "True"), "%v", f.condition("m"))
			f.secret("m", "4")
			for range 3 {
				f.complete("m")
			}
			expect.False(t, expect.OK(f.target.value("a")), "what was created for the ManagedResource stays for ever")
		})
	}
}

// Promises about ownership: an entry that somebody takes out, or changes, is mended: what was created once is ours still.
func TestEntryOfCreatedOnceIsMended(t *testing.T) {
	t.Parallel()
	for _, restarted := range []bool{false, true} {
		for how, edit := range map[string]func(*resourcesv1alpha1.ManagedResourceStatus){
			"taken out":           func(s *resourcesv1alpha1.ManagedResourceStatus) { s.Resources = nil },
			"without annotations": func(s *resourcesv1alpha1.ManagedResourceStatus) { s.Resources[0].Annotations = nil },
			"another uid":         func(s *resourcesv1alpha1.ManagedResourceStatus) { s.Resources[0].UID = "x" },
		} {
			t.Run(fmt.Sprint(how, ", after a restart: ", restarted), func(t *testing.T) {
				f := newApplied(t, "m", "a!=1")
				if restarted {
					f.restart("m")
					f.complete("m")
				}
				before := f.entries("m")
				mr := f.get("m")
				edit(&mr.Status)
				f.must(f.source.Status().Update(f.ctx, mr))
				f.complete("m")
				f.complete("m")
				expect.Equal(t, f.entries("m"), before)
				f.secret("m", "2")
				f.complete("m")
				expect.False(t, expect.OK(f.target.value("a")), "what was created for the ManagedResource stays for ever")
			})
		}
	}
}

// Promises about ownership: an entry of a cluster-scoped object with a namespace, as others may have written it, and the manifest releases it.
func TestReleasedThoughItsEntryHasANamespace(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.target.scope(true)
	f.apply("m", "a=1")
	f.formerLocation("m")
	f.restart("m")
	f.manifests("m", "2", configMap("a", "1", released))
	f.complete("m")
	expect.True(t, expect.OK(f.target.value("a")), "an object that the manifest releases was deleted %v %v", f.condition("m"), f.entries("m"))
}

// Promises about ownership: inventory names it twice; released in a run that fails for another; then the MR is deleted.
func TestReleasedThoughNamedTwice(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"left out", "deleted"} {
		t.Run(how, func(t *testing.T) {
			f := newApplied(t, "m", "a!=1")
			mr := f.get("m")
			for i := range mr.Status.Resources { // As others write it.
				mr.Status.Resources[i].UID = ""
			}
			mr.Status.Resources = append(mr.Status.Resources, mr.Status.Resources[0])
			f.must(f.source.Status().Update(f.ctx, mr))
			f.restart("m")
			f.refuse(http.MethodPost, "b", http.StatusForbidden)
			f.manifests("m", "2", configMap("a", "1", released)+configMap("b", "1", ""))
			_, _ = f.run("m")
			f.staysThough(how)
		})
	}
}

// Promises about ownership: the inventory has it by two equivalent kinds, as after an unfinished run.
func TestReleasedThoughNamedByTwoKinds(t *testing.T) {
	t.Parallel()
	for _, once := range []string{"", onceOnly} {
		for _, how := range []string{"left out", "deleted"} {
			t.Run(how+" "+once, func(t *testing.T) {
				f := newFixture(t)
				f.managed("m")
				f.equivalent("m")
				f.manifests("m", "2", oldConfigMap("a", "1", once))
				f.complete("m")
				f.refuse(http.MethodPost, "b", http.StatusForbidden)
				f.manifests("m", "3", configMap("a", "1", once)+configMap("b", "1", ""))
				_, _ = f.run("m")
				f.manifests("m", "4", configMap("a", "1", released)+configMap("b", "1", ""))
				_, _ = f.run("m")
				_, _ = f.run("m")
				f.staysThough(how)
			})
		}
	}
}

// Promises about ownership: an entry of a former place, and the manifest releases the object by its present one.
func TestReleasedWhereItsKindLives(t *testing.T) {
	t.Parallel()
	f := newApplied(t, "m", "a=1")
	f.target.remove("a")
	f.target.scope(true)
	f.refuse(http.MethodPost, "b", http.StatusForbidden)
	f.secret("m", "2", "a=1", "b=1")
	f.runs("m", 3)
	must.True(t, expect.OK(f.target.value("a")), "not created")
	f.manifests("m", "3", configMap("a", "1", released)+configMap("b", "1", ""))
	f.runs("m", 3)
	expect.True(t, expect.OK(f.target.value("a")), "an object that the manifest releases was deleted")
}

// Promises about ownership: an entry that can't exist hides the one that does.
func TestImpossibleEntryHidesTheRealOne(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"", "a/b/c"} {
		t.Run(version, func(t *testing.T) {
			f := newApplied(t, "m", "a=1")
			mr := f.get("m")
			odd := *mr.Status.Resources[0].DeepCopy()
			odd.APIVersion = version
			mr.Status.Resources = append(mr.Status.Resources, odd)
			f.must(f.source.Status().Update(f.ctx, mr))
			f.restart("m")
			f.secret("m", "2")
			f.complete("m")
			expect.False(t, expect.OK(f.target.value("a")), "it is left behind")
		})
	}
}

// Promise: "Only an object is deleted that carries the origin of its ManagedResource, or that resource-manager is on record to have created for it." An
// entry without a UID, as the reference writes it, is a record for its very place, and none for where its kind lives by now.
func TestCreatedOnceAtAFormerPlaceIsNoProof(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		namespace     string
		clusterScoped bool
		kept          bool
	}{
		"it had a namespace":                          {"n", true, false},
		"it had the namespace default":                {"default", true, false},
		"it had the namespace default, and is wanted": {"default", true, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.target.scope(tc.clusterScoped) // Its CustomResourceDefinition was deleted, with all objects, and created with another scope.
			f.target.put("a", "theirs", nil) // Somebody else's.
			f.managed("m")
			mr := f.get("m")
			mr.Status.Resources = []resourcesv1alpha1.ObjectReference{{
				ObjectReference: corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: tc.namespace, Name: "a"},
				Annotations:     map[string]string{resourcesv1alpha1.AnnotationIgnore: "true"},
			}}
			f.must(f.source.Status().Update(f.ctx, mr))
			if tc.kept {
				f.secret("m", "2", "a!=1")
				f.complete("m")
				t.Log(f.entries("m"))
			}
			f.secret("m", "3")
			f.runs("m", 3)
			expect.True(t, expect.OK(f.target.value("a")), "somebody else's object was deleted")
		})
	}
}

// MR-30, and the reason that inventories_test.go gives for entries with a namespace, "as others may have written it": what was created once, and whose
// entry names a namespace that its kind has not, is on record as ours still, and deleted when the manifest has it no more.
func TestCreatedOnceThoughItsEntryHasANamespace(t *testing.T) {
	t.Parallel()
	for _, wanted := range []bool{false, true} {
		f := newFixture(t)
		f.target.scope(true)
		f.apply("m", "a!=1")
		f.formerLocation("m")
		f.restart("m")
		if wanted { // One run with the manifest as it was takes the record away.
			f.complete("m")
			t.Log(f.entries("m"))
			f.restart("m")
		}
		f.secret("m", "2")
		f.complete("m")
		expect.False(t, expect.OK(f.target.value("a")),
			"a run between: %t; what was created for the ManagedResource stays for ever", wanted)
	}
}
