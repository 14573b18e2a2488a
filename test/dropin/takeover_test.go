package dropin

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/test/env/harness"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

type object = map[string]any

// managedObjects are of kinds that the reference merges in ways of their own, and of some that it does not, all with one name. The Deployment
// needs a ConfigMap that the garbage collector would take.
func managedObjects(name string) []any {
	labels, needs := object{"app": name}, object{referencesAre + "configmap-" + hash8([]byte(inUse(name))): inUse(name)}
	return []any{
		object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": name, "namespace": "kube-system", "annotations": object{"example.org/of": "manifest"}}, "data": object{"a": "1"}},
		object{"apiVersion": "v1", "kind": "Secret", "metadata": object{"name": name, "namespace": "kube-system"}, "type": "Opaque", "data": object{"a": base64.StdEncoding.EncodeToString([]byte("1"))}},
		object{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": object{"name": name, "namespace": "kube-system"}, "automountServiceAccountToken": false},
		object{"apiVersion": "v1", "kind": "Service", "metadata": object{"name": name, "namespace": "kube-system"}, "spec": object{"selector": labels, "ports": []any{object{"name": "web", "port": int64(80), "targetPort": int64(8080)}}}},
		object{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": object{"name": name}, "rules": []any{object{"apiGroups": []any{""}, "resources": []any{"pods"}, "verbs": []any{"get"}}}},
		object{"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": object{"name": name, "namespace": "kube-system"}, "spec": object{"maxUnavailable": int64(1), "selector": object{"matchLabels": labels}}},
		object{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": object{"name": name, "namespace": "kube-system", "annotations": needs}, "spec": object{
			"replicas": int64(0), "selector": object{"matchLabels": labels},
			"template": object{"metadata": object{"labels": labels, "annotations": needs}, "spec": object{"containers": []any{object{"name": "c", "image": "i", "resources": object{"requests": object{"cpu": "1000m"}}}}}},
		}},
	}
}

// inUse is the name of the ConfigMap that they need.
func inUse(name string) string { return name + "-used-1a2b3c4d" }

// leftOver is the name of one that nobody needs any more.
func leftOver(name string) string { return name + "-left-5e6f7a8b" }

// generation is a ConfigMap of which there is one for each content.
func generation(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "kube-system", Labels: map[string]string{garbage: "true"}}, Immutable: ptr.To(true)}
}

// rolledOut gives a Deployment the status of one that its controller is done with; there is no such controller here.
func rolledOut(t *testing.T, on *audited, namespace, name string) {
	t.Helper()
	at := time.Now().UTC().Format(time.RFC3339)
	condition := func(kind, reason string) object {
		return object{"type": kind, "status": "True", "reason": reason, "lastUpdateTime": at, "lastTransitionTime": at}
	}
	deployment := harness.Object("apps/v1", "Deployment", namespace, name)
	eventually(t, patience, func() error {
		return on.client.Status().Patch(t.Context(), deployment, harness.MergePatch(object{"status": object{"observedGeneration": int64(1), "conditions": []any{
			condition("Available", "MinimumReplicasAvailable"), condition("Progressing", "NewReplicaSetAvailable"),
		}}}))
	})
}

// accessSecret is one that asks for a token (DPL-83).
func accessSecret(namespace, name string, annotations map[string]string) *corev1.Secret {
	prefix := "serviceaccount.resources.gardener.cloud/"
	secret := harness.Secret(namespace, "shoot-access-"+name, map[string][]byte{})
	secret.Labels = map[string]string{"resources.gardener.cloud/purpose": "token-requestor", "resources.gardener.cloud/class": "shoot"}
	secret.Annotations = map[string]string{prefix + "name": name, prefix + "namespace": "kube-system", prefix + "token-expiration-duration": "24h"}
	for key, value := range annotations {
		secret.Annotations[key] = value
	}
	return secret
}

// issued is a Secret as the reference leaves it: with a token that is good for a while (TR-13 … TR-22). The data is what to put beside it.
func (a *audited) issued(t *testing.T, in *audited, secret *corev1.Secret, in24h func(token string) map[string][]byte) {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: strings.TrimPrefix(secret.Name, "shoot-access-")}, AutomountServiceAccountToken: ptr.To(false)}
	if err := in.client.Create(t.Context(), account); client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
	secret.Data = in24h(in.token(t, account.Namespace, account.Name, "gardener", 24*3600))
	secret.Annotations[renewKey] = time.Now().UTC().Add(19*time.Hour + 30*time.Minute).Format(time.RFC3339)
	must.Succeed(t, client.IgnoreAlreadyExists(a.client.Create(t.Context(), secret)))
}

func bare(token string) map[string][]byte { return map[string][]byte{"token": []byte(token)} }

func inKubeconfig(token string) map[string][]byte {
	return map[string][]byte{"kubeconfig": []byte("apiVersion: v1\nclusters:\n- cluster:\n    server: https://api\n  name: c\ncontexts:\n- context:\n    cluster: c\n    user: u\n  name: c\ncurrent-context: c\nkind: Config\nusers:\n- name: u\n  user:\n    token: " + token + "\n")}
}

// rounds returns how often a controller was done with something; controllers that share a queue are separated by "|".
func (p *pod) rounds(controller string) int {
	_, body := p.Get(p.ports[8080], "/metrics")
	total := 0
	for _, line := range strings.Split(body, "\n") {
		after, counts := strings.CutPrefix(line, `controller_runtime_reconcile_total{controller="`)
		name, _, _ := strings.Cut(after, `"`)
		if counts && slices.Contains(strings.Split(controller, "|"), name) {
			n, err := strconv.Atoi(line[strings.LastIndex(line, " ")+1:])
			must.Succeed(p.t, err)
			total += n
		}
	}
	return total
}

// looked waits until controllers have looked at what there is.
func (p *pod) looked(atLeast map[string]int) {
	p.t.Helper()
	eventually(p.t, patience, func() error {
		for controller, rounds := range atLeast {
			if got := p.rounds(controller); got < rounds {
				return fmt.Errorf("%s was done %d times, not %d", controller, got, rounds)
			}
		}
		return nil
	})
}

// again has a ManagedResource looked at from beginning to end, and waits until that is done (MRT-7).
func (p *pod) again(t *testing.T, source *audited, mr *resourcesv1alpha1.ManagedResource) {
	t.Helper()
	before := p.rounds("managedresource")
	must.Succeed(t, source.client.Patch(t.Context(), mr, harness.MergePatch(object{"metadata": object{"annotations": object{"gardener.cloud/operation": "reconcile"}}})))
	eventually(t, patience, func() error {
		if err := source.client.Get(t.Context(), client.ObjectKeyFromObject(mr), mr); err != nil {
			return err
		}
		return expect.Holds(mr.Annotations["gardener.cloud/operation"] == "" && p.rounds("managedresource") > before, "%s is not done", mr.Name)
	})
}

// takeOver deploys a hosted shoot beside what the reference has left of three ManagedResources and of Secrets with tokens. It returns the
// ManagedResource whose objects have the name.
func takeOver(t *testing.T, source, target *audited, namespace, name, alwaysUpdate string) *release {
	t.Helper()
	filled := shootValues(t, source, target, newAuthority(t), namespace)
	filled["alwaysUpdate"] = alwaysUpdate
	source.deploy(t, "shoot.yaml", filled)

	at := time.Now().Add(-time.Hour)
	must.Succeed(t, client.IgnoreNotFound(target.client.Delete(t.Context(), harness.Object("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "", "gardener.cloud:target:resource-manager"))))
	rights := newRelease(t, namespace, "shoot-core-gardener-resource-manager", ownRights()...)
	rights.leave(t, source, target, at)
	system := newRelease(t, namespace, "shoot-core-system", managedObjects(name)...)
	system.leave(t, source, target, at)
	rolledOut(t, target, "kube-system", name)
	empty := newRelease(t, namespace, "shoot-core-empty")
	empty.leave(t, source, target, at)

	must.Succeed(t, source.client.Delete(t.Context(), harness.Secret(namespace, accessKey, nil)))
	source.issued(t, target, accessSecret(namespace, "gardener-resource-manager", nil), bare)
	source.issued(t, target, accessSecret(namespace, "kube-scheduler", nil), inKubeconfig)
	source.issued(t, target, accessSecret(namespace, "with-ca", map[string]string{"serviceaccount.resources.gardener.cloud/inject-ca-bundle": "true"}), func(token string) map[string][]byte {
		return map[string][]byte{"token": []byte(token), "bundle.crt": target.ca(t)}
	})
	// A Secret that is in use, and a Secret that is not.
	must.Succeed(t, target.client.Create(t.Context(), generation(inUse(name))))
	must.Succeed(t, target.client.Create(t.Context(), generation(leftOver(name))))
	return system
}

// MRA-6, MRD-17, MRD-19, MRL-5 … MRL-16, MRM-1 … MRM-14, MRS-2, MRS-4, TR-7 … TR-13, GC-7: what the reference has left in source and
// target is taken over without a write to either, as nothing differs. Then what differs is put right, so that it is known that somebody looked.
func TestTakeover(t *testing.T) {
	source, target := get(t, seed), get(t, shoot)
	const namespace = "shoot--dev--old"
	// With true there is a write for each object, whatever it is like (MRC-3c).
	system := takeOver(t, source, target, namespace, "x", "false")

	before := source.versions(t, namespace)
	beforeTarget := target.versions(t, "kube-system")
	inSource := "system:serviceaccount:" + namespace + ":gardener-resource-manager"
	sourceWrites, targetWrites := source.requests(t, inSource, writes), target.requests(t, inTarget, writes)

	p := source.startPod(t, namespace, "gardener-resource-manager")
	p.ready()
	source.leads(t, namespace, "")
	p.looked(map[string]int{"managedresource": 3, "health|health-progressing": 3, "token-requestor": 3, "garbage-collector": 1})
	expect.DeepEqual(t, source.requests(t, inSource, writes), sourceWrites, "written to the source")
	expect.DeepEqual(t, source.versions(t, namespace), before, "changed in the source")
	mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: system.name}}
	p.again(t, source, mr)
	expect.DeepEqual(t, target.requests(t, inTarget, writes), targetWrites, "written to the target")
	expect.DeepEqual(t, target.versions(t, "kube-system"), beforeTarget, "changed in the target")
	must.Succeed(t, harness.Settled(mr))

	// The same eyes see a difference.
	must.Succeed(t, target.client.Patch(t.Context(), harness.Object("v1", "ConfigMap", "kube-system", "x"), harness.MergePatch(object{"data": object{"a": "2"}})))
	eventually(t, patience, func() error {
		now := target.requests(t, inTarget, writes)
		if want := append(slices.Clone(targetWrites), "update configmaps kube-system/x"); cmp.Diff(want, now) != "" {
			return fmt.Errorf("written: %v", now)
		}
		return nil
	})
	expect.Equal(t, text(target.live(t, "v1", "ConfigMap", "kube-system", "x").Object, "data", "a"), "1", "MR-27: a")

	// And it is deleted as what it is: ours.
	must.Succeed(t, source.client.Delete(t.Context(), mr))
	collected := harness.MergePatch(object{"metadata": object{"finalizers": nil}})
	eventually(t, patience, func() error {
		// There is no garbage collector of Kubernetes here, which ends a deletion in the foreground.
		deployment := harness.Object("apps/v1", "Deployment", "kube-system", "x")
		if err := target.client.Get(t.Context(), client.ObjectKeyFromObject(deployment), deployment); err == nil && deployment.GetDeletionTimestamp() != nil {
			must.Succeed(t, client.IgnoreNotFound(target.client.Patch(t.Context(), deployment, collected)))
		}
		err := source.client.Get(t.Context(), client.ObjectKeyFromObject(mr), mr)
		if err == nil {
			return fmt.Errorf("the ManagedResource is still there: %+v", mr.Status.Conditions)
		}
		return client.IgnoreNotFound(err)
	})
	if err := target.client.Get(t.Context(), client.ObjectKey{Namespace: "kube-system", Name: "x"}, &corev1.Service{}); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("MRX-4: what was taken over is still there: %v", err)
	}
	p.stop()
}

// versions are the resource versions of what the reference has left in a namespace.
func (a *audited) versions(t *testing.T, namespace string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, kind := range []string{"v1/ConfigMap", "v1/Secret", "v1/ServiceAccount", "v1/Service", "apps/v1/Deployment", "policy/v1/PodDisruptionBudget", "networking.k8s.io/v1/NetworkPolicy", "resources.gardener.cloud/v1alpha1/ManagedResource"} {
		i := strings.LastIndex(kind, "/")
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(kind[:i])
		list.SetKind(kind[i+1:] + "List")
		if err := a.client.List(t.Context(), list, client.InNamespace(namespace)); err != nil {
			if a.Name == "shoot" && strings.HasPrefix(kind, "resources.") {
				continue // A shoot has no ManagedResources.
			}
			t.Fatal(err)
		}
		for _, item := range list.Items {
			all[kind+"/"+item.GetName()] = item.GetResourceVersion()
		}
	}
	return all
}

// MRA-6, MRA-8, MRA-9, MRC-8, MRD-17, MRK-3, MRL-12, MRS-3, MRS-7, TR-16 … TR-22, PRC-20: what is left behind is what the reference would have
// left: it finds its own status, its own annotations, and a lease that nobody holds.
func TestHandBack(t *testing.T) {
	source, target := get(t, seed), get(t, shoot)
	const namespace = "shoot--dev--new"
	ca := newAuthority(t)
	filled := shootValues(t, source, target, ca, namespace)
	filled["alwaysUpdate"] = "false"
	source.deploy(t, "shoot.yaml", filled)
	must.Succeed(t, client.IgnoreNotFound(target.client.Delete(t.Context(), harness.Object("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "", "gardener.cloud:target:resource-manager"))))
	rights := newRelease(t, namespace, "shoot-core-gardener-resource-manager", ownRights()...)
	rights.leave(t, source, target, time.Now().Add(-time.Hour))
	must.Succeed(t, source.client.Delete(t.Context(), harness.Secret(namespace, accessKey, nil)))
	source.issued(t, target, accessSecret(namespace, "gardener-resource-manager", nil), bare)

	system := newRelease(t, namespace, "shoot-core-system", managedObjects("x")...)
	must.Succeed(t, source.client.Create(t.Context(), system.secret))
	must.Succeed(t, source.client.Create(t.Context(), system.managedResource()))
	asked := accessSecret(namespace, "kube-scheduler-new", nil)
	must.Succeed(t, source.client.Create(t.Context(), asked))

	p := source.startPod(t, namespace, "gardener-resource-manager")
	p.ready()
	eventually(t, patience, func() error {
		return client.IgnoreNotFound(target.client.Get(t.Context(), client.ObjectKey{Namespace: "kube-system", Name: "x"}, harness.Object("apps/v1", "Deployment", "", "")))
	})
	rolledOut(t, target, "kube-system", "x")
	source.settled(t, namespace, system.name)
	eventually(t, patience, func() error {
		_, err := source.renewal(t.Context(), namespace, asked.Name)
		return err
	})
	p.stop()

	mr := source.live(t, "resources.gardener.cloud/v1alpha1", "ManagedResource", namespace, system.name)
	status, _, _ := unstructured.NestedMap(mr.Object, "status")
	found, _ := status["conditions"].([]any)
	for _, c := range found {
		condition, _ := c.(object)
		for _, key := range []string{"lastTransitionTime", "lastUpdateTime"} {
			expect.Succeed(t, expect.ErrorOf(time.Parse(time.RFC3339, text(condition, key))), "MRA-7")
			condition[key] = time.Unix(0, 0).UTC().Format(time.RFC3339)
		}
	}
	expect.DeepEqual(t, status, system.status(mr.GetGeneration(), time.Unix(0, 0)), "MRS-4: the reference would see another status")
	written := system.managedResource()
	expect.DeepEqual(t, []any{mr.GetFinalizers(), mr.GetAnnotations(), mr.GetLabels()}, []any{[]string{finalizerIs}, written.Annotations, written.Labels}, "MRK-3")
	for _, desired := range system.objects {
		want := system.applied(desired)
		live := target.live(t, want.GetAPIVersion(), want.GetKind(), want.GetNamespace(), want.GetName())
		expect.DeepEqual(t, []any{live.GetLabels(), live.GetAnnotations(), live.GetFinalizers(), live.GetOwnerReferences()}, []any{want.GetLabels(), want.GetAnnotations(), want.GetFinalizers(), want.GetOwnerReferences()}, "MRL-5: the reference would change %s", key(desired))
		expect.Equal(t, lacks(want.Object, live.Object), "", "MR-26: the reference would change %s", key(desired))
	}

	secret := &corev1.Secret{}
	must.Succeed(t, source.client.Get(t.Context(), client.ObjectKeyFromObject(asked), secret))
	renewed, err := source.renewal(t.Context(), namespace, asked.Name)
	must.Succeed(t, err)
	if left := time.Until(renewed); left < 18*time.Hour+14*time.Minute || left > 19*time.Hour+12*time.Minute || !strings.HasSuffix(secret.Annotations[renewKey], "Z") {
		t.Errorf("C13, TR-18: renewed at %s", secret.Annotations[renewKey])
	}
	delete(secret.Annotations, renewKey)
	expect.DeepEqual(t, []any{secret.Annotations, secret.Labels, secret.Finalizers}, []any{asked.Annotations, asked.Labels, []string(nil)}, "TR-21")
	if len(secret.Data) != 1 || target.user(t, string(secret.Data["token"])) != "system:serviceaccount:kube-system:kube-scheduler-new" {
		t.Errorf("TR-9, TR-11: the reference would ask for another token: %d keys", len(secret.Data))
	}
	expect.Equal(t, source.holder(t, namespace), "", "PRC-20: the lease is held by")
	must.Succeed(t, source.client.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: asked.Name}}))
}

// lacks returns the first path at which live does not have what is wanted; what the API server has added does not count.
func lacks(want, live any) string {
	switch w := want.(type) {
	case object:
		l, ok := live.(object)
		if !ok {
			return ": no object"
		}
		for key, value := range w {
			if missing := lacks(value, l[key]); missing != "" {
				return "." + key + missing
			}
		}
	case []any:
		l, ok := live.([]any)
		if !ok || len(l) != len(w) {
			return fmt.Sprintf(": %d items wanted", len(w))
		}
		for i := range w {
			if missing := lacks(w[i], l[i]); missing != "" {
				return fmt.Sprintf("[%d]%s", i, missing)
			}
		}
	default:
		if want == "1000m" { // As the API server writes it.
			want = "1"
		}
		if !cmp.Equal(want, live) {
			return fmt.Sprintf(": %v, want %v", live, want)
		}
	}
	return ""
}

// user asks an API server whose token this is, as the reference does (TR-11).
func (a *audited) user(t *testing.T, token string) string {
	t.Helper()
	review := harness.Object("authentication.k8s.io/v1", "TokenReview", "", "")
	review.Object["spec"] = object{"token": token}
	must.Succeed(t, a.client.Create(t.Context(), review))
	return text(review.Object, "status", "user", "username")
}

// NP-11, NP-19, NP-24, NP-26: NetworkPolicies of the reference are taken over without a write, and those that are made are the same.
func TestNetworkPolicies(t *testing.T) {
	s := get(t, seed)
	ca := newAuthority(t)
	s.deploy(t, "seed.yaml", values(t, s, ca, "gardener-resource-manager", "garden"))
	const prefix = "networking.resources.gardener.cloud/"
	service := func(name string) *corev1.Service {
		return &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: name, Annotations: map[string]string{prefix + "from-world-to-ports": `[{"protocol":"TCP","port":443}]`}},
			Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": name}, Ports: []corev1.ServicePort{{Port: 443, TargetPort: intstr.FromInt32(8443)}}},
		}
	}
	policies := func(name string) []object {
		labels := object{prefix + "service-name": name, prefix + "service-namespace": "garden"}
		chosen := object{"matchLabels": object{"app": name}}
		peer := prefix + "to-" + name + "-tcp-8443"
		peers, ports := []any{object{"podSelector": object{"matchLabels": object{peer: "allowed"}}}}, []any{object{"port": int64(8443), "protocol": "TCP"}}
		policy := func(name, text string, spec object) object {
			return object{"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": object{"name": name, "namespace": "garden", "labels": labels, "annotations": object{"gardener.cloud/description": text}}, "spec": spec}
		}
		return []object{
			policy("ingress-to-"+name+"-tcp-8443", "Allows ingress TCP traffic to port 8443 for pods selected by the garden/"+name+" service selector from pods running in namespace garden labeled with map["+peer+":allowed].",
				object{"policyTypes": []any{"Ingress"}, "podSelector": chosen, "ingress": []any{object{"from": peers, "ports": ports}}}),
			policy("egress-to-"+name+"-tcp-8443", "Allows egress TCP traffic to port 8443 from pods running in namespace garden labeled with map["+peer+":allowed] to pods selected by the garden/"+name+" service selector.",
				object{"policyTypes": []any{"Egress"}, "podSelector": object{"matchLabels": object{peer: "allowed"}}, "egress": []any{object{"to": []any{object{"podSelector": chosen}}, "ports": ports}}}),
			policy("ingress-to-"+name+"-from-world", "Allows ingress traffic from everywhere to ports [TCP/443] for pods selected by the garden/"+name+" service selector.",
				object{"policyTypes": []any{"Ingress"}, "podSelector": chosen, "ingress": []any{object{"ports": []any{object{"port": int64(443), "protocol": "TCP"}}}}}),
		}
	}
	must.Succeed(t, s.client.Create(t.Context(), service("old")))
	for _, policy := range policies("old") {
		must.Succeed(t, s.client.Create(t.Context(), &unstructured.Unstructured{Object: policy}))
	}
	must.Succeed(t, s.client.Create(t.Context(), service("new")))
	inSeed := "system:serviceaccount:garden:gardener-resource-manager"
	ofOld := func(r *request) bool { return writes(r) && strings.Contains(r.Object.Name, "-old-") }

	p := s.startPod(t, "garden", "gardener-resource-manager")
	p.ready()
	for _, want := range policies("new") {
		live := harness.Object("networking.k8s.io/v1", "NetworkPolicy", "garden", text(want, "metadata", "name"))
		eventually(t, patience, func() error { return s.client.Get(t.Context(), client.ObjectKeyFromObject(live), live) })
		delete(live.Object, "status")
		expect.DeepEqual(t, object{"apiVersion": live.GetAPIVersion(), "kind": live.GetKind(), "metadata": object{"name": live.GetName(), "namespace": "garden", "labels": anyMap(live.GetLabels()), "annotations": anyMap(live.GetAnnotations())}, "spec": live.Object["spec"]}, want, "the reference would change it")
	}
	// All Services were looked at, not only the new one: the one of resource-manager is there, too.
	list := &corev1.ServiceList{}
	must.Succeed(t, s.client.List(t.Context(), list))
	p.looked(map[string]int{"networkpolicy": len(list.Items)})
	expect.Empty(t, s.requests(t, inSeed, ofOld), "NP-9: written")
	// The stale ones among them are deleted, which proves that they are known as ours.
	must.Succeed(t, s.client.Delete(t.Context(), service("old")))
	eventually(t, patience, func() error {
		left := &networkingv1.NetworkPolicyList{}
		if err := s.client.List(t.Context(), left, client.MatchingLabels{prefix + "service-name": "old"}); err != nil || len(left.Items) > 0 {
			return fmt.Errorf("NP-3: %d policies are left (%v)", len(left.Items), err)
		}
		return nil
	})
	p.stop()
}
