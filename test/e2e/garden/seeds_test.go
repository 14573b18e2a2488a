package garden

import (
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// step is one request of a client, in the order in which it works.
type step struct {
	rule, verb, identity, fields string
	// refused is a part of the reason; empty means allowed, "404" that it is allowed and nothing is there.
	refused string
}

func walk(t *testing.T, cl client.Client, steps []step) {
	t.Helper()
	for _, s := range steps {
		o := object(t, s.identity, s.fields)
		eventually(t, s.rule+" "+s.verb+" "+s.identity, func() error {
			err := do(t.Context(), cl, s.verb, o)
			switch {
			case s.refused == "404":
				if apierrors.IsNotFound(err) {
					return nil
				}
				return forbidden(err, "never")
			case s.refused == "409":
				if apierrors.IsAlreadyExists(err) {
					return nil
				}
				return forbidden(err, "never")
			case s.refused != "":
				return forbidden(err, s.refused)
			case s.verb == "create" && apierrors.IsAlreadyExists(err):
				return nil // An earlier attempt.
			}
			return err
		})
	}
}

// landscape is two seeds with a Shoot each, under names of their own.
func landscape(t *testing.T, prefix string) (seedA, seedB, namespace string) {
	t.Helper()
	seedA, seedB, namespace = prefix+"-a", prefix+"-b", "garden-"+prefix
	namespaceOf(t, namespace, prefix)
	create(t, "Project "+prefix, "spec: {namespace: "+namespace+"}")
	for _, seed := range []string{seedA, seedB} {
		create(t, "Namespace seed-"+seed, "")
		create(t, "Seed "+seed, "metadata: {labels: {name.seed.gardener.cloud/"+seed+": 'true'}}\nspec: {backup: {credentialsRef: {apiVersion: v1, kind: Secret, namespace: garden, name: backup-"+seed+"}}}")
		create(t, "Secret garden/backup-"+seed, "")
		create(t, "Secret seed-"+seed+"/of-extensions", "")
		name := "on-" + seed
		create(t, "Secret "+namespace+"/creds-"+seed, "")
		create(t, "SecretBinding "+namespace+"/binding-"+seed, "secretRef: {namespace: "+namespace+", name: creds-"+seed+"}")
		create(t, "CloudProfile profile-"+seed, "spec: {type: local}")
		create(t, "ConfigMap "+namespace+"/audit-"+seed, "")
		create(t, "Shoot "+namespace+"/"+name, "metadata: {labels: {name.seed.gardener.cloud/"+seed+": 'true'}}\n"+
			"spec: {seedName: "+seed+", secretBindingName: binding-"+seed+", cloudProfile: {name: profile-"+seed+"}, unknown: {kept: true}, kubernetes: {kubeAPIServer: {auditConfig: {auditPolicy: {configMapRef: {name: audit-"+seed+"}}}}}}\nstatus: {seedName: "+seed+"}")
	}
	return seedA, seedB, namespace
}

// TestGardenlet walks through what a gardenlet does, with a client certificate, and tries what it must not.
func TestGardenlet(t *testing.T) {
	a, b, ns := landscape(t, "walk")
	cl := gardenlet(t, a)
	own, foreign := ns+"/on-"+a, ns+"/on-"+b
	create(t, "Shoot "+ns+"/restoring-"+a, "spec: {seedName: "+a+"}\nstatus: {lastOperation: {type: Restore, state: Processing}}")
	create(t, "ClusterRole powerless", "rules: []")
	walk(t, cl, []step{
		{"BH-SA-27", "get", "Seed " + a, "", ""},
		{"BH-SA-27", "patch/status", "Seed " + a, "", ""},
		{"BH-SA-27, R2", "list", "Seed ", "", ""},
		{"BH-SA-27", "patch", "Seed " + b, "", "no relationship found: Seed:" + b + " does not lead to Seed:" + a},
		{"BH-SA-21", "create", "Lease gardener-system-seed-lease/" + a, "", ""},
		{"BH-SA-21", "patch", "Lease gardener-system-seed-lease/" + a, "", ""},
		{"BH-SA-21", "create", "Lease gardener-system-seed-lease/" + b, "", "object does not belong to seed"},
		{"BH-SA-21, C1", "delete", "Lease gardener-system-seed-lease/" + a, "", ""},
		{"BH-SA-30, R2", "get", "Shoot " + foreign, "", ""},
		{"BH-SA-30", "patch", "Shoot " + own, "", ""},
		{"BH-SA-30", "patch/status", "Shoot " + own, "", ""},
		{"BH-SA-30", "patch", "Shoot " + foreign, "", "no relationship found"},
		{"BH-SA-30", "delete", "Shoot " + own, "", "only the following verbs are allowed for this resource type: [get list patch update watch]"},
		{"BH-SA-11", "get", "CloudProfile profile-" + a, "", ""},
		{"BH-SA-11", "get", "CloudProfile profile-" + b, "", "no relationship found"},
		{"BH-SA-25", "get", "SecretBinding " + ns + "/binding-" + a, "", ""},
		{"BH-SA-25", "get", "SecretBinding " + ns + "/binding-" + b, "", "no relationship found"},
		{"BH-SA-26", "get", "Secret " + ns + "/creds-" + a, "", ""},
		{"BH-SA-26", "get", "Secret " + ns + "/creds-" + b, "", "no relationship found"},
		{"BH-SA-26", "get", "Secret garden/backup-" + a, "", ""},
		{"BH-SA-26", "get", "Secret garden/backup-" + b, "", "no relationship found"},
		{"BH-SA-26", "list", "Secret seed-" + a + "/", "", ""},
		{"BH-SA-26", "list", "Secret seed-" + b + "/", "", "only the following verbs are allowed for this resource type: [create delete get patch update]"},
		{"BH-SA-26", "list", "Secret ", "", "only the following verbs"},
		{"BH-SA-13", "get", "ConfigMap " + ns + "/audit-" + a, "", ""},
		{"BH-SA-13", "get", "ConfigMap " + ns + "/audit-" + b, "", "no relationship found"},
		{"BH-SA-23", "get", "Namespace garden", "", ""},
		{"BH-SA-23", "get", "Namespace " + ns, "", ""},
		{"BH-SA-23", "get", "Namespace default", "", "no relationship found"},
		{"BH-SA-24", "get", "Project walk", "", ""},
		{"BH-SA-24", "get", "Project other", "", "no relationship found"},
		{"BH-SA-14", "list", "ControllerRegistration ", "", ""},
		{"BH-SR-4", "create", "Secret " + ns + "/on-" + a + ".ca-cluster", "", ""},
		{"BH-SR-4", "create", "Secret " + ns + "/on-" + b + ".ca-cluster", "", `object does not belong to seed "` + a + `"`},
		{"BH-SA-26", "patch", "Secret " + ns + "/on-" + a + ".ca-cluster", "", ""},
		{"RES-2", "create", "Secret garden/backup-" + b, "", "409"},
		{"BH-SR-4", "create", "Secret default/anything", "", `object does not belong to seed "` + a + `"`},
		{"BH-SA-31", "create", "ShootState " + own, "", ""},
		{"BH-SA-31", "create", "ShootState " + foreign, "", "object does not belong to seed"},
		{"BH-SA-31", "get", "ShootState " + own, "", ""},
		{"BH-SR-3", "create", "InternalSecret " + own + ".ca-client", "", ""},
		{"BH-SR-3", "create", "ConfigMap " + own + ".ca-cluster", "", ""},
		{"BH-SR-3", "create", "ConfigMap " + ns + "/other", "", "object does not belong to seed"},
		{"BH-SA-7", "create", "BackupBucket bucket-" + a, "spec: {seedName: " + a + "}", ""},
		{"BH-SA-7", "create", "BackupBucket bucket-" + b, "spec: {seedName: " + b + "}", "object does not belong to seed"},
		{"BH-SA-7", "patch/status", "BackupBucket bucket-" + a, "", ""},
		{"BH-SA-8", "create", "BackupEntry " + ns + "/entry", "spec: {seedName: " + a + ", bucketName: bucket-" + a + "}", ""},
		{"BH-SA-8", "patch", "BackupEntry " + ns + "/entry", "", ""},
		{"BH-SA-8", "delete", "BackupEntry " + ns + "/entry", "", ""},
		{"RES-14", "create", "BackupEntry " + ns + "/source-missing", "metadata: {ownerReferences: [{apiVersion: core.gardener.cloud/v1beta1, kind: Shoot, name: restoring-" + a + ", uid: u}]}\nspec: {seedName: " + a + ", bucketName: bucket-" + a + "}",
			`could not find original BackupEntry missing: backupentries.core.gardener.cloud "missing" not found`},
		{"RES-12", "delete", "BackupBucket bucket-" + a, "", "cannot delete unrelated BackupBucket"},
		{"BH-SR-3", "create", "Secret garden/generated-bucket-bucket-" + a, "", ""},
		{"BH-SA-9", "create", "Bastion " + ns + "/bastion", "spec: {seedName: " + a + "}", ""},
		{"BH-SA-9", "patch", "Bastion " + ns + "/bastion", "", ""},
		{"BH-SA-20", "create", "Gardenlet garden/" + a, "", ""},
		{"BH-SA-20", "create", "Gardenlet garden/" + b, "", "object does not belong to seed"},
		{"BH-SA-18", "create", "Event default/event-" + a, "{involvedObject: {namespace: default, kind: Pod, name: x}, reason: Test}", ""},
		{"BH-SA-29", "create", "ServiceAccount seed-" + a + "/account", "", ""},
		{"BH-SA-29", "delete", "ServiceAccount seed-" + a + "/account", "", ""},
		{"BH-SA-29", "create", "ServiceAccount seed-" + b + "/account", "", "object does not belong to seed"},
		{"BH-SA-12", "create", "ClusterRoleBinding some", "{roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: powerless}}", "object does not belong to seed"},
		{"R17, B-5", "delete", "Secret default/nothing", "", "404"},
		{"R17, B-5", "delete", "Secret " + ns + "/creds-" + b, "", "no relationship found"},
		{"BH-SA-33", "list", "ClusterRoleBinding ", "", "only the following verbs"},
	})
}

// TestExtension is BH-SA-5, BH-SA-6 and BH-SR-6, with a ServiceAccount's token.
func TestExtension(t *testing.T) {
	a, b, ns := landscape(t, "ext")
	cl := extension(t, a, "extension-provider-local")
	walk(t, cl, []step{
		{"BH-SA-5", "patch/status", "Shoot " + ns + "/on-" + a, "", ""},
		{"BH-SA-5", "get", "Secret " + ns + "/creds-" + a, "", ""},
		{"BH-SA-5", "get", "Secret " + ns + "/creds-" + b, "", "no relationship found"},
		{"BH-SA-26", "list", "Secret seed-" + a + "/", "", ""},
		{"BH-SA-6", "create", "Lease seed-" + a + "/mine", "", ""},
		{"BH-SA-6", "patch", "Lease seed-" + a + "/mine", "", ""},
		{"BH-SA-6", "delete", "Lease seed-" + a + "/mine", "", ""},
		{"BH-SA-6", "create", "Lease seed-" + b + "/mine", "", "lease object is not in seed namespace"},
		{"BH-SA-5", "create", "ServiceAccount seed-" + a + "/more", "", "only the following verbs are allowed for this resource type: [get]"},
	})
	other := extension(t, a, "something-else")
	walk(t, other, []step{{"BH-SA-4", "get", "Shoot " + ns + "/on-" + a, "", "is forbidden"}})
}

// TestMigration is C20: both seeds may work on a Shoot that moves, and the old one no more when it has gone.
func TestMigration(t *testing.T) {
	a, b, ns := landscape(t, "move")
	shoot := object(t, "Shoot "+ns+"/on-"+a, "")
	read := func(seed string) error {
		return do(t.Context(), gardenlet(t, seed), "get", object(t, "Secret "+ns+"/creds-"+a, ""))
	}
	eventually(t, "before", func() error { return read(a) })
	eventually(t, "before", func() error { return forbidden(read(b), "no relationship found") })
	must.Succeed(t, suite.Client.Patch(t.Context(), shoot, mergePatch(`{"spec":{"seedName":"`+b+`"}}`)))
	eventually(t, "moving, the new seed", func() error { return read(b) })
	expect.Succeed(t, read(a), "C20: moving, the old seed")
	must.Succeed(t, suite.Client.Status().Patch(t.Context(), shoot, mergePatch(`{"status":{"seedName":"`+b+`"}}`)))
	eventually(t, "moved, the old seed", func() error { return forbidden(read(a), "no relationship found") })
	expect.Succeed(t, read(b), "moved, the new seed")
}

// TestNewObject is the live re-read: an object is the seed's at once, whether or not the graph has heard of it.
func TestNewObject(t *testing.T) {
	a, _, ns := landscape(t, "new")
	cl := gardenlet(t, a)
	eventually(t, "the seed", func() error { return do(t.Context(), cl, "patch", object(t, "Seed "+a, "")) })
	for i := range 20 {
		name := ns + "/bastion-" + string(rune('a'+i))
		must.Succeed(t, do(t.Context(), cl, "create", object(t, "Bastion "+name, "spec: {seedName: "+a+"}")))
		expect.Succeed(t, do(t.Context(), cl, "patch", object(t, "Bastion "+name, "")),
			"the Bastion that was created a moment ago")
	}
}

// TestManagedSeed is BH-SA-28 and B-15 through the API.
func TestManagedSeed(t *testing.T) {
	parent, _, _ := landscape(t, "parent")
	create(t, "Shoot garden/child-shoot", "spec: {seedName: "+parent+"}")
	create(t, "ManagedSeed garden/child", "spec: {shoot: {name: child-shoot}, gardenlet: {bootstrap: BootstrapToken, config: {apiVersion: gardenlet.config.gardener.cloud/v1alpha1, kind: GardenletConfiguration, seedConfig: {spec: {backup: {credentialsRef: {apiVersion: v1, kind: Secret, namespace: garden, name: backup-child}}}}}}}")
	cl := gardenlet(t, parent)
	description := "QSBib290c3RyYXAgdG9rZW4gZm9yIHRoZSBHYXJkZW5sZXQgZm9yIHNlZWRtYW5hZ2VtZW50LmdhcmRlbmVyLmNsb3VkL3YxYWxwaGExLk1hbmFnZWRTZWVkIHJlc291cmNlIGdhcmRlbi9jaGlsZC4="
	token := "{type: bootstrap.kubernetes.io/token, data: {token-id: YWJjZGVm, token-secret: MDEyMzQ1Njc4OWFiY2RlZg==, usage-bootstrap-authentication: dHJ1ZQ==, usage-bootstrap-signing: dHJ1ZQ==, description: " + description + "}}"
	walk(t, cl, []step{
		{"RES-32", "create", "Secret kube-system/bootstrap-token-abcdef", token, ""},
		{"RES-33", "create", "Secret garden/backup-child", "", ""},
		{"GE-26", "patch", "Secret garden/backup-child", "", ""},
		{"GE-24", "patch/status", "ManagedSeed garden/child", "", ""},
	})
	create(t, "Seed child", "")
	create(t, "Shoot garden-parent/on-child", "spec: {seedName: child}")
	walk(t, cl, []step{
		{"BH-SA-28", "patch", "Seed child", "", `object does not belong to seed "` + parent + `"`}, // The restriction's word: no update of foreign Seeds.
		{"RES-24", "delete", "Seed child", "", "object can only be deleted if corresponding ManagedSeed has a deletion timestamp"},
		{"B-15", "patch", "Shoot garden-parent/on-child", "", "no relationship found"},
		{"B-15", "get", "Namespace seed-child", "", "no relationship found"},
	})
	must.Succeed(t, suite.Client.Patch(t.Context(), object(t, "ManagedSeed garden/child", ""), mergePatch(`{"metadata":{"finalizers":["example.com/wait"]}}`)))
	must.Succeed(t, suite.Client.Delete(t.Context(), object(t, "ManagedSeed garden/child", "")))
	walk(t, cl, []step{{"BH-SA-28", "delete", "Seed child", "", ""}})
	must.Succeed(t, suite.Client.Patch(t.Context(), object(t, "ManagedSeed garden/child", ""), mergePatch(`{"metadata":{"finalizers":null}}`)))
}

// TestOthers: whoever is no client of a seed is decided by RBAC alone, and not even asked about.
func TestOthers(t *testing.T) {
	cl, err := suite.As("somebody", "people")
	must.Succeed(t, err)
	expect.Succeed(t, forbidden(do(t.Context(), cl, "get", object(t, "Secret default/x", "")), `User "somebody" cannot get resource "secrets"`))
	secret := &corev1.Secret{}
	secret.GenerateName, secret.Namespace = "made-by-admin-", "default"
	expect.Succeed(t, suite.Client.Create(t.Context(), secret), "SeedRestriction stands in the administrator's way")
	// In the group of seeds with another name: no client of a seed, and RBAC allows nothing (BH-SA-3).
	odd, err := suite.As("gardener.cloud:system:seed:", "gardener.cloud:system:seeds")
	must.Succeed(t, err)
	if err := do(t.Context(), odd, "list", object(t, "Seed ", "")); !apierrors.IsForbidden(err) || strings.Contains(err.Error(), "relationship") {
		t.Errorf("BH-SA-3: got %v", err)
	}
}

func mergePatch(text string) client.Patch {
	return client.RawPatch("application/merge-patch+json", []byte(text))
}

// TestSelfHostedShoot is section 8 through the API: the gardenlet of a shoot that hosts itself, its extension, and gardenadm.
func TestSelfHostedShoot(t *testing.T) {
	namespaceOf(t, "garden-self", "self")
	create(t, "Shoot garden-self/mine", "spec: {provider: {workers: [{controlPlane: {}}]}, resources: [{name: x, resourceRef: {apiVersion: v1, kind: Secret, name: referenced}}]}")
	create(t, "Shoot garden-self/other", "spec: {resources: [{name: x, resourceRef: {apiVersion: v1, kind: Secret, name: foreign}}]}")
	create(t, "Secret garden-self/referenced", "")
	create(t, "Secret garden-self/foreign", "")
	cl, err := suite.As("gardener.cloud:system:shoot:garden-self:mine", "gardener.cloud:system:shoots")
	must.Succeed(t, err)
	walk(t, cl, []step{
		{"8.2", "get", "Shoot garden-self/mine", "", ""},
		{"8.2", "patch/status", "Shoot garden-self/mine", "", ""},
		{"8.2", "patch", "Shoot garden-self/other", "", "no relationship found"},
		{"8.2", "get", "Secret garden-self/referenced", "", ""},
		{"8.2", "get", "Secret garden-self/foreign", "", "no relationship found: Secret:garden-self/foreign is not known to lead to Shoot:garden-self/mine"},
		{"8.3", "create", "Secret garden-self/mine.ssh-keypair", "", ""},
		{"8.3", "create", "Secret garden-self/other.ssh-keypair", "", "object does not belong to shoot garden-self/mine"},
		{"8.2", "get", "Secret garden-self/mine.ssh-keypair", "", ""},
		{"8.3", "create", "BackupBucket of-mine", "spec: {shootRef: {apiVersion: core.gardener.cloud/v1beta1, kind: Shoot, namespace: garden-self, name: mine}}", ""},
		{"8.2", "patch", "BackupBucket of-mine", "", ""},
		{"8.3", "create", "Gardenlet garden-self/self-hosted-shoot-mine", "", ""},
		{"8.3", "create", "Gardenlet garden-self/self-hosted-shoot-other", "", "object does not belong to shoot garden-self/mine"},
		{"8.2", "patch/status", "Gardenlet garden-self/self-hosted-shoot-mine", "", ""},
		{"8.3", "create", "Lease garden-self/self-hosted-shoot-mine", "", ""},
		{"8.3", "create", "ServiceAccount garden-self/extension-shoot--mine--local", "", ""},
	})
	gardenadm, err := suite.As("gardener.cloud:gardenadm:shoot:garden-self:new", "gardener.cloud:system:shoots")
	must.Succeed(t, err)
	walk(t, gardenadm, []step{
		{"SH-22", "create", "Shoot garden-self/new", selfHosted, ""},
		{"SH-22", "create", "Shoot garden-self/newer", "", "object does not belong to shoot garden-self/new"},
		{"SH-22", "get", "Shoot garden-self/new", "", "is forbidden"},
		{"SH-22", "get", "Secret garden-self/referenced", "", "is forbidden"},
	})
}

// selfHosted is what makes a Shoot self-hosted.
const selfHosted = "spec: {provider: {workers: [{controlPlane: {}}]}}"

// TestReservedServiceAccounts: a member of a project, whose role allows ServiceAccounts and tokens, becomes no extension of a Shoot by the choice of a name
// (T4-1): not of a self-hosted one, whose names are reserved, and not of an ordinary one.
func TestReservedServiceAccounts(t *testing.T) {
	const namespace, account = "garden-res", "extension-shoot--mine--res"
	namespaceOf(t, namespace, "res")
	create(t, "Shoot garden-res/mine", selfHosted)
	create(t, "Shoot garden-res/ordinary", "spec: {seedName: res}")
	create(t, "ControllerInstallation res", "spec: {shootRef: {namespace: garden-res, name: mine}}")
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "serviceaccountmanager"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"serviceaccounts", "serviceaccounts/token", "secrets"}, Verbs: []string{"*"}},
	}}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: role.ObjectMeta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "alice"}},
	}
	for _, o := range []client.Object{role, binding} {
		must.Succeed(t, suite.Client.Create(t.Context(), o))
	}
	alice, err := suite.As("alice", "system:authenticated")
	must.Succeed(t, err)
	gardenlet, err := suite.As("gardener.cloud:system:shoot:garden-res:mine", "gardener.cloud:system:shoots")
	must.Succeed(t, err)
	const reserved, token = "is reserved for an extension of the self-hosted Shoot garden-res/mine", "type: kubernetes.io/service-account-token\nmetadata: {annotations: {kubernetes.io/service-account.name: "
	walk(t, alice, []step{
		{"RSA-1", "create", "ServiceAccount garden-res/" + account, "", reserved},
		{"RSA-1", "create", "ServiceAccount garden-res/extension-shoot--ordinary--res", "", "is reserved for an extension"},
		{"RSA-1", "create", "ServiceAccount garden-res/robot", "", ""},
		{"RSA-3", "create", "Secret garden-res/token", token + account + "}}", reserved},
	})
	walk(t, gardenlet, []step{{"RSA-1", "create", "ServiceAccount garden-res/" + account, "", ""}})
	request := func(cl client.Client, name string) error {
		return cl.SubResource("token").Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}, &authenticationv1.TokenRequest{})
	}
	expect.Succeed(t, forbidden(request(alice, account), reserved), "RSA-2")
	expect.Succeed(t, request(alice, "robot"), "RSA-5")
	expect.Succeed(t, request(gardenlet, account), "RSA-2")
}
