package dropin

import (
	"encoding/base64"
	"fmt"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/test/env/harness"
	"github.com/espalier-project/espalier/test/expect"
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
		return expect.Holds(a.holderOf(t, namespace, name) != "", "PRC-20: nobody holds lease %s", name)
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
