package dropin

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/test/env/harness"
	"github.com/espalier-project/espalier/test/must"
)

// values are what every deployment is filled in with.
func values(t *testing.T, on *audited, ca *authority, service, namespace string) map[string]string {
	t.Helper()
	certificate, key := ca.serving(t, service, namespace)
	return map[string]string{
		"namespace": namespace, "clusterCA": quoted(on.ca(t)), "caBundle": base64.StdEncoding.EncodeToString(ca.pem), "tls.crt": certificate, "tls.key": key,
		"prefix": "",
	}
}

// holder returns who leads in a namespace, "" if nobody does.
func (a *audited) holder(t *testing.T, namespace string) string {
	t.Helper()
	return a.holderOf(t, namespace, "gardener-resource-manager")
}

// holderOf returns who holds a Lease, "" if nobody does.
func (a *audited) holderOf(t *testing.T, namespace, name string) string {
	t.Helper()
	lease := &coordinationv1.Lease{}
	if err := a.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, lease); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	if lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// leads waits until somebody else than before leads.
func (a *audited) leads(t *testing.T, namespace, before string) string {
	t.Helper()
	now := ""
	eventually(t, patience, func() error {
		if now = a.holder(t, namespace); now == "" || now == before {
			return fmt.Errorf("PRC-20: the lease is held by %q", now)
		}
		return nil
	})
	return now
}

// leadsAs waits until somebody holds a Lease.
func (a *audited) leadsAs(t *testing.T, namespace, name string) {
	t.Helper()
	eventually(t, patience, func() error {
		if a.holderOf(t, namespace, name) == "" {
			return fmt.Errorf("PRC-20: nobody holds lease %s", name)
		}
		return nil
	})
}

func (a *audited) settled(t *testing.T, namespace, name string) *resourcesv1alpha1.ManagedResource {
	t.Helper()
	mr := &resourcesv1alpha1.ManagedResource{}
	eventually(t, bootstrapLimit, func() error {
		if err := a.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, mr); err != nil {
			return err
		}
		return harness.Settled(mr)
	})
	return mr
}

// DPL-20 … DPL-51, DPL-60 … DPL-88, DPL-100, WHC-1 … WHC-16: resource-manager under the manifests of a seed.
func TestSeed(t *testing.T) {
	s := get(t, seed)
	ca := newAuthority(t)
	filled := values(t, s, ca, "gardener-resource-manager", "garden")
	s.deploy(t, "seed.yaml", filled)

	first := s.startPod(t, "garden", "gardener-resource-manager")
	first.ready()
	leader := s.leads(t, "garden", "")
	second := s.startPod(t, "garden", "gardener-resource-manager")
	second.ready() // CT-27: a replica that does not lead is ready and serves webhooks.
	second.hooks(ca, "seed-webhooks.yaml", filled, "garden")
	second.absent(ca, "https://gardener-resource-manager.garden.svc:443", "/webhooks/kubernetes-service-host", "/webhooks/default-pod-scheduler-name", "/webhooks/system-components-config", "/webhooks/auth/nodeagent", "/webhooks/pod-topology-spread-constraints")

	status, body := first.Get(first.ports[8080], "/metrics")
	if status != 200 || !strings.Contains(body, `leader_election_master_status{name="gardener-resource-manager"} 1`) {
		t.Errorf("DPL-90: status %d", status)
	}

	class := "seed"
	mr := harness.ManagedResource("garden", "system", "system")
	mr.Spec.Class = &class
	must.Succeed(t, s.client.Create(t.Context(), harness.Secret("garden", "system", map[string][]byte{"a.yaml": []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: system, namespace: garden}\n")})))
	must.Succeed(t, s.client.Create(t.Context(), mr))
	settled := s.settled(t, "garden", "system")
	if want := "resources.gardener.cloud/gardener-resource-manager-seed"; len(settled.Finalizers) != 1 || settled.Finalizers[0] != want {
		t.Errorf("DPL-20, MRK-3: finalizers %q", settled.Finalizers)
	}

	began := time.Now()
	first.stop()
	if now := s.leads(t, "garden", leader); time.Since(began) > 20*time.Second {
		t.Errorf("CT-27: %s leads after %s", now, time.Since(began))
	}
	must.Succeed(t, s.client.Delete(t.Context(), settled))
	eventually(t, patience, func() error {
		err := s.client.Get(t.Context(), client.ObjectKeyFromObject(settled), settled)
		if err == nil {
			return fmt.Errorf("the ManagedResource is still there")
		}
		return client.IgnoreNotFound(err)
	})
	second.stop()
	if holder := s.holder(t, "garden"); holder != "" {
		t.Errorf("CT-32: the lease is held by %s", holder)
	}
	if refused := s.requests(t, "system:serviceaccount:garden:gardener-resource-manager", forbidden); len(refused) > 0 {
		t.Errorf("DPL-100: refused: %v", refused)
	}
}
