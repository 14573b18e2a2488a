package integration

import (
	"path/filepath"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-project/espalier/test/harness"
)

// controllers starts a resource-manager of the test's own, with these controllers switched on; no ManagedResource concerns it.
func (f *fixture) controllers(config map[string]any) *harness.Process {
	f.Helper()
	dir, err := filepath.Abs(f.TempDir())
	f.must(err)
	config["resourceClass"] = f.ns
	process, err := harness.Run(harness.ProcessOptions{
		Binary: binary, Dir: dir, Source: landscape.Seed, Target: landscape.Shoot,
		Config: map[string]any{"logLevel": "debug", "logFormat": "text", "controllers": config},
	})
	f.must(err)
	f.Cleanup(func() {
		if code := process.Stop(); code != 0 {
			f.Errorf("resource-manager ended with %d", code)
		}
		if f.Failed() {
			f.Log(process.Output())
		}
	})
	f.must(process.AwaitReady(f.ctx))
	return process
}

// as returns a client of the shoot for a user.
func as(t testing.TB, user string, groups ...string) client.Client {
	t.Helper()
	config, err := landscape.Shoot.RESTConfig(user, groups...)
	if err != nil {
		t.Fatal(err)
	}
	cl, err := client.New(config, client.Options{Scheme: harness.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return cl
}
