package targets

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/rollout"
	"github.com/espalier-project/espalier/test/fake"
)

// inGroup runs a test with the targets canary, b and c, each of which has the member addons of one roll-out group, applied in its first revision.
func inGroup(t *testing.T, data map[string]any, test func(*seed)) {
	change := func(cfg *config.ResourceManagerConfiguration) {
		cfg.Controllers.ManagedResource.RolloutGroupNamespace = ptr.To("garden")
	}
	inBubble(t, change, []string{"canary", "b", "c"}, func(s *seed) {
		s.must(s.source, http.MethodPost, "/api/v1/namespaces/garden/configmaps", object("v1", "ConfigMap", "garden", "addons",
			"metadata.labels", map[string]any{resourcesv1alpha1.LabelRolloutGroup: ""}, "data", data))
		for name := range s.targets {
			s.access(name, "t")
			s.must(s.source, http.MethodPost, "/api/v1/namespaces/"+name+"/secrets", secret(name, "addons-1", map[string]string{"data.yaml": revision("1")}))
			s.must(s.source, http.MethodPost, "/apis/resources.gardener.cloud/v1alpha1/namespaces/"+name+"/managedresources",
				object("resources.gardener.cloud/v1alpha1", "ManagedResource", name, "addons", "spec.class", "resources",
					"metadata.annotations", map[string]any{resourcesv1alpha1.AnnotationRolloutGroup: "addons"},
					"spec.secretRefs", []any{map[string]any{"name": "addons-1"}}))
		}
		for name := range s.targets {
			s.within(time.Minute, "ROL-4: the first content of "+name+" is applied", func() bool { return s.revision(name) == "1" && s.applied(name, "addons")() })
		}
		test(s)
	})
}

// revision is a manifest of one ConfigMap.
func revision(value string) string {
	return "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: addons, namespace: default}\ndata: {revision: \"" + value + "\"}\n"
}

// broken is an object that no target takes.
const broken = "---\napiVersion: no.such.group/v1\nkind: Thing\nmetadata: {name: addons, namespace: default}\n"

// write gives the member of a target new content in a Secret of another name, as gardenlet does.
func (s *seed) write(target, value, manifest string) {
	s.t.Helper()
	s.must(s.source, http.MethodPost, "/api/v1/namespaces/"+target+"/secrets", secret(target, "addons-"+value, map[string]string{"data.yaml": manifest}))
	s.must(s.source, http.MethodPatch, "/apis/resources.gardener.cloud/v1alpha1/namespaces/"+target+"/managedresources/addons",
		map[string]any{"spec": map[string]any{"secretRefs": []any{map[string]any{"name": "addons-" + value}}}})
}

// revision is what a target has.
func (s *seed) revision(target string) string {
	return fake.Text(s.configMap(target, "addons"), "data", "revision")
}

// held is the reason and the message of RolloutHeld in a target's member.
func (s *seed) held(target string) string {
	s.lock.Lock()
	defer s.lock.Unlock()
	mr := s.source.GetLocked(fake.Key{GroupResource: schema.GroupResource{Group: "resources.gardener.cloud", Resource: "managedresources"}, Namespace: target, Name: "addons"})
	status, _ := mr["status"].(map[string]any)
	conditions, _ := status["conditions"].([]any)
	for _, c := range conditions {
		if condition := c.(map[string]any); condition["type"] == string(resourcesv1alpha1.RolloutHeld) {
			return condition["reason"].(string) + ": " + condition["message"].(string)
		}
	}
	return ""
}

func (s *seed) wantRevisions(rule string, want map[string]string) {
	s.t.Helper()
	for target, value := range want {
		if got := s.revision(target); got != value {
			s.t.Errorf("%s: %s has revision %s, want %s (%s)", rule, target, got, value, s.held(target))
		}
	}
}

// TestGroupOfTargets: members of one group in several targets of one process wait for each other.
func TestGroupOfTargets(t *testing.T) {
	inGroup(t, map[string]any{"waves": `[{namespaces: [canary]}]`, "pause": "1m"}, func(s *seed) {
		for _, target := range []string{"b", "c"} {
			s.write(target, "2", revision("2"))
		}
		s.write("canary", "2", revision("2")+broken)
		for _, target := range []string{"b", "c"} {
			s.within(2*time.Second, "ROL-5: "+target+" reports the halt and the member that failed", func() bool {
				held := s.held(target)
				return strings.HasPrefix(held, "RolloutHalted: ") && strings.Contains(held, "canary/addons")
			})
		}
		time.Sleep(time.Hour)
		s.wantRevisions("ROL-5", map[string]string{"canary": "2", "b": "1", "c": "1"})
		s.must(s.targets["b"].Server, http.MethodPatch, "/api/v1/namespaces/default/configmaps/addons", map[string]any{"data": map[string]any{"revision": "by hand"}})
		s.within(time.Second, "ROL-7: the drift of a member that is held is repaired to what was applied last", func() bool { return s.revision("b") == "1" })

		s.write("canary", "3", revision("3"))
		s.within(2*time.Second, "ROL-4: the repaired revision of the first wave is applied", func() bool { return s.revision("canary") == "3" })
		s.wantRevisions("ROL-4", map[string]string{"b": "1", "c": "1"})
		s.within(2*time.Minute, "ROL-4: the others follow after the pause", func() bool { return s.revision("b") == "2" && s.revision("c") == "2" })
	})
}

// TestGroupWithHangingTarget: a target that hangs holds up the members behind it until the group's timeout, and then halts the group; it delays no drift.
func TestGroupWithHangingTarget(t *testing.T) {
	inGroup(t, map[string]any{"waves": `[{namespaces: [canary]}]`, "pause": "1s", "timeout": "5m"}, func(s *seed) {
		s.targets["canary"].meets(func(request *http.Request) (*http.Response, error) {
			<-request.Context().Done()
			return nil, request.Context().Err()
		})
		for target := range s.targets {
			s.write(target, "2", revision("2"))
		}
		time.Sleep(4 * time.Minute)
		s.wantRevisions("ROL-4", map[string]string{"canary": "1", "b": "1", "c": "1"})
		s.must(s.targets["c"].Server, http.MethodPatch, "/api/v1/namespaces/default/configmaps/addons", map[string]any{"data": map[string]any{"revision": "by hand"}})
		s.within(time.Second, "TGT-10: a drift of another target is repaired", func() bool { return s.revision("c") == "1" })
		s.within(3*time.Minute, "ROL-5: the group is halted after the timeout", func() bool { return strings.HasPrefix(s.held("b"), "RolloutHalted: ") })

		s.targets["canary"].meets(nil)
		s.within(10*time.Minute, "ROL-4: all follow once the target answers", func() bool {
			return s.revision("canary") == "2" && s.revision("b") == "2" && s.revision("c") == "2"
		})
	})
}

// TestTurnNotTaken: the target, the Secret or the attention of a member goes while it waits. It fails a timeout after its turn began, and halts the group by
// that, until it is resumed or takes its turn.
func TestTurnNotTaken(t *testing.T) {
	for name, leave := range map[string]func(*seed){
		"T4-3/its target hibernates": func(s *seed) {
			s.must(s.source, http.MethodDelete, "/api/v1/namespaces/b/secrets/access", nil)
			s.within(30*time.Second, "TGT-4: b has no target", s.is("b", StateNoAccess))
		},
		"T4-3/its Secret is gone": func(s *seed) { s.must(s.source, http.MethodDelete, "/api/v1/namespaces/b/secrets/addons-2", nil) },
		"T4-3/it is ignored":      func(s *seed) { s.annotate("b", resourcesv1alpha1.AnnotationIgnore, "true") },
	} {
		t.Run(name, func(t *testing.T) {
			inGroup(t, map[string]any{"waves": `[{namespaces: [canary]}, {namespaces: [b]}]`, "pause": "1m", "timeout": "2m"}, func(s *seed) {
				for _, target := range []string{"canary", "b", "c"} {
					s.write(target, "2", revision("2"))
				}
				s.within(30*time.Second, "ROL-4: b waits", func() bool { return strings.HasPrefix(s.held("b"), "RolloutWaiting") })
				wanted := rollout.RevisionIn(strings.TrimPrefix(s.held("b"), "RolloutWaiting: "))
				leave(s)
				s.within(5*time.Minute, "T4-3: b halts the group", func() bool {
					held := s.held("c")
					return strings.HasPrefix(held, "RolloutHalted: ") && strings.Contains(held, "b/addons failed (it did not take its turn within 2m0s)")
				})
				time.Sleep(time.Hour)
				s.wantRevisions("ROL-5", map[string]string{"canary": "2", "b": "1", "c": "1"})
				token := rollout.TokenOf(types.NamespacedName{Namespace: "b", Name: "addons"}, wanted)
				s.must(s.source, http.MethodPatch, "/api/v1/namespaces/garden/configmaps/addons",
					map[string]any{"metadata": map[string]any{"annotations": map[string]any{resourcesv1alpha1.AnnotationRolloutResumed: string(token)}}})
				s.within(3*time.Minute, "ROL-6: c follows once the failure of b is resumed", func() bool { return s.revision("c") == "2" })
			})
		})
	}
}

// TestHeldCanary: while the canary is ignored, or its objects are left alone, it has its former content, and lets nobody pass. It fails after the timeout.
func TestHeldCanary(t *testing.T) {
	for name, tc := range map[string]struct{ annotation, value, why string }{
		"T4-3/left alone": {resourcesv1alpha1.AnnotationLeaveAloneUntil, "", "it is not through after 2m0s"},
		"T4-3/ignored":    {resourcesv1alpha1.AnnotationIgnore, "true", "it did not take its turn within 2m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			inGroup(t, map[string]any{"waves": `[{namespaces: [canary]}]`, "pause": "1m", "timeout": "2m"}, func(s *seed) {
				if tc.value == "" {
					tc.value = time.Now().Add(20 * time.Hour).UTC().Format(time.RFC3339)
				}
				s.annotate("canary", tc.annotation, tc.value)
				time.Sleep(30 * time.Second)
				for _, target := range []string{"canary", "b"} {
					s.write(target, "2", revision("2"))
				}
				s.within(5*time.Minute, "T4-3: the canary halts the group", func() bool {
					held := s.held("b")
					return strings.HasPrefix(held, "RolloutHalted: ") && strings.Contains(held, "canary/addons failed ("+tc.why)
				})
				time.Sleep(time.Hour)
				s.wantRevisions("ROL-4", map[string]string{"canary": "1", "b": "1"})
				s.annotate("canary", tc.annotation, nil)
				s.within(30*time.Second, "MRF-13: the canary gets its content", func() bool { return s.revision("canary") == "2" })
				s.within(5*time.Minute, "ROL-4: b follows", func() bool { return s.revision("b") == "2" })
			})
		})
	}
}

// TestContentThatChangesOften: content that changes more often than the pause arrives all the same.
func TestContentThatChangesOften(t *testing.T) {
	inGroup(t, map[string]any{"waves": `[{namespaces: [canary]}]`, "pause": "5m", "timeout": "10m"}, func(s *seed) {
		for i := range 5 {
			s.write("b", fmt.Sprint(i+2), revision(fmt.Sprint(i+2)))
			time.Sleep(4 * time.Minute)
		}
		if got := s.revision("b"); got == "1" {
			t.Errorf("ROL-4: after 20 minutes b has its former content: %s", s.held("b"))
		}
	})
}

// annotate sets an annotation of the member of a target, nil for none.
func (s *seed) annotate(target, name string, value any) {
	s.t.Helper()
	s.must(s.source, http.MethodPatch, "/apis/resources.gardener.cloud/v1alpha1/namespaces/"+target+"/managedresources/addons",
		map[string]any{"metadata": map[string]any{"annotations": map[string]any{name: value}}})
}
