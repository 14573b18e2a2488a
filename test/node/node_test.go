package node

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

func TestTail(t *testing.T) {
	for _, c := range []struct {
		text  string
		lines int
		want  string
	}{{"", 3, ""}, {"a\nb\nc\n", 2, "b\nc\n"}, {"a\nb\nc", 1, "c"}, {"a\n", 5, "a\n"}, {"a\nb\n", 0, ""}} {
		if got := string(tail([]byte(c.text), c.lines)); got != c.want {
			t.Errorf("the last %d of %q: %q, want %q", c.lines, c.text, got, c.want)
		}
	}
}

func TestIsCalled(t *testing.T) {
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "grm"}, Spec: corev1.ServiceSpec{ClusterIP: "10.0.0.9"}}
	for host, want := range map[string]bool{
		"10.0.0.9": true, "grm": true, "grm.garden": true, "grm.garden.svc": true, "grm.garden.svc.cluster.local": true,
		"10.0.0.8": false, "grm.other": false, "other.garden.svc": false, "": false,
	} {
		if got := isCalled(service, host); got != want {
			t.Errorf("%q: %v", host, got)
		}
	}
}

// TestAdapted: a process listens on the address of its Pod only; what is no configuration, or none that can be read, stays as it is.
func TestAdapted(t *testing.T) {
	p := &pod{number: 1, object: &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Args: []string{"--config=/etc/config.yaml"}}}}}}
	const config = "kind: A\nserver:\n  metrics: {port: 8080}\n  webhooks: {bindAddress: 0.0.0.0, port: 9449}\n"
	content, err := p.adapted("/etc/config.yaml", []byte(config))
	if err != nil {
		t.Fatal(err)
	}
	got := struct {
		Server map[string]struct {
			BindAddress string
			Port        int
		}
	}{}
	if err := yaml.Unmarshal(content, &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Server) != 2 || got.Server["metrics"].BindAddress != p.loopback() || got.Server["webhooks"].BindAddress != p.loopback() || got.Server["webhooks"].Port != 9449 {
		t.Errorf("got %s", content)
	}
	for path, text := range map[string]string{"/etc/other.yaml": config, "/etc/config.yaml": ": no YAML"} {
		if content, err := p.adapted(path, []byte(text)); err != nil || string(content) != text {
			t.Errorf("%s: got %q, %v", path, content, err)
		}
	}
}

func TestReplace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a")
	for _, text := range []string{"one", "one", "two"} {
		if err := replace(file, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if content, err := os.ReadFile(file); err != nil || string(content) != text {
			t.Errorf("got %q, %v", content, err)
		}
	}
	if left, err := filepath.Glob(file + ".*"); err != nil || len(left) > 0 {
		t.Errorf("left: %s", strings.Join(left, ", "))
	}
}

// TestAddresses: no two Pods have the same address.
func TestAddresses(t *testing.T) {
	seen := map[string]bool{}
	for number := range 1000 {
		p := &pod{number: number}
		if seen[p.ip()] || seen[p.loopback()] || !strings.HasPrefix(p.loopback(), "127.1.") {
			t.Fatalf("Pod %d has %s and %s", number, p.ip(), p.loopback())
		}
		seen[p.ip()], seen[p.loopback()] = true, true
	}
}
