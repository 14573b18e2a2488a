package e2e

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/test/env/cluster"
	"github.com/espalier-project/espalier/test/env/harness"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

const (
	restoredResources, restoredObjects = 6, 20
	// laterRevisions are those between the backup and the restore, in addition to the changes.
	laterRevisions = 300
	// restoredWithin is the longest time until all is right after the API server answers again (MRB-47).
	restoredWithin = time.Minute
)

// twoKinds are manifests of ConfigMaps and Roles with a value.
func twoKinds(ns, prefix string, from, to int, value string) map[string][]byte {
	text := ""
	for i := from; i < to; i++ {
		text += fmt.Sprintf("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s-%d, namespace: %s}\ndata: {a: '%s'}\n", prefix, i, ns, value)
		text += fmt.Sprintf("---\napiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: %s-%d, namespace: %s}\nrules: [{apiGroups: [''], resources: [pods], verbs: [get], resourceNames: ['%s']}]\n", prefix, i, ns, value)
	}
	return map[string][]byte{"data.yaml": []byte(text)}
}

// restoredWorld has the same ManagedResources before a backup, after it, and after the restore.
type restoredWorld struct {
	t  *testing.T
	ns string
}

func (w restoredWorld) write(from, to int, value string, create bool) {
	w.t.Helper()
	for i := range restoredResources {
		name := fmt.Sprintf("mr-%d", i)
		secret := harness.Secret(w.ns, name, twoKinds(w.ns, name, from, to, value))
		if !create {
			must.Succeed(w.t, landscape.SeedClient.Update(w.t.Context(), secret))
			continue
		}
		must.Succeed(w.t, landscape.SeedClient.Create(w.t.Context(), secret))
		must.Succeed(w.t, landscape.SeedClient.Create(w.t.Context(), harness.ManagedResource(w.ns, name, name)))
	}
}

// wrong counts the objects that are not as they should be.
func (w restoredWorld) wrong(from, to int, value string) error {
	configMaps, roles := &corev1.ConfigMapList{}, &rbacv1.RoleList{}
	for _, list := range []client.ObjectList{configMaps, roles} {
		if err := landscape.ShootClient.List(w.t.Context(), list, client.InNamespace(w.ns), client.MatchingLabels{resourcesv1alpha1.LabelManagedBy: "gardener"}); err != nil {
			return err
		}
	}
	is := map[string]string{}
	for _, o := range configMaps.Items {
		is["ConfigMap "+o.Name] = o.Data["a"]
	}
	for _, o := range roles.Items {
		is["Role "+o.Name] = o.Rules[0].ResourceNames[0]
	}
	wrong := 0
	for i := range restoredResources {
		for j := from; j < to; j++ {
			for _, kind := range []string{"ConfigMap", "Role"} {
				if is[fmt.Sprintf("%s mr-%d-%d", kind, i, j)] != value {
					wrong++
				}
			}
		}
	}
	if wrong > 0 {
		return fmt.Errorf("%d of %d objects are wrong", wrong, 2*restoredResources*(to-from))
	}
	return nil
}

func (w restoredWorld) await(when string, from, to int, value string) {
	w.t.Helper()
	began := time.Now()
	if err := harness.Poll(w.t.Context(), restoredWithin, func() error { return w.wrong(from, to, value) }); err != nil {
		w.t.Fatalf("MRB-47: %s: %v", when, err)
	}
	w.t.Logf("%s: all is right after %s", when, time.Since(began).Round(time.Second))
}

// later makes revisions that nobody checks.
func (w restoredWorld) later(cl client.Client) {
	w.t.Helper()
	o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "later"}}
	// The first requests may meet connections that the restart has ended.
	eventually(w.t, func() error { return client.IgnoreAlreadyExists(cl.Create(w.t.Context(), o)) })
	for i := range laterRevisions {
		o.Data = map[string]string{"at": fmt.Sprint(i)}
		must.Succeed(w.t, cl.Update(w.t.Context(), o))
	}
}

func (w restoredWorld) settled() {
	w.t.Helper()
	for i := range restoredResources {
		settled(w.t, w.ns, fmt.Sprintf("mr-%d", i))
	}
}

// TestRestoredEtcd: etcd of the target or of the source is restored from a copy, and kube-apiserver starts anew: three times in a row, and
// the last time the process is killed meanwhile. All objects are right within a minute, although nothing else changes (MRB-47).
func TestRestoredEtcd(t *testing.T) {
	for name, c := range map[string]struct {
		cluster func() (*cluster.Cluster, client.Client)
		// from and to are the objects, and value is their content after the restore.
		from, to int
		value    string
	}{
		"target": {func() (*cluster.Cluster, client.Client) { return landscape.Shoot, landscape.ShootClient }, 5, restoredObjects + 5, "after"},
		"source": {func() (*cluster.Cluster, client.Client) { return landscape.Seed, landscape.SeedClient }, 0, restoredObjects, "before"},
	} {
		t.Run(name, func(t *testing.T) {
			w := restoredWorld{t, namespace(t)}
			restored, cl := c.cluster()
			begin := func() *harness.Process {
				return start(t, map[string]any{"controllers": map[string]any{"managedResource": map[string]any{"syncPeriod": "1h"}}})
			}
			p := begin()
			w.write(0, restoredObjects, "before", true)
			w.await("before the backup", 0, restoredObjects, "before")
			w.settled()
			restore, err := restored.Backup(t.Context())
			must.Succeed(t, err)
			w.later(cl)
			w.write(5, restoredObjects+5, "after", false)
			w.await("before the restore", 5, restoredObjects+5, "after")
			w.settled()
			must.Succeed(t, restore(t.Context()))
			w.await("after the restore of the "+name, c.from, c.to, c.value)
			must.Succeed(t, restore(t.Context()))
			w.await("after the second restore", c.from, c.to, c.value)
			expect.Equal(t, p.Stop(), 0, "the process ended with")
			p = begin()
			killed := make(chan struct{})
			go func() {
				defer close(killed)
				p.Kill()
			}()
			must.Succeed(t, restore(t.Context()))
			<-killed
			begin()
			w.await("after a restore during which the process was killed", c.from, c.to, c.value)
		})
	}
}
