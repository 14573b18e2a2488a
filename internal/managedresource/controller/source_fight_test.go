package controller

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
)

// overwrites has a manager write the Secret m, so that the ConfigMap a has a value.
func (f *fixture) overwrites(manager, version, value string) {
	f.Helper()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "m", UID: "m", ResourceVersion: version},
		Data:       map[string][]byte{"x.yaml": []byte(configMap("a", value, ""))},
	}
	_, err := f.secrets.CoreV1().Secrets("n").Update(f.ctx, secret, metav1.UpdateOptions{FieldManager: manager})
	f.must(err)
	f.triggers.SecretChanged(types.NamespacedName{Namespace: "n", Name: "m"}, "m/"+version)
}

// MRB-41: two managers that overwrite a Secret in turn are named by one Event, and their changes are applied less and
// less often; the last one is applied in any case, and a wish for a run at once.
func TestSourceFight(t *testing.T) {
	f := newFixture(t)
	f.managed("m", "a=0")
	f.complete("m")
	held, last := 0, ""
	for i := range 60 {
		manager := []string{"gardenlet", "extension"}[i%2]
		last = "secret-value-of-" + manager
		f.overwrites(manager, fmt.Sprint(i+2), last)
		result, err := f.run("m")
		f.must(err)
		if result.RequeueAfter > 0 {
			held++
		}
		f.clock.SetTime(f.clock.Now().Add(time.Second))
	}
	if held < 40 {
		t.Errorf("MRB-41: %d of 60 runs are held back", held)
	}
	events := f.events()
	if want := `SourceFight: Secret m is overwritten alternately by "extension" and "gardenlet"`; strings.Count(events, want) != 1 || strings.Contains(events, "secret-value") {
		t.Errorf("MRB-41: the Events are\n%s", events)
	}
	if fights, runs := total(t, f.Metrics.sourceFights), total(t, f.Metrics.sourceRunsDelayed); fights != 1 || int(runs) != held {
		t.Errorf("MRB-41: metrics tell of %v fights, and of %v runs that were held back", fights, runs)
	}

	f.clock.SetTime(f.clock.Now().Add(30 * time.Second))
	f.complete("m")
	if value, _ := f.target.value("a"); value != last {
		t.Errorf("MRB-41: the last content is not applied: %s", value)
	}
	f.overwrites("gardenlet", "100", "wished for")
	mr := f.get("m")
	mr.Annotations = map[string]string{resourcesv1alpha1.AnnotationOperation: resourcesv1alpha1.OperationReconcile}
	f.must(f.source.Update(f.ctx, mr))
	f.complete("m")
	if value, _ := f.target.value("a"); value != "wished for" {
		t.Errorf("MRB-41: a run that was asked for is held back: %s", value)
	}
	f.clock.SetTime(f.clock.Now().Add(time.Hour))
	f.triggers.sweep()
	if known := f.states.get(f.get("m")); known.Alternation != nil {
		t.Errorf("MRB-41: it is remembered for ever: %+v", known.Alternation)
	}
}

// MRB-41: one manager may change its content as often as it likes, also back and forth.
func TestOneManagerIsNoFight(t *testing.T) {
	for name, values := range map[string]int{"MRB-41/another content each time": 40, "MRB-41/back and forth": 2} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.managed("m", "a=0")
			f.complete("m")
			for i := range 40 {
				want := fmt.Sprint(i % values)
				f.overwrites("gardenlet", fmt.Sprint(i+2), want)
				f.complete("m")
				if value, _ := f.target.value("a"); value != want {
					t.Fatalf("change %d is held back: %s", i, value)
				}
				f.clock.SetTime(f.clock.Now().Add(100 * time.Millisecond))
			}
			if events := f.events(); events != "" {
				t.Errorf("the Events are %s", events)
			}
		})
	}
}
