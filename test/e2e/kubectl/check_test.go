package kubectl

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/espalier-project/espalier/test/expect"
)

// CLI-53 (manifests prints what the Secrets contain), CLI-52 (selectors and JSONPath): against a real API server.
func TestManifests(t *testing.T) {
	ns := namespace(t)
	apply(t, ns, "all", "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: "+ns+"}\nstringData: {password: loud}\n")
	got := ask(t, "manifests", "MR/all", "-n", ns)
	expect.True(t, got.code == 0 && strings.Contains(got.stdout, "\n  password: '***'\n") && !strings.Contains(got.stdout, "loud"),
		"CLI-53: exit code %d\n%s%s", got.code, got.stdout, got.stderr)
	if got = ask(t, "tree", "-n", ns, "-l", "none=such", "-o", "jsonpath={[*].name}"); got.code != 0 || got.stdout != "" {
		t.Errorf("CLI-52: exit code %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	if got = ask(t, "tree", "-n", ns, "-l", "!none", "-o", "jsonpath={[*].name}"); got.stdout != "all" {
		t.Errorf("CLI-52: exit code %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	if got = ask(t, "why", "mr", "all", "-n", ns); !strings.Contains(got.stdout, "\nConditions      ") {
		t.Errorf("CLI-55: exit code %d\n%s%s", got.code, got.stdout, got.stderr)
	}
}

// CLI-58 (check names what an installation lacks): a real API server answers the reviews; this ServiceAccount has no rights.
func TestCheck(t *testing.T) {
	ns := namespace(t)
	out, _ := exec.CommandContext(t.Context(), plugin, "check", "-n", ns, "--kubeconfig="+landscape.Seed.Kubeconfig, "--target-kubeconfig="+landscape.Shoot.Kubeconfig).CombinedOutput()
	for _, want := range []string{
		"ok      API server of the source: version v1.", "ok      API server of the target: version v1.", "ok      CustomResourceDefinition managedresources.resources.gardener.cloud: ",
		"wrong   ServiceAccount " + ns + "/gardener-resource-manager: it lacks the rights to list managedresources, ", "wrong   Lease " + ns + "/gardener-resource-manager: it does not exist",
		"ok      MutatingWebhookConfiguration: none is registered\n",
	} {
		expect.Contains(t, string(out), want, "CLI-58: no")
	}
}
