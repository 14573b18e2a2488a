package source

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// stopFixture follows the Namespace garden of a source until the test ends.
func stopFixture(t *testing.T, cluster *fake.Clientset, lines *[]string) *EmergencyStop {
	t.Helper()
	log := funcr.New(func(_, line string) { *lines = append(*lines, line) }, funcr.Options{})
	stop := NewEmergencyStop(cluster, prometheus.NewGauge(prometheus.GaugeOpts{Name: "x"}), log)
	go stop.Start(t.Context()) //nolint:errcheck // It ends with the context.
	if err := stop.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	return stop
}

func TestEmergencyStopFollowsTheAnnotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		annotated := func(value string) *corev1.Namespace {
			return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "garden", Annotations: map[string]string{AnnotationEmergencyStop: value}}}
		}
		var lines []string
		cluster := fake.NewClientset(annotated("true"))
		stop := stopFixture(t, cluster, &lines)
		is := func(what string, want bool) {
			t.Helper()
			synctest.Wait()
			metric := &dto.Metric{}
			_ = stop.gauge.Write(metric)
			if stop.Stops("shoot--dev--web") != want || stop.Stops("garden") || (metric.GetGauge().GetValue() == 1) != want {
				t.Errorf("MRX-26: %s: stops shoots: %t, garden: %t, gauge %v; want %t", what, stop.Stops("shoot--dev--web"), stop.Stops("garden"), metric.GetGauge().GetValue(), want)
			}
		}
		is("the annotation is there at the start", true)
		for _, value := range []string{"false", "true", "", "true"} {
			if _, err := cluster.CoreV1().Namespaces().Update(t.Context(), annotated(value), metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			is("the annotation is "+value, value == "true")
		}
		if err := cluster.CoreV1().Namespaces().Delete(t.Context(), "garden", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		is("the Namespace is gone", false)
		for _, action := range cluster.Actions() {
			if list, is := action.(clienttesting.ListAction); is && list.GetListRestrictions().Fields.String() != "metadata.name=garden" {
				t.Errorf("MRX-28: a list is restricted to %q", list.GetListRestrictions().Fields)
			}
		}
	})
}

// TestEmergencyStopWithoutRight: nobody waits for a right that is missing, which is logged once and asked for six times an hour; given later, it counts.
func TestEmergencyStopWithoutRight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "garden", Annotations: map[string]string{AnnotationEmergencyStop: "true"}}})
		var allowed atomic.Bool
		var requests atomic.Int64
		cluster.PrependReactor("*", "namespaces", func(clienttesting.Action) (bool, runtime.Object, error) {
			requests.Add(1)
			return !allowed.Load(), nil, apierrors.NewForbidden(schema.GroupResource{Resource: "namespaces"}, "", errors.New("nobody allows it"))
		})
		var lines []string
		stop := stopFixture(t, cluster, &lines)
		time.Sleep(time.Hour + time.Second)
		synctest.Wait()
		if stop.Stops("shoot--dev--web") || requests.Load() > 7 || len(lines) != 1 || !strings.Contains(lines[0], "nobody allows it") {
			t.Errorf("MRX-28: stops: %t, %d requests, logged %q", stop.Stops("shoot--dev--web"), requests.Load(), lines)
		}
		allowed.Store(true)
		time.Sleep(refusedRetry)
		if synctest.Wait(); !stop.Stops("shoot--dev--web") {
			t.Error("MRX-28: the right that was given later does not count")
		}
	})
}

func TestNoEmergencyStop(t *testing.T) {
	var stop *EmergencyStop
	if err := stop.Wait(t.Context()); err != nil || stop.Stops("shoot--dev--web") {
		t.Errorf("MRX-28: a process without a stop stops: %t, %v", stop.Stops("shoot--dev--web"), err)
	}
}
