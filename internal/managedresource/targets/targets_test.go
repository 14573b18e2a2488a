package targets

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	"github.com/espalier-project/espalier/test/fake"
)

// soon is enough for a Lease that is taken for the first time.
const soon = 30 * time.Second

// TestManyTargets: the ManagedResources of each namespace with the label are applied to its target, by one watch of the source.
func TestManyTargets(t *testing.T) {
	names := []string{"shoot-a", "shoot-b", "shoot-c"}
	inBubble(t, nil, names, func(s *seed) {
		for _, name := range names {
			s.access(name, "first")
			s.managed(name, "addons", 3)
		}
		for _, name := range names {
			s.within(soon, "addons of "+name+" are applied", s.applied(name, "addons"))
			if s.configMap(name, "addons-2") == nil {
				t.Errorf("TGT-1: the objects of %s are not there", name)
			}
		}
		for _, name := range names {
			s.drifts(name, "addons-1", time.Second)
		}
		// The second watch of Namespaces is that of the emergency stop (MRX-28).
		for path, want := range map[string]int{"secrets": 1, "managedresources": 1, "namespaces": 2} {
			group := map[bool]string{true: "/apis/resources.gardener.cloud/v1alpha1/", false: "/api/v1/"}[path == "managedresources"]
			if got := s.sent("source watch " + group + path); got != want {
				t.Errorf("TGT-2: %d watches of %s of the source, want %d", got, path, want)
			}
		}
	})
}

// TestHandOver: a namespace that loses the label is let go at once, without a write, and one that gets it is verified without one.
func TestHandOver(t *testing.T) {
	inBubble(t, nil, []string{"shoot-a", "shoot-b"}, func(s *seed) {
		for _, name := range []string{"shoot-a", "shoot-b"} {
			s.access(name, "first")
			s.managed(name, "addons", 3)
		}
		s.within(soon, "it is applied", s.applied("shoot-a", "addons"))
		s.within(soon, "it is applied", s.applied("shoot-b", "addons"))
		time.Sleep(time.Minute)
		atSource, atTarget := s.writes("source"), s.writes("shoot-a")

		setLabel := func(value any) {
			s.must(s.source, http.MethodPatch, "/api/v1/namespaces/shoot-a", map[string]any{"metadata": map[string]any{"labels": map[string]any{label: value}}})
		}
		setLabel(nil)
		s.within(time.Second, "it is let go", s.is("shoot-a", ""))
		s.must(s.targets["shoot-a"].Server, http.MethodPatch, "/api/v1/namespaces/default/configmaps/addons-0", map[string]any{"data": map[string]any{"of": "another process"}})
		time.Sleep(10 * time.Minute)
		if got := s.configMap("shoot-a", "addons-0"); got == nil || got["data"].(map[string]any)["of"] != "another process" {
			t.Errorf("TGT-4: after it was let go an object is %v", got)
		}
		s.must(s.targets["shoot-a"].Server, http.MethodPatch, "/api/v1/namespaces/default/configmaps/addons-0", map[string]any{"data": map[string]any{"of": "shoot-a"}})

		setLabel("true")
		s.within(soon, "it is looked after again", s.is("shoot-a", StateRunning))
		time.Sleep(10 * time.Minute)
		if got := s.writes("source") - atSource; got != 0 {
			t.Errorf("TGT-4: %d writes to the source for a hand-over there and back", got)
		}
		if got := s.writes("shoot-a") - atTarget; got != 0 {
			t.Errorf("TGT-4: %d writes to the target for a hand-over there and back", got)
		}
		s.drifts("shoot-a", "addons-0", time.Second)
		s.drifts("shoot-b", "addons-0", time.Second)

		setLabel(nil)
		setLabel("true")
		s.within(time.Minute, "it is looked after though it lost the label for a moment", s.is("shoot-a", StateRunning))
		s.drifts("shoot-a", "addons-0", 20*time.Second)
	})
}

// TestCredentials: targets come, rotate their credentials, hibernate and wake without a restart.
func TestCredentials(t *testing.T) {
	inBubble(t, nil, []string{"shoot-a", "shoot-b"}, func(s *seed) {
		s.managed("shoot-a", "addons", 2)
		s.within(soon, "it has no credentials", s.is("shoot-a", StateNoAccess))
		s.access("shoot-a", "first")
		s.within(soon, "it is applied", s.applied("shoot-a", "addons"))
		watches := s.sent("shoot-a watch")

		s.access("shoot-a", "second")
		time.Sleep(time.Second)
		s.drifts("shoot-a", "addons-0", time.Second)
		if got := s.targets["shoot-a"].tokens; len(got) != 2 || got[1] != "second" || s.sent("shoot-a watch") != watches {
			t.Errorf("TGT-5: tokens %v, %d watches after %d", got, s.sent("shoot-a watch"), watches)
		}

		writes := s.writes("shoot-a")
		s.must(s.source, http.MethodDelete, "/api/v1/namespaces/shoot-a/secrets/access", nil)
		s.within(soon, "it hibernates", s.is("shoot-a", StateNoAccess))
		asked := s.sent("shoot-a ")
		time.Sleep(time.Hour)
		if got := s.sent("shoot-a ") - asked; got > 0 || s.writes("shoot-a") != writes {
			t.Errorf("TGT-6: %d requests to a target without credentials", got)
		}
		s.access("shoot-a", "third")
		s.within(soon, "it wakes", s.is("shoot-a", StateRunning))
		s.drifts("shoot-a", "addons-1", 2*time.Second)

		// Other credentials than a token begin anew.
		s.must(s.source, http.MethodPatch, "/api/v1/namespaces/shoot-a/secrets/access", secret("shoot-a", "access", map[string]string{"kubeconfig": kubeconfig("shoot-b", "fourth")}))
		s.within(time.Minute, "the objects are in the other cluster", func() bool { return s.configMap("shoot-b", "addons-0") != nil })
		if s.configMap("shoot-a", "addons-0") == nil {
			t.Error("TGT-5: the objects of the former cluster are gone")
		}
	})
}

// TestUnreachable: a target that answers nobody rests after a while, and goes on when it answers.
func TestUnreachable(t *testing.T) {
	inBubble(t, nil, []string{"shoot-a"}, func(s *seed) {
		s.access("shoot-a", "first")
		s.managed("shoot-a", "addons", 2)
		s.within(soon, "it is applied", s.applied("shoot-a", "addons"))
		s.targets["shoot-a"].meets(func(*http.Request) (*http.Response, error) { return nil, errors.New("connection refused") })
		s.targets["shoot-a"].CutWatches(func(string, *fake.Kind) bool { return true })
		s.within(10*time.Minute, "it rests", s.is("shoot-a", StateUnreachable))
		asked := s.sent("shoot-a ")
		time.Sleep(10 * time.Minute)
		if got := s.sent("shoot-a ") - asked; got > 24 {
			t.Errorf("TGT-7: %d requests in ten minutes to a target that does not answer", got)
		}
		s.targets["shoot-a"].meets(nil)
		s.within(time.Minute, "it goes on", s.is("shoot-a", StateRunning))
		s.drifts("shoot-a", "addons-1", 2*time.Second)
	})
}

// TestOverrides: what a Secret of the namespace says is different for its target only.
func TestOverrides(t *testing.T) {
	inBubble(t, nil, []string{"shoot-a", "shoot-b"}, func(s *seed) {
		for _, name := range []string{"shoot-a", "shoot-b"} {
			s.access(name, "first")
			s.managed(name, "addons", 1)
		}
		s.must(s.source, http.MethodPost, "/api/v1/namespaces/shoot-a/secrets", secret("shoot-a", "overrides", map[string]string{"overrides.yaml": "driftRepairDelay: 1m\n"}))
		s.within(soon, "it is applied", s.applied("shoot-a", "addons"))
		s.within(soon, "it is applied", s.applied("shoot-b", "addons"))
		time.Sleep(time.Minute)
		if took := s.drifts("shoot-a", "addons-0", 5*time.Minute); took < 50*time.Second {
			t.Errorf("TGT-9: repaired after %s in spite of driftRepairDelay", took)
		}
		s.drifts("shoot-b", "addons-0", time.Second)
	})
}

// TestDirectory: a folder with kubeconfigs says which targets there are.
func TestDirectory(t *testing.T) {
	folder := t.TempDir()
	write := func(name, content string) {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("shoot-a.kubeconfig", kubeconfig("shoot-a", "first"))
	write("b.kubeconfig", kubeconfig("shoot-b", "first"))
	write("shoot-a.yaml", "kubeconfig: shoot-a.kubeconfig\n")
	write("broken.yaml", "kubeconfig: [\n")
	in := func(c *config.ResourceManagerConfiguration) {
		c.Targets = &config.TargetsConfiguration{Directory: folder}
	}
	inBubble(t, in, []string{"shoot-a", "shoot-b"}, func(s *seed) {
		s.managed("shoot-a", "addons", 1)
		s.managed("shoot-b", "addons", 1)
		s.within(soon, "it is applied", s.applied("shoot-a", "addons"))
		write("of-b.yaml", "namespace: shoot-b\nkubeconfig: b.kubeconfig\nresourceClass: resources\n")
		s.within(soon, "it is applied", s.applied("shoot-b", "addons"))
		write("shoot-a.kubeconfig", kubeconfig("shoot-a", "second"))
		time.Sleep(2 * period)
		s.drifts("shoot-a", "addons-0", time.Second)
		if got := s.targets["shoot-a"].tokens; len(got) != 2 || got[1] != "second" {
			t.Errorf("TGT-5: tokens %v", got)
		}
		if err := os.Remove(filepath.Join(folder, "b.kubeconfig")); err != nil {
			t.Fatal(err)
		}
		s.within(soon, "it hibernates", s.is("of-b", StateNoAccess))
		if err := os.Remove(filepath.Join(folder, "of-b.yaml")); err != nil {
			t.Fatal(err)
		}
		s.within(soon, "it is let go", s.is("of-b", ""))
		if s.configMap("shoot-b", "addons-0") == nil {
			t.Error("TGT-4: its objects are gone")
		}
		write("of-b.yaml", "namespace: shoot-a\nkubeconfig: shoot-a.kubeconfig\n")
		time.Sleep(2 * period)
		if len(s.states()) != 1 {
			t.Errorf("TGT-4: two entries have one namespace: %v", s.states())
		}
		if err := os.Rename(folder, folder+"-gone"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		s.drifts("shoot-a", "addons-0", 5*time.Second)
	})
}
