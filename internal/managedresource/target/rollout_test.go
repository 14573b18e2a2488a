package target

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

var deploymentKind = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}

// rollout is a server with a Deployment that says of itself that it is rolled out.
type rollout struct {
	*server
	*Watches
	*objects.Tracker
	assessor *Assessor
	refs     []resourcesv1alpha1.ObjectReference
}

// putAs writes an object with more metadata.
func (s *server) putAs(gvk schema.GroupVersionKind, name string, meta, change map[string]any) {
	s.mu.Lock()
	all := map[string]any{"name": name, "namespace": "n", "uid": name, "resourceVersion": fmt.Sprint(s.version + 1)}
	s.mu.Unlock()
	maps.Copy(all, meta)
	change = maps.Clone(change)
	if change == nil {
		change = map[string]any{}
	}
	change["metadata"] = all
	s.put(gvk, "n", name, change)
}

func controlledBy(kind, uid string) []any {
	return []any{map[string]any{"apiVersion": "apps/v1", "kind": kind, "name": uid, "uid": uid, "controller": true}}
}

var managedLabel = map[string]any{"managed": "yes", "app": "d"}

func newRollout(t *testing.T, replicas int) *rollout {
	t.Helper()
	s, client := newServer(t)
	s.selective = true
	s.serve(deploymentKind, "deployments", true)
	s.serve(podKind, "pods", true)
	s.serve(replicaSetKind, "replicasets", true)
	l := objects.New()
	w := started(t, client, l)
	r := &rollout{s, w, l, NewAssessor(client, l, w, clocktesting.NewFakePassiveClock(time.Now())), []resourcesv1alpha1.ObjectReference{{
		ObjectReference: corev1.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "n", Name: "d"}}}}
	r.putLabelledWith(managedLabel, "True", replicas)
	return r
}

// rolledOutDeployment is one whose status reports the end of the roll-out.

func rolledOutDeployment(available string, replicas int) map[string]any {
	return map[string]any{
		"spec": map[string]any{"replicas": replicas, "selector": map[string]any{"matchLabels": map[string]any{"app": "d"}}},
		"status": map[string]any{"observedGeneration": 1, "conditions": []any{map[string]any{"type": "Available", "status": available},
			map[string]any{"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"}}},
	}
}

func (r *rollout) putLabelledWith(labels map[string]any, available string, replicas int) {
	r.putAs(deploymentKind, "d", map[string]any{"labels": labels, "generation": 1}, rolledOutDeployment(available, replicas))
}

func (r *rollout) follow(t *testing.T) {
	t.Helper()
	run(t, r.Watches)
	ref := objects.RefOf(&r.refs[0])
	r.Watches.Track(owner, []objects.Ref{ref})
	eventually(t, "all is covered", func() bool { return r.Covered(ref) && r.Progress(owner).AllKnown })
}

func (r *rollout) set(name string, labels map[string]any, owners []any) {
	r.putAs(replicaSetKind, name, map[string]any{"labels": labels, "ownerReferences": owners}, nil)
}

func (r *rollout) pod(name, set string, labels, more map[string]any) {
	meta := map[string]any{"labels": labels, "ownerReferences": controlledBy("ReplicaSet", set)}
	maps.Copy(meta, more)
	r.putAs(podKind, name, meta, map[string]any{"status": map[string]any{"phase": "Running"}})
}

func (r *rollout) progressing(t *testing.T) string {
	t.Helper()
	assessment, err := r.assessor.Assess(t.Context(), r.refs)
	must.Succeed(t, err)
	return string(assessment.Progressing.Status)
}

// hanging answers nothing for Widgets, as an aggregated API server that does not answer, and all else at once.
type hanging struct{}

func (hanging) RoundTrip(r *http.Request) (*http.Response, error) {
	reply := func(body any) (*http.Response, error) {
		content, _ := json.Marshal(body)
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(string(content))), Request: r}, nil
	}
	switch path := r.URL.Path; {
	case path == "/apis/example.com/v1":
		return reply(map[string]any{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "example.com/v1", "resources": []any{map[string]any{"name": "widgets", "namespaced": true, "kind": "Widget"}}})
	case path == "/apis/apps/v1":
		return reply(map[string]any{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "apps/v1", "resources": []any{map[string]any{"name": "statefulsets", "namespaced": true, "kind": "StatefulSet"}}})
	case strings.Contains(path, "/statefulsets/"):
		return reply(map[string]any{"kind": "StatefulSet", "apiVersion": "apps/v1", "metadata": map[string]any{"namespace": "n", "name": "s", "uid": "s", "resourceVersion": "5"}})
	}
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// MRB-28, MRB-35: what is known to be unhealthy is told, however many objects of a kind can't be read.
func TestReadsThatHang(t *testing.T) {
	for _, number := range []int{3, 7} {
		t.Run(fmt.Sprint(number), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, err := NewClient(&rest.Config{Host: "http://target", QPS: -1}, &http.Client{Transport: hanging{}}, NewMetrics(prometheus.NewRegistry()))
				must.Succeed(t, err)
				l := objects.New()
				a := NewAssessor(client, l, NewWatches(client, l, WatchOptions{}), clocktesting.NewFakePassiveClock(time.Now()))
				refs := []resourcesv1alpha1.ObjectReference{{ObjectReference: corev1.ObjectReference{APIVersion: "apps/v1", Kind: "StatefulSet", Namespace: "n", Name: "s"}}}
				for i := range number {
					refs = append(refs, resourcesv1alpha1.ObjectReference{ObjectReference: corev1.ObjectReference{APIVersion: "example.com/v1", Kind: "Widget", Namespace: "n", Name: fmt.Sprint("w", i)}})
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // What the controllers of health take: the sync period.
				defer cancel()
				assessment, err := a.Assess(ctx, refs)
				if err != nil || !strings.HasPrefix(assessment.Health.Message, `StatefulSet "n/s" is unhealthy`) {
					t.Errorf("MRB-35: got %q, %v (late: %t)", assessment.Health.Message, err, errors.Is(ctx.Err(), context.DeadlineExceeded))
				}
			})
		})
	}
}

// MRH-8: a kind is checked in exactly one version; what was said of the object in that version is not said of another one.
func TestVersionOfHealth(t *testing.T) {
	s, client := newServer(t)
	s.serve(vpaV1, "verticalpodautoscalers", true)
	s.serve(vpaBeta, "verticalpodautoscalers", true)
	l := objects.New()
	w := started(t, client, l)
	run(t, w)
	s.put(vpaV1, "n", "vpa", unhealthyAutoscaler)
	s.put(vpaBeta, "n", "vpa", unhealthyAutoscaler)
	a := NewAssessor(client, l, w, clocktesting.NewFakePassiveClock(time.Now()))
	judge := func(gvk schema.GroupVersionKind) string {
		ref := entryOf(refTo(gvk, "n", "vpa"))
		w.Track(owner, []objects.Ref{objects.RefOf(&ref)})
		eventually(t, "covered", func() bool { return w.Covered(objects.RefOf(&ref)) })
		// The run finds it as its manifest says.
		object, err := client.Get(t.Context(), gvk, "n", "vpa")
		must.Succeed(t, err)
		l.MarkInSync(owner, w.View().Observation(object))
		assessment, err := a.Assess(t.Context(), []resourcesv1alpha1.ObjectReference{ref})
		must.Succeed(t, err)
		return string(assessment.Health.Status)
	}
	must.Equal(t, judge(vpaV1), "False", "in v1")
	expect.Equal(t, judge(vpaBeta), "True", "MRH-8: in v1beta2, which is not checked")
}
