package tenants

import (
	"io/fs"
	"path/filepath"
	"testing"

	config "github.com/espalier-project/espalier/api/config/nodeagentauthorizer/v1alpha1"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

func TestEntry(t *testing.T) {
	elsewhere := filepath.Join(t.TempDir(), "kubeconfig")
	for name, c := range map[string]struct{ content, kubeconfig, fails string }{
		"a kubeconfig beside the entry":      {entry("kubeconfig"), "kubeconfig", ""},
		"a kubeconfig that is not there":     {entry("none"), "", "no such file"},
		"an absolute path":                   {entry(elsewhere), elsewhere, ""},
		"no kubeconfig is named":             {"machineNamespace: m\n", "", "targetClientConnection.kubeconfig: Required value"},
		"an empty namespace of Machines":     {entry("kubeconfig") + "machineNamespace: ''\n", "", "machineNamespace: Required value"},
		"a key that nobody knows":            {entry("kubeconfig") + "machinesNamespace: m\n", "", "error decoding entry"},
		"no YAML":                            {"{", "", "error decoding entry"},
		"a key that is there twice":          {entry("kubeconfig") + entry("kubeconfig"), "", "error decoding entry"},
		"a connection with a negative burst": {"targetClientConnection: {kubeconfig: kubeconfig, burst: -1}\n", "", "targetClientConnection.burst: Invalid value"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFolder(t)
			f.write("web.yaml", c.content)
			if filepath.IsAbs(c.kubeconfig) {
				mustWrite(t, elsewhere)
			} else {
				c.kubeconfig = filepath.Join(f.Path, c.kubeconfig)
			}
			got, _, err := readEntry(f.Path, "web")
			switch {
			case c.fails != "":
				expect.ErrorContains(t, err, c.fails)
			case err != nil:
				t.Error(err)
			case got.TargetClientConnection.Kubeconfig != c.kubeconfig || got.TargetClientConnection.QPS == 0 || got.AuthorizeWithSelectors != config.SelectorsFalse:
				t.Errorf("got %+v", got)
			}
		})
	}
	_, _, err := readEntry(t.TempDir(), "web")
	expect.ErrorIs(t, err, fs.ErrNotExist, "without a file")
}

// TestDigest: it changes with either file, and nothing moves from one to the other unseen.
func TestDigest(t *testing.T) {
	f := newFolder(t)
	seen := map[[32]byte]string{}
	for _, files := range [][2]string{{entry("kubeconfig"), "credentials"}, {entry("kubeconfig"), "other"}, {entry("kubeconfig") + "#", "credentials"}, {entry("kubeconfig") + "#c", "redentials"}} {
		f.write("web.yaml", files[0])
		f.write("kubeconfig", files[1])
		_, digest, err := readEntry(f.Path, "web")
		must.Succeed(t, err)
		other, found := seen[digest]
		expect.False(t, found, "%q and %q have the same digest", files, other)
		seen[digest] = files[0] + files[1]
		_, again, err := readEntry(f.Path, "web")
		expect.True(t, err == nil && again == digest, "%q: another digest without a change, %v", files, err)
	}
}
