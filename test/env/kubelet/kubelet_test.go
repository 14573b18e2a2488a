package kubelet

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// in returns a container with a configuration, and credentials if it has the folder for them.
func in(t *testing.T, mounts ...string) *Container {
	t.Helper()
	container := corev1.Container{Args: []string{"--config=/etc/config.yaml", "--v=2"}}
	for _, path := range mounts {
		container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{MountPath: path})
	}
	return &Container{
		Spec: &corev1.PodSpec{Containers: []corev1.Container{container}}, Root: t.TempDir(), Server: "https://127.0.0.1:6443",
		Listen: func(server map[string]any) error {
			server["bindAddress"] = "127.1.0.2"
			return nil
		},
	}
}

// TestAdapted: a process listens where it is told to; what is no configuration, or none that can be read, stays as it is.
func TestAdapted(t *testing.T) {
	c := in(t)
	const config = "kind: A\nserver:\n  metrics: {port: 8080}\n  webhooks: {bindAddress: 0.0.0.0, port: 9449}\n"
	content, err := c.adapted("/etc/config.yaml", []byte(config))
	must.Succeed(t, err)
	got := struct {
		Server map[string]struct {
			BindAddress string
			Port        int
		}
	}{}
	must.Succeed(t, yaml.Unmarshal(content, &got))
	if len(got.Server) != 2 || got.Server["metrics"].BindAddress != "127.1.0.2" || got.Server["webhooks"].BindAddress != "127.1.0.2" || got.Server["webhooks"].Port != 9449 {
		t.Errorf("got %s", content)
	}
	for path, text := range map[string]string{"/etc/other.yaml": config, "/etc/config.yaml": ": no YAML"} {
		if content, err := c.adapted(path, []byte(text)); err != nil || string(content) != text {
			t.Errorf("%s: got %q, %v", path, content, err)
		}
	}
}

// TestWrite: a folder has what was written last, and nothing else but what a kubelet keeps there.
func TestWrite(t *testing.T) {
	c := in(t)
	links := map[string]bool{}
	for _, files := range []map[string][]byte{
		{}, {"a": []byte("1"), "b": []byte("2")}, {"a": []byte("1"), "b": []byte("2")}, {"a": []byte("3"), "c": []byte("/data/x")}, {},
	} {
		must.Succeed(t, c.Write("/data", files))
		dir := filepath.Join(c.Root, "data")
		paths, err := filepath.Glob(filepath.Join(dir, "[a-z]*"))
		must.Succeed(t, err)
		got := map[string]string{}
		for _, path := range paths {
			content, err := os.ReadFile(path)
			must.Succeed(t, err)
			got[filepath.Base(path)] = string(content)
		}
		want := map[string]string{}
		for name, content := range files {
			want[name] = string(content)
		}
		expect.DeepEqual(t, got, want)
		link, _ := os.Readlink(filepath.Join(dir, "..data"))
		links[link] = true
		if versions, err := filepath.Glob(filepath.Join(dir, "..[0-9]*")); err != nil || len(versions) > 1 {
			t.Errorf("%v are left (%v)", versions, err)
		}
	}
	expect.Equal(t, len(links), 4, "folders that the link named; files that are the same stay")
}

// TestCommand: a connection that names no kubeconfig relies on the Pod's credentials.
func TestCommand(t *testing.T) {
	for config, want := range map[string][]string{
		"sourceClientConnection: {kubeconfig: /a}\ntargetClientConnection: {}\n":          {"TARGET_KUBECONFIG"},
		"sourceClientConnection: {}\ntargetClientConnection: {kubeconfig: /a}\n":          {"KUBECONFIG"},
		"kind: ResourceManagerConfiguration\n":                                            {"KUBECONFIG", "TARGET_KUBECONFIG"},
		"kind: AdmissionControllerConfiguration\ngardenClientConnection: {}\n":            {"KUBECONFIG"},
		"kind: AdmissionControllerConfiguration\ngardenClientConnection: {kubeconfig: a}": nil,
	} {
		c := in(t, serviceAccountDir)
		c.spec().Env = []corev1.EnvVar{{Name: serviceHost, Value: "localhost"}}
		credentials := map[string][]byte{"token": []byte("t"), "ca.crt": []byte("c"), "namespace": []byte("n")}
		for path, files := range map[string]map[string][]byte{"/etc": {"config.yaml": []byte(config)}, serviceAccountDir: credentials} {
			must.Succeed(t, c.Write(path, files))
		}
		arguments, environment, err := c.Command()
		must.Succeed(t, err)
		expect.True(t, slices.Contains(arguments, "--v=2") && slices.Contains(environment, servicePort+"=6443"),
			"%s: arguments %s, environment %s", config, arguments, environment)
		var got []string
		for _, variable := range environment {
			name, path, _ := strings.Cut(variable, "=")
			if !strings.HasSuffix(name, "KUBECONFIG") {
				continue
			}
			got = append(got, name)
			if content, err := os.ReadFile(path); err != nil || !strings.Contains(string(content), "https://localhost:6443") {
				t.Errorf("%s: %s, %v", config, content, err)
			}
		}
		slices.Sort(got)
		expect.DeepEqual(t, got, want, "%s", config)
	}
}
