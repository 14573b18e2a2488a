package dropin

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/test/env/harness"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// The namespaces whose objects webhooks are asked about (3.6): control planes in a seed, the system's in a shoot, projects in a garden.
var (
	inControlPlanes = object{"matchExpressions": []any{object{"key": "gardener.cloud/role", "operator": "Exists"}}}
	inSystem        = object{"matchExpressions": []any{object{"key": "kubernetes.io/metadata.name", "operator": "In", "values": []any{"kube-system", "kubernetes-dashboard"}}}}
	inProjects      = object{"matchLabels": object{"gardener.cloud/role": "project"}}
)

// registrations are webhook configurations with the selectors that deployers give them. Restrictions are only there with authorizers (ADM-20,
// ADM-21); here they would be asked about every Secret, by an API server that cannot reach them.
func registrations(t *testing.T, file string, filled map[string]string, namespaces object) []any {
	t.Helper()
	var found []any
	for _, configuration := range manifests(t, file, filled) {
		var kept []any
		hooks, _, err := unstructured.NestedSlice(configuration.Object, "webhooks")
		must.Succeed(t, err)
		for _, each := range hooks {
			hook, name := each.(object), each.(object)["name"].(string)
			if strings.Contains(name, "-restriction.gardener.cloud") && !strings.HasPrefix(name, "update-") {
				continue
			}
			hook["namespaceSelector"] = namespaces
			switch {
			case strings.HasPrefix(name, "high-availability-config"):
				hook["namespaceSelector"] = merge(namespaces, object{"matchLabels": object{"high-availability-config.resources.gardener.cloud/consider": "true"}})
			case strings.HasPrefix(name, "crd-deletion-protection"):
				hook["objectSelector"] = object{"matchLabels": object{"gardener.cloud/deletion-protected": "true"}}
			}
			kept = append(kept, hook)
		}
		configuration.Object["webhooks"] = kept
		found = append(found, configuration.Object)
	}
	return found
}

// release creates a ManagedResource of a class with one ConfigMap, and waits until it is applied and healthy.
func (d *deployer) release(name string, class *string) *resourcesv1alpha1.ManagedResource {
	d.t.Helper()
	namespace := "kube-system"
	r := newRelease(d.t, d.namespace, name, object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": name, "namespace": namespace}, "data": object{"a": "1"}})
	must.Succeed(d.t, d.on.client.Create(d.t.Context(), r.secret))
	mr := r.managedResource()
	mr.Spec.Class = class
	must.Succeed(d.t, d.on.client.Create(d.t.Context(), mr))
	settled := d.on.settled(d.t, d.namespace, name)
	must.Succeed(d.t, d.in.client.Get(d.t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &corev1.ConfigMap{}))
	return settled
}

// watched waits until a whole run writes nothing to the target, as watches cover all that there is, and returns what was written until then.
func (p *pod) watched(source, target *audited, mr *resourcesv1alpha1.ManagedResource) []string {
	p.t.Helper()
	written := target.requests(p.t, inTarget, writes)
	eventually(p.t, patience, func() error {
		before := len(written)
		p.again(p.t, source, mr)
		if written = target.requests(p.t, inTarget, writes); len(written) > before {
			return fmt.Errorf("CFG-13: a run still writes %v", written[before:])
		}
		return nil
	})
	return written
}

// down deletes ManagedResources while there is somebody who looks after them.
func (d *deployer) down(names ...string) {
	d.t.Helper()
	for _, name := range names {
		mr := &resourcesv1alpha1.ManagedResource{}
		must.Succeed(d.t, d.on.client.Get(d.t.Context(), client.ObjectKey{Namespace: d.namespace, Name: name}, mr))
		secrets := mr.Spec.SecretRefs
		must.Succeed(d.t, d.on.client.Delete(d.t.Context(), mr))
		eventually(d.t, patience, func() error {
			d.collect()
			err := d.on.client.Get(d.t.Context(), client.ObjectKeyFromObject(mr), mr)
			if err == nil {
				return fmt.Errorf("ManagedResource %s is still there: %v", name, mr.Status.Conditions)
			}
			return client.IgnoreNotFound(err)
		})
		for _, reference := range secrets {
			must.Succeed(d.t, client.IgnoreNotFound(d.on.client.Delete(d.t.Context(), harness.Secret(d.namespace, reference.Name, nil))))
		}
	}
}

// collect ends deletions in the foreground, as there is no garbage collector of Kubernetes here.
func (d *deployer) collect() {
	list := &appsv1.DeploymentList{}
	must.Succeed(d.t, d.on.client.List(d.t.Context(), list, client.InNamespace(d.namespace)))
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp != nil {
			must.Succeed(d.t, client.IgnoreNotFound(d.on.client.Patch(d.t.Context(), &list.Items[i], harness.MergePatch(object{"metadata": object{"finalizers": nil}}))))
		}
	}
}

// destroy deletes the objects of the deployer, and generations that nothing refers to then: other tests have the same namespaces.
func (d *deployer) destroy() {
	d.clear()
	for _, generation := range []client.Object{&corev1.ConfigMap{}, &corev1.Secret{}} {
		must.Succeed(d.t, d.on.client.DeleteAllOf(context.Background(), generation, client.InNamespace(d.namespace), client.MatchingLabels{garbage: "true"}))
	}
}

// clear deletes the objects of the deployer.
func (d *deployer) clear() {
	for _, rendered := range d.objects {
		if rendered.GetKind() != "Namespace" {
			must.Succeed(d.t, client.IgnoreNotFound(d.on.client.Delete(context.Background(), rendered.DeepCopy())))
		}
	}
}

// fresh takes away what the target has of an earlier deployer, so that the executable has to bootstrap.
func fresh(t *testing.T, target *audited) {
	t.Helper()
	must.Succeed(t, client.IgnoreNotFound(target.client.Delete(t.Context(), &unstructured.Unstructured{Object: merge(ownRights()[0].(object), nil)})))
}

// TestDeployedSeed: under profile gardener, with exactly what gardenlet renders for a seed, everything stays as rendered, and works
// (DPL-20 … DPL-51, DPL-60 … DPL-88, DPL-100, WHC-1 … WHC-16). The garbage collector marks a configuration of before, which it
// deletes half a day later, and nothing that the deployer refers to.
func TestDeployedSeed(t *testing.T) {
	s := get(t, seed)
	d := newDeployer(t, mode{file: "seed.yaml", hooks: "seed-webhooks.yaml", namespace: "garden", priority: "gardener-system-critical"}, s, s)
	t.Cleanup(d.destroy)
	d.defaults = grown
	former := generation("gardener-resource-manager-00000000")
	former.Namespace = "garden"
	d.reconcile()
	must.Succeed(t, s.client.Create(t.Context(), former))
	p := d.up()
	eventually(t, patience, func() error {
		got := &corev1.ConfigMap{}
		if err := s.client.Get(t.Context(), client.ObjectKeyFromObject(former), got); err != nil {
			return err
		}
		return expect.Holds(got.Labels[resourcesv1alpha1.LabelCondemned] == "true",
			"GC-5/GC-17: the configuration of before is not marked for deletion")
	})
	leader := s.holder(t, "garden")
	second := d.start() // PRC-21: a replica that does not lead is ready and serves webhooks.
	second.absent(d.ca, "https://gardener-resource-manager.garden.svc:443", "/webhooks/kubernetes-service-host", "/webhooks/default-pod-scheduler-name",
		"/webhooks/system-components-config", "/webhooks/auth/nodeagent", "/webhooks/pod-topology-spread-constraints")
	status, body := p.Get(p.ports[8080], "/metrics")
	expect.True(t, status == 200 && strings.Contains(body, `leader_election_master_status{name="gardener-resource-manager"} 1`),
		"DPL-90: status %d", status)
	mr := d.release("deployed-seed", ptr.To("seed"))
	expect.DeepEqual(t, mr.Finalizers, []string{"resources.gardener.cloud/gardener-resource-manager-seed"}, "DPL-20, MRK-3")
	// NP-1, R1: under the profile there are policies for Pods that exist.
	service := &corev1.Service{Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "deployed"}, Ports: []corev1.ServicePort{{Port: 80}}}}
	service.Namespace, service.Name = "garden", "deployed"
	service.Annotations = map[string]string{"networking.resources.gardener.cloud/from-world-to-ports": `[{"protocol":"TCP","port":80}]`}
	must.Succeed(t, s.client.Create(t.Context(), service))
	eventually(t, patience, func() error {
		return s.client.Get(t.Context(), client.ObjectKey{Namespace: "garden", Name: "ingress-to-deployed-from-world"}, &networkingv1.NetworkPolicy{})
	})
	d.rounds(func() {
		second.hooks(d.ca, "seed-webhooks.yaml", d.filled, "garden")
		p.again(t, s, mr)
	})
	began := time.Now()
	p.stop()
	if now := s.leads(t, "garden", leader); time.Since(began) > 20*time.Second {
		t.Errorf("PRC-21: %s leads after %s", now, time.Since(began))
	}
	d.down(mr.Name)
	second.stop()
	expect.Equal(t, s.holder(t, "garden"), "", "OPB-17: the lease is held by")
	d.judge("configmaps/deployed-seed") // DPL-100: no request was refused.
	must.Succeed(t, s.client.Delete(t.Context(), service))
}

// TestDeployedShoot: the same for a hosted shoot, from the bootstrap on; the ManagedResource for the target's rights is one of the deployer's
// objects (DPL-1 … DPL-4, DPL-77, DPL-83, DPL-101, DPL-103 … DPL-109).
func TestDeployedShoot(t *testing.T) {
	source, target := get(t, seed), get(t, shoot)
	fresh(t, target)
	d := newDeployer(t, mode{file: "shoot.yaml", hooks: "shoot-webhooks.yaml", namespace: "shoot--dev--deployed", priority: "gardener-system-400"}, source, target)
	t.Cleanup(d.destroy)
	began := time.Now()
	p := d.up()
	// OPB-24: until then it may do everything, with a certificate.
	if took := time.Since(began); took > bootstrapLimit/4 {
		t.Errorf("DPL-4, OPB-24: the bootstrap took %s", took)
	}
	if at, err := source.renewal(t.Context(), d.namespace, accessKey); err != nil || at.Before(time.Now()) {
		t.Errorf("DPL-2, DPL-3: the token is to be renewed at %s, %v", at, err)
	}
	account := &corev1.ServiceAccount{}
	if err := target.client.Get(t.Context(), client.ObjectKey{Namespace: "kube-system", Name: "gardener-resource-manager"}, account); err != nil {
		t.Fatalf("DPL-83: the ServiceAccount that the access Secret names: %v", err)
	}
	expect.False(t, ptr.Deref(account.AutomountServiceAccountToken, true), "TR-13: its token is mounted")
	binding := &rbacv1.ClusterRoleBinding{}
	must.Succeed(t, target.client.Get(t.Context(), client.ObjectKey{Name: "gardener.cloud:target:resource-manager"}, binding))
	expect.Equal(t, binding.Annotations["resources.gardener.cloud/origin"], clusterID+":"+d.namespace+"/"+rightsName, "MRC-8: got the origin")
	p.absent(d.ca, "https://gardener-resource-manager."+d.namespace+":443", "/webhooks/seccomp-profile", "/webhooks/validate-crd-deletion", "/webhooks/pod-topology-spread-constraints")
	mr := d.release("deployed-shoot", nil)
	if got := target.requests(t, inTarget, func(r *request) bool { return r.Verb == "create" && r.Object.Name == mr.Name }); len(got) != 1 {
		t.Errorf("DPL-77/HLP-9: with the token of the generic kubeconfig it sent %v", got)
	}
	written := p.watched(source, target, mr)
	d.rounds(func() {
		p.hooks(d.ca, "shoot-webhooks.yaml", d.filled, "kube-system")
		node := object{"verb": "get", "resource": "nodes", "version": "v1", "name": "n"}
		expect.Equal(t, p.decision(p.client(d.ca), "https://gardener-resource-manager/webhooks/auth/nodeagent", "v1", "somebody", nil, node), noOpinion, "DPL-44, NAA-8: allowed, denied, failed")
		p.again(t, source, mr)
	})
	expect.DeepEqual(t, target.requests(t, inTarget, writes), written, "CFG-13: with alwaysUpdate, as gardenlet has it, what does not differ is written under the profile")
	d.down(mr.Name, rightsName)
	p.stop()
	d.judge("configmaps/deployed-shoot", "mutatingwebhookconfigurations/gardener-resource-manager-shoot")
}

// TestDeployedHibernatedShoot: the API server of a hibernated shoot is away, its kubeconfig is there (DPL-47). A replica that runs stays ready.
// A replica that starts stays up and is ready once the shoot wakes up (PRC-53, PRC-55). Both keep what is known and what the deployer renders.
func TestDeployedHibernatedShoot(t *testing.T) {
	source, target := get(t, seed), get(t, shoot)
	fresh(t, target)
	d := newDeployer(t, mode{file: "shoot.yaml", hooks: "shoot-webhooks.yaml", namespace: "shoot--dev--asleep", priority: "gardener-system-400"}, source, target)
	t.Cleanup(d.destroy)
	p := d.up()
	mr := d.release("deployed-asleep", nil)
	inventory := mr.Status.Resources
	target.StopAPIServer()
	d.asleep(p, mr, inventory)
	expect.Succeed(t, p.probe(p.container.ReadinessProbe), "DPL-70: since the target is away")
	p.stop()

	p = source.startImage(t, d.namespace, d.app, d.defaults)
	source.leadsAs(t, d.namespace, d.app)
	d.asleep(p, mr, inventory)
	expect.Succeed(t, p.probe(p.container.LivenessProbe), "DPL-69: while the target is away")
	_, checks := p.Get(p.port(p.container.ReadinessProbe.HTTPGet.Port), "/readyz?verbose")
	if failed := strings.Count(checks, "[-]"); failed != 1 || !strings.Contains(checks, "[-]target-informer-sync") {
		t.Errorf("PRC-55: while the target is away: %s", checks)
	}

	must.Succeed(t, target.StartAPIServer(t.Context()))
	p.ready()
	source.settled(t, d.namespace, mr.Name)
	source.settled(t, d.namespace, rightsName) // A refusal in its conditions would ask for a bootstrap (DPL-1).
	d.forgive()                                // An API server that starts refuses what it has no roles for yet.
	later := d.release("deployed-awake", nil)
	d.rounds(func() { p.again(t, source, later) })
	d.down(mr.Name, later.Name, rightsName)
	p.stop()
	d.judge("configmaps/deployed-asleep", "configmaps/deployed-awake", "mutatingwebhookconfigurations/gardener-resource-manager-shoot")
}

// asleep reconciles while the target is away: what is reported of it may change, what is known of it may not.
func (d *deployer) asleep(p *pod, mr *resourcesv1alpha1.ManagedResource, inventory []resourcesv1alpha1.ObjectReference) {
	d.t.Helper()
	before := p.rounds("managedresource")
	expect.False(d.t, d.reconcile(), "DPL-1: it has to bootstrap while the target is away")
	must.Succeed(d.t, d.on.client.Patch(d.t.Context(), mr, harness.MergePatch(object{"metadata": object{"annotations": object{"gardener.cloud/operation": "reconcile"}}})))
	p.looked(map[string]int{"managedresource": before + 1})
	must.Succeed(d.t, d.on.client.Get(d.t.Context(), client.ObjectKeyFromObject(mr), mr))
	expect.DeepEqual(d.t, mr.Status.Resources, inventory, "MRA-8: the inventory changed while the target is away")
	if _, writers := d.live(); cmp.Diff(d.shared(), writers) != "" {
		d.t.Errorf("DPL-101: fields of objects of the deployer have other writers: %v", writers)
	}
}

// reports waits until conditions of a ManagedResource are true, and returns it.
func (a *audited) reports(t *testing.T, namespace, name string, conditions ...resourcesv1alpha1.ConditionType) *resourcesv1alpha1.ManagedResource {
	t.Helper()
	mr := &resourcesv1alpha1.ManagedResource{}
	eventually(t, patience, func() error {
		if err := a.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, mr); err != nil {
			return err
		}
		for _, condition := range conditions {
			if status, message := harness.Condition(mr, condition); !strings.HasPrefix(status, "True/") {
				return fmt.Errorf("HLP-23: %s of %s is %s: %s", condition, name, status, message)
			}
		}
		return nil
	})
	return mr
}

// admission is the deployer of admission-controller: gardener-operator renders two ManagedResources, of which one has the Deployment (4.1).
func admission(t *testing.T, runtimeCluster, garden *audited) *deployer {
	t.Helper()
	d := &deployer{t: t, on: runtimeCluster, in: runtimeCluster, namespace: "garden", app: "gardener-admission-controller", ca: newAuthority(t), defaults: asImages}
	d.user = "system:serviceaccount:garden:" + d.app
	d.filled = values(t, runtimeCluster, d.ca, d.app, d.namespace)
	maps.Copy(d.filled, map[string]string{"target": garden.URL(), "targetCA": base64.StdEncoding.EncodeToString(garden.ca(t))})
	var here, there []any
	for _, manifest := range manifests(t, "garden.yaml", d.filled) {
		switch manifest.GetKind() {
		case "Namespace":
		case "Secret":
			d.objects = append(d.objects, manifest)
		case "ClusterRole", "ClusterRoleBinding":
			there = append(there, manifest.Object)
		case "Deployment":
			d.objects = append(d.objects, manifest)
			d.setImage(overwritten(t, d.app))
			d.objects = d.objects[:len(d.objects)-1]
			injectReferences(t, manifest)
			here = append(here, manifest.Object)
		default:
			if manifest.GetNamespace() == d.namespace {
				here = append(here, manifest.Object)
			}
		}
	}
	there = append(there, registrations(t, "garden-webhooks.yaml", d.filled, inProjects)...)
	labels := map[string]string{"care.gardener.cloud/condition-type": "VirtualComponentsHealthy"}
	inRuntime := newRelease(t, d.namespace, d.app+"-runtime", here...)
	own := inRuntime.managedResource()
	own.Labels, own.Spec.InjectLabels, own.Spec.Class, own.Spec.KeepObjects = labels, nil, ptr.To("seed"), ptr.To(false)
	virtual := newRelease(t, d.namespace, d.app+"-virtual", there...)
	others := virtual.managedResource()
	others.Labels = merged(others.Labels, labels)
	d.add(accessSecret(d.namespace, d.app, nil), inRuntime.secret, own, virtual.secret, others)
	d.begin()
	return d
}

// TestDeployedGarden: gardener-operator's reconcile, with both instances of resource-manager that a garden has and admission-controller, which
// they deploy (DPL-20 … DPL-51, DPL-60 … DPL-88 in modes G and V; ADM-30 … ADM-48).
func TestDeployedGarden(t *testing.T) {
	own, garden := get(t, seed), get(t, virtualGarden)
	fresh(t, garden)
	ofRuntime, ofGarden := modes["G"], modes["V"]
	ofRuntime.hooks, ofGarden.hooks = "seed-webhooks.yaml", "shoot-webhooks.yaml"
	g, v := newDeployer(t, ofRuntime, own, own), newDeployer(t, ofGarden, own, garden)
	t.Cleanup(g.destroy)
	t.Cleanup(v.destroy)
	runtimeManager, gardenManager := g.up(), v.up()
	a := admission(t, own, garden)
	t.Cleanup(a.destroy)
	a.reconcile()
	own.reports(t, "garden", a.app+"-runtime", resourcesv1alpha1.ResourcesApplied)
	eventually(t, patience, func() error {
		_, err := own.renewal(t.Context(), "garden", "shoot-access-"+a.app)
		return err
	})
	c := a.start()
	rolledOut(t, own, "garden", a.app)
	// HLP-23: gardener-operator waits until both are applied and healthy.
	// It stays in progress, as nobody makes Pods of a Deployment here; its status is final once that is what it says.
	eventually(t, patience, func() error {
		mr := own.reports(t, "garden", a.app+"-runtime", resourcesv1alpha1.ResourcesApplied, resourcesv1alpha1.ResourcesHealthy, resourcesv1alpha1.ResourcesProgressing)
		if _, message := harness.Condition(mr, resourcesv1alpha1.ResourcesProgressing); !strings.Contains(message, "old pods") {
			return fmt.Errorf("MRP-10: %s", message)
		}
		return nil
	})
	own.settled(t, "garden", a.app+"-virtual")
	first, second := g.release("deployed-runtime", ptr.To("seed")), v.release("deployed-virtual", nil)
	deployed := own.live(t, "apps/v1", "Deployment", "garden", a.app).GetResourceVersion()
	a.rounds(func() {
		g.rounds(func() { runtimeManager.again(t, own, first) })
		v.rounds(func() { gardenManager.again(t, own, second) })
		c.hooks(a.ca, "garden-webhooks.yaml", a.filled, "garden-dev")
		secret := object{"verb": "get", "resource": "secrets", "version": "v1", "namespace": "garden", "name": "x"}
		expect.Equal(t, c.decision(c.client(a.ca), "https://gardener-admission-controller/webhooks/auth/seed", "v1", "somebody", nil, secret), noOpinion, "ADM-2: allowed, denied, failed")
	})
	expect.Equal(t, own.live(t, "apps/v1", "Deployment", "garden", a.app).GetResourceVersion(), deployed,
		"ADM-30: the version of the Deployment")
	c.stop()
	g.down(first.Name, a.app+"-runtime")
	v.down(second.Name, a.app+"-virtual", rightsName)
	for _, p := range []*pod{runtimeManager, gardenManager} {
		p.stop()
	}
	expect.Empty(t, garden.requests(t, "system:serviceaccount:kube-system:"+a.app, forbidden), "ADM-41 … ADM-48: refused")
	if err := own.client.Get(t.Context(), client.ObjectKey{Namespace: "garden", Name: a.app}, &appsv1.Deployment{}); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("ADM-30: the Deployment is left: %v", err)
	}
}
