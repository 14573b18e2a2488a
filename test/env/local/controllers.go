package main

import (
	"bytes"
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-project/espalier/test/env/harness"
	"github.com/espalier-project/espalier/test/gen/builders"
)

// controllers are those of resource-manager, beside that of ManagedResources, that the tour shows.
func controllers() map[string]any {
	return map[string]any{
		"clusterID":        "local-seed",
		"managedResource":  map[string]any{"syncPeriod": "1h"},
		"garbageCollector": map[string]any{"enabled": true, "syncPeriod": "15s", "minimumAge": "1s"},
		"tokenRequestor":   map[string]any{"enabled": true},
		"csrApprover":      map[string]any{"enabled": true, "machineNamespace": harness.MachineNamespace},
		"networkPolicy":    map[string]any{"enabled": true},
	}
}

const (
	oldContent = "content-of-last-week"
	newContent = "content-of-today"
)

// leaveGarbage creates two ConfigMaps for the garbage collector, and a Deployment that needs one of them.
func (t *tour) leaveGarbage(ctx context.Context) error {
	t.littered = time.Now()
	for _, name := range []string{oldContent, newContent} {
		if err := t.ShootClient.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"resources.gardener.cloud/garbage-collectable-reference": "true"}},
			Immutable:  new(true), Data: map[string]string{"content": name},
		}); err != nil {
			return err
		}
	}
	user := harness.Object("apps/v1", "Deployment", namespace, "reader")
	labels := map[string]any{"app": "reader"}
	user.Object["spec"] = map[string]any{"replicas": int64(0), "selector": map[string]any{"matchLabels": labels}, "template": map[string]any{
		"metadata": map[string]any{"labels": labels}, "spec": map[string]any{
			"containers": []any{map[string]any{"name": "c", "image": "c", "envFrom": []any{map[string]any{"configMapRef": map[string]any{"name": newContent}}}}},
		}}}
	return t.ShootClient.Create(ctx, user)
}

func (t *tour) showGarbage(ctx context.Context) error {
	t.heading("Garbage: two immutable ConfigMaps that may be collected, one of which a Deployment needs")
	exists := func(name string) (bool, error) {
		err := t.ShootClient.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &corev1.ConfigMap{})
		return err == nil, client.IgnoreNotFound(err)
	}
	if err := harness.Poll(ctx, patience, func() error {
		if there, err := exists(oldContent); err != nil || there {
			return errors.Join(err, fmt.Errorf("ConfigMap %s/%s is not collected", namespace, oldContent))
		}
		return nil
	}); err != nil {
		return err
	}
	t.step("ConfigMap %s/%s is collected, %s after it was written; the period is 15s, the minimum age 1s", namespace, oldContent, since(t.littered))
	if there, err := exists(newContent); err != nil || !there {
		return errors.Join(err, fmt.Errorf("ConfigMap %s/%s was collected, and Deployment reader refers to it", namespace, newContent))
	}
	t.step("ConfigMap %s/%s stays: Deployment reader refers to it", namespace, newContent)
	return nil
}

func (t *tour) showRenewal(ctx context.Context) error {
	t.heading("A Secret in the seed asks for a token of a ServiceAccount in the shoot")
	const renewAt = "serviceaccount.resources.gardener.cloud/token-renew-timestamp"
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: "access-dashboard",
		Labels:      map[string]string{"resources.gardener.cloud/purpose": "token-requestor", "resources.gardener.cloud/class": "shoot"},
		Annotations: map[string]string{"serviceaccount.resources.gardener.cloud/name": "dashboard", "serviceaccount.resources.gardener.cloud/namespace": "kube-system"},
	}}
	started := time.Now()
	if err := t.SeedClient.Create(ctx, secret); err != nil {
		return err
	}
	// issued waits for a token other than the one before, and asks the shoot whose it is.
	issued := func(before []byte) (string, error) {
		var user string
		err := harness.Poll(ctx, patience, func() error {
			if err := t.SeedClient.Get(ctx, client.ObjectKeyFromObject(secret), secret); err != nil {
				return err
			}
			if len(secret.Data["token"]) == 0 || bytes.Equal(secret.Data["token"], before) {
				return errors.New("no new token in Secret default/access-dashboard")
			}
			review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: string(secret.Data["token"]), Audiences: []string{"gardener"}}}
			if err := t.ShootClient.Create(ctx, review); err != nil {
				return err
			}
			if user = review.Status.User.Username; !review.Status.Authenticated {
				return fmt.Errorf("the shoot does not accept the token: %s", review.Status.Error)
			}
			return nil
		})
		return user, err
	}
	user, err := issued(nil)
	if err != nil {
		return err
	}
	t.step("issued after %s, accepted by the shoot as %s, to be renewed at %s", since(started), user, secret.Annotations[renewAt])
	first := secret.Data["token"]
	started = time.Now()
	if err := t.SeedClient.Patch(ctx, secret, harness.MergePatch(map[string]any{"metadata": map[string]any{"annotations": map[string]any{renewAt: nil}}})); err != nil {
		return err
	}
	if user, err = issued(first); err != nil {
		return err
	}
	t.step("renewed %s after somebody took away the time of renewal, accepted as %s", since(started), user)
	return nil
}

const worker = "worker-one"

func (t *tour) showCertificates(ctx context.Context) error {
	t.heading("A kubelet asks for a serving certificate; kube-controller-manager signs what is approved")
	machine := harness.Object("machine.sapcloud.io/v1alpha1", "Machine", harness.MachineNamespace, "machine-of-"+worker)
	machine.SetLabels(map[string]string{"node": worker})
	if err := t.SeedClient.Create(ctx, machine); err != nil {
		return err
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: worker}}
	if err := t.ShootClient.Create(ctx, node); err != nil {
		return err
	}
	before := node.DeepCopy()
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: worker}, {Type: corev1.NodeInternalIP, Address: "10.0.0.1"}}
	if err := t.ShootClient.Status().Patch(ctx, node, client.MergeFrom(before)); err != nil {
		return err
	}
	if err := t.ShootClient.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "kubelets-ask-for-certificates"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:node-bootstrapper"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:nodes"}},
	}); err != nil {
		return err
	}
	config, err := t.Shoot.RESTConfig("system:node:"+worker, "system:nodes")
	if err != nil {
		return err
	}
	kubelet, err := client.New(config, client.Options{Scheme: harness.Scheme()})
	if err != nil {
		return err
	}
	for _, c := range []struct {
		what, address string
		want          certificatesv1.RequestConditionType
	}{
		{"its own address", "10.0.0.1", certificatesv1.CertificateApproved},
		{"its neighbour's address", "10.0.0.2", certificatesv1.CertificateDenied},
	} {
		if err := t.askForCertificate(ctx, kubelet, c.what, c.address, c.want); err != nil {
			return err
		}
	}
	return nil
}

// askForCertificate has the kubelet ask for a certificate of the Node's name and an address, and shows the answer.
func (t *tour) askForCertificate(ctx context.Context, kubelet client.Client, what, address string, want certificatesv1.RequestConditionType) error {
	template := &x509.CertificateRequest{
		Subject:  pkix.Name{CommonName: "system:node:" + worker, Organization: []string{"system:nodes"}},
		DNSNames: []string{worker}, IPAddresses: []net.IP{net.ParseIP(address)},
	}
	request := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{GenerateName: "csr-"}, Spec: certificatesv1.CertificateSigningRequestSpec{
		SignerName: certificatesv1.KubeletServingSignerName, Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth},
		Request: builders.Request(template),
	}}
	// Its right to ask is a moment old.
	if err := harness.Poll(ctx, patience, func() error { return kubelet.Create(ctx, request) }); err != nil {
		return err
	}
	return harness.Poll(ctx, patience, func() error {
		if err := t.ShootClient.Get(ctx, client.ObjectKeyFromObject(request), request); err != nil {
			return err
		}
		if len(request.Status.Conditions) == 0 {
			return fmt.Errorf("%s is not decided", request.Name)
		}
		c := request.Status.Conditions[0]
		signed := len(request.Status.Certificate) > 0
		if c.Type != want || signed != (want == certificatesv1.CertificateApproved) {
			return fmt.Errorf("%s with %s is %s, signed %t: %s", request.Name, what, c.Type, signed, c.Message)
		}
		t.step("%-8s  for %s: %s", c.Type, what, c.Message)
		return nil
	})
}

func (t *tour) showPolicies(ctx context.Context) error {
	t.heading("A Service says who may reach its Pods; NetworkPolicies follow")
	const prefix = "networking.resources.gardener.cloud/"
	started := time.Now()
	if err := t.ShootClient.Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "echo", Annotations: map[string]string{
			prefix + "namespace-selectors": `[{"matchLabels":{"kubernetes.io/metadata.name":"kube-system"}}]`, prefix + "from-world-to-ports": `[{"port":"8443","protocol":"TCP"}]`,
		}},
		Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "echo"}, Ports: []corev1.ServicePort{{Port: 443}}},
	}); err != nil {
		return err
	}
	policies := &networkingv1.NetworkPolicyList{}
	const want = 5 // One pair for each of the two namespaces, and one for the world.
	if err := harness.Poll(ctx, patience, func() error {
		if err := t.ShootClient.List(ctx, policies, client.MatchingLabels{prefix + "service-name": "echo", prefix + "service-namespace": namespace}); err != nil {
			return err
		}
		if len(policies.Items) != want {
			return fmt.Errorf("service echo has %d NetworkPolicies, want %d", len(policies.Items), want)
		}
		return nil
	}); err != nil {
		return err
	}
	t.step("%d NetworkPolicies after %s:", want, since(started))
	for _, p := range policies.Items {
		t.step("%s/%s\n     %s", p.Namespace, p.Name, p.Annotations["gardener.cloud/description"])
	}
	return nil
}
