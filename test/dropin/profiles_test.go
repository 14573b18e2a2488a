package dropin

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-project/espalier/test/env/harness"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// byProfile runs a test with the defaults of each profile, for what contract/README.md decides by profile.
func byProfile(t *testing.T, test func(t *testing.T, profile, defaults string)) {
	t.Helper()
	for _, profile := range []string{"contract", "gardener"} {
		t.Run(profile, func(t *testing.T) { test(t, profile, "profile: "+profile+"\n") })
	}
}

// R1 by profile, T3-12, NP-30: with what gardenlet renders for a seed, a Service has its policies always under profile contract, and once a Pod
// has the label under profile gardener, where their descriptions are those of the reference.
func TestPoliciesByProfile(t *testing.T) {
	byProfile(t, func(t *testing.T, profile, defaults string) {
		s := get(t, seed)
		s.deploy(t, "seed.yaml", values(t, s, newAuthority(t), "gardener-resource-manager", "garden"))
		p := s.startImage(t, "garden", "gardener-resource-manager", defaults)
		s.leads(t, "garden", "")
		name := "by-" + profile
		label := "networking.resources.gardener.cloud/to-" + name + "-tcp-80"
		service := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: name, Annotations: map[string]string{"networking.resources.gardener.cloud/from-world-to-ports": `[{"protocol":"TCP","port":80}]`}},
			Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": name}, Ports: []corev1.ServicePort{{Port: 80}}},
		}
		must.Succeed(t, s.client.Create(t.Context(), service))
		policy := func(name string) (*networkingv1.NetworkPolicy, error) {
			there := &networkingv1.NetworkPolicy{}
			return there, s.client.Get(t.Context(), client.ObjectKey{Namespace: "garden", Name: name}, there)
		}
		eventually(t, patience, func() error {
			_, err := policy("ingress-to-" + name + "-from-world")
			return err
		})
		shown := "map[" + label + ":allowed]"
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: name, Labels: map[string]string{label: "allowed"}},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		}
		if profile == "gardener" {
			if _, err := policy("egress-to-" + name + "-tcp-80"); !apierrors.IsNotFound(err) {
				t.Errorf("R1: the policy of no Pod: %v", err)
			}
			must.Succeed(t, s.client.Create(t.Context(), pod))
			shown = "{" + shown + " []}"
		}
		want := "Allows egress TCP traffic to port 80 from pods running in namespace garden labeled with " + shown + " to pods selected by the garden/" + name + " service selector."
		eventually(t, patience, func() error {
			egress, err := policy("egress-to-" + name + "-tcp-80")
			if err != nil {
				return err
			}
			if got := egress.Annotations["gardener.cloud/description"]; got != want {
				return fmt.Errorf("T3-12: got %s", got)
			}
			return nil
		})
		must.Succeed(t, client.IgnoreNotFound(s.client.Delete(t.Context(), pod, client.GracePeriodSeconds(0))))
		must.Succeed(t, s.client.Delete(t.Context(), service))
		eventually(t, patience, func() error {
			left := &networkingv1.NetworkPolicyList{}
			if err := s.client.List(t.Context(), left, client.MatchingLabels{"networking.resources.gardener.cloud/service-name": name}); err != nil || len(left.Items) > 0 {
				return fmt.Errorf("NP-3: %d policies are left: %w", len(left.Items), err)
			}
			return nil
		})
		p.stop()
	})
}

// ADM-2, ADM-11 … ADM-21, ADM-30 … ADM-37, ADM-40, ADM-41 … ADM-48, ACC-1, PRC-57, PRC-58: admission-controller under the manifests of a garden,
// as gardener-operator renders them. R2 by profile, D-1, D-3, D-4, BH-SA-27: a seed reads all Seeds and Shoots under profile contract, and what leads
// to it under profile gardener.
func TestGardenByProfile(t *testing.T) {
	byProfile(t, func(t *testing.T, profile, defaults string) {
		g := get(t, virtualGarden)
		ca := newAuthority(t)
		filled := values(t, g, ca, "gardener-admission-controller", "garden")
		filled["target"], filled["targetCA"] = g.URL(), base64.StdEncoding.EncodeToString(g.ca(t))
		g.deploy(t, "garden.yaml", filled)
		access := accessSecret("garden", "gardener-admission-controller", nil)
		must.Succeed(t, client.IgnoreNotFound(g.client.Delete(t.Context(), access.DeepCopy()))) // Its ServiceAccount may have gone with an earlier test.
		g.issued(t, g, access, bare)
		own, foreign := "own-"+profile, "foreign-"+profile
		for _, name := range []string{own, foreign} {
			its := harness.Object("core.gardener.cloud/v1beta1", "Seed", "", name)
			must.Succeed(t, g.client.Create(t.Context(), its))
			t.Cleanup(func() { _ = g.client.Delete(context.Background(), its) })
		}
		p := g.startImage(t, "garden", "gardener-admission-controller", defaults)
		p.ready()
		p.hooks(ca, "garden-webhooks.yaml", filled, "garden-dev")
		c := p.client(ca)
		core := func(verb, resource, name string) object {
			return object{"verb": verb, "group": "core.gardener.cloud", "version": "v1beta1", "resource": resource, "name": name}
		}
		plain := func(verb, resource, namespace, name string) object {
			return object{"verb": verb, "version": "v1", "resource": resource, "namespace": namespace, "name": name}
		}
		selecting := func(key string) object {
			asked := core("list", "shoots", "")
			asked["labelSelector"] = object{"requirements": []any{object{"key": key, "operator": "In", "values": []any{"true"}}}}
			return asked
		}
		for name, tc := range map[string]struct {
			of                 string
			asked              object
			contract, gardener [3]bool
		}{
			"D-1/another Seed":                        {own, core("get", "seeds", foreign), allowed, noOpinion},
			"D-1/the own Seed":                        {own, core("get", "seeds", own), allowed, allowed},
			"D-1/all Shoots":                          {own, core("list", "shoots", ""), allowed, noOpinion},
			"D-1/the own Shoots":                      {own, selecting("name.seed.gardener.cloud/" + own), allowed, allowed},
			"D-1/another's Shoots":                    {own, selecting("name.seed.gardener.cloud/" + foreign), allowed, noOpinion},
			"BH-SA-27/the own Seed before it exists":  {"none", core("get", "seeds", "none"), allowed, noOpinion},
			"D-3/Namespace garden":                    {own, plain("get", "namespaces", "garden", "garden"), allowed, noOpinion},
			"D-4/the identity of the garden":          {own, plain("watch", "configmaps", "kube-system", "cluster-identity"), allowed, allowed},
			"D-4/the identity before the Seed exists": {"none", plain("get", "configmaps", "kube-system", "cluster-identity"), allowed, noOpinion},
		} {
			want := map[string][3]bool{"contract": tc.contract, "gardener": tc.gardener}[profile]
			got := p.decision(c, "https://gardener-admission-controller/webhooks/auth/seed", "v1", "gardener.cloud:system:seed:"+tc.of, []any{"gardener.cloud:system:seeds"}, tc.asked)
			expect.Equal(t, got, want, "R2/%s: allowed, denied, failed", name)
		}
		for _, version := range []string{"v1", "v1beta1"} {
			for _, authorizer := range []string{"seed", "shoot"} {
				expect.Equal(t, p.decision(c, "https://gardener-admission-controller/webhooks/auth/"+authorizer, version, "somebody", nil, plain("get", "secrets", "garden", "x")), noOpinion, "ADM-2, %s, %s: allowed, denied, failed", authorizer, version)
			}
			lease := object{"verb": "update", "group": "coordination.k8s.io", "version": "v1", "resource": "leases", "namespace": "gardener-system-seed-lease", "name": foreign}
			for want, asked := range map[[3]bool]object{allowed: core("get", "seeds", own), noOpinion: lease} {
				got := p.decision(c, "https://gardener-admission-controller/webhooks/auth/seed", version, "gardener.cloud:system:seed:"+own, []any{"gardener.cloud:system:seeds"}, asked)
				expect.Equal(t, got, want, "ADM-2, %v, %s: allowed, denied, failed", asked, version)
			}
		}
		p.absent(ca, "https://gardener-admission-controller.garden", "/debug/resource-dependency-graph", "/debug/resource-dependency-graph-shoot")
		expect.Equal(t, expect.First(p.Get(p.ports[2723], "/metrics")), http.StatusOK, "ADM-39: status")
		p.stop()
		user := "system:serviceaccount:kube-system:gardener-admission-controller"
		expect.Empty(t, g.requests(t, user, forbidden), "ADM-41 … ADM-48: refused")
		expect.True(t, len(g.requests(t, user, func(r *request) bool { return r.Verb == "watch" })) != 0,
			"ADM-40: by the roles of a garden it watches nothing")
		if leases := g.requests(t, user, func(r *request) bool {
			return writes(r) || r.Object.Resource == "leases" && r.Verb != "get" && r.Verb != "list" && r.Verb != "watch"
		}); len(leases) > 0 {
			t.Errorf("ACC-1: it writes: %v", leases)
		}
	})
}
