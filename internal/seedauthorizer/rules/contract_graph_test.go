package rules

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"slices"
	"strings"
	"time"

	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
	"github.com/espalier-project/espalier/test/gen/gardengen"
)

// This file is a second reading of the contract (sections 2 to 6 and 8, T4-1): tables over the JSON of objects, and a search. It shares no code with the
// rules and the graph. The properties compare both.

// contractRules are sections 4.1 and 8.2: resource, kind, verbs always, verbs by path (R is get list watch), subresources, selector; g and e begin the
// rules of gardenlets and extensions alone, S ends rules with open reads under readScope All, N ends those that are for the shoot's namespace.
var contractRules = map[string]map[string]contractRule{"seed": parseRules(`
backupbuckets.core.gardener.cloud | BackupBucket | create R | update patch delete | status finalizers |
backupentries.core.gardener.cloud | BackupEntry | create R | update patch delete | status |
bastions.operations.gardener.cloud | Bastion | create | R update patch | status | spec.seedName S
g certificatesigningrequests.certificates.k8s.io | CertificateSigningRequest | create | R | seedclient |
e certificatesigningrequests.certificates.k8s.io | CertificateSigningRequest | | R | |
cloudprofiles.core.gardener.cloud | CloudProfile | | R | |
namespacedcloudprofiles.core.gardener.cloud | NamespacedCloudProfile | | R | |
g clusterrolebindings.rbac.authorization.k8s.io | ClusterRoleBinding | create | get update patch | |
e clusterrolebindings.rbac.authorization.k8s.io | ClusterRoleBinding | | get | |
configmaps | ConfigMap | create | R update patch delete | |
controllerdeployments.core.gardener.cloud | ControllerDeployment | | R | |
controllerinstallations.core.gardener.cloud | ControllerInstallation | | R update patch | status | spec.seedRef.name S
controllerregistrations.core.gardener.cloud | ControllerRegistration | R | | |
credentialsbindings.security.gardener.cloud | CredentialsBinding | | R | |
events | - | create patch | | |
events.events.k8s.io | - | create patch | | |
exposureclasses.core.gardener.cloud | ExposureClass | | R | |
internalsecrets.core.gardener.cloud | InternalSecret | create | R update patch delete | |
g leases.coordination.k8s.io | Lease | create | R update patch | |
e leases.coordination.k8s.io | Lease | | | |
gardenlets.seedmanagement.gardener.cloud | Gardenlet | create | R update patch | status | metadata.name S
managedseeds.seedmanagement.gardener.cloud | ManagedSeed | | R update patch | status | label S
namespaces | Namespace | | R | |
projects.core.gardener.cloud | Project | | R | |
secretbindings.core.gardener.cloud | SecretBinding | | R | |
secrets | Secret | create | get update patch delete | |
workloadidentities.security.gardener.cloud | WorkloadIdentity | | R create patch | token |
seeds.core.gardener.cloud | Seed | create | R update patch delete | status | label S
g serviceaccounts | ServiceAccount | create | get update patch | |
e serviceaccounts | ServiceAccount | | get | |
shoots.core.gardener.cloud | Shoot | | R update patch | status finalizers | label S
shootstates.core.gardener.cloud | ShootState | create | R update patch delete | |`), "shoot": parseRules(`
backupbuckets.core.gardener.cloud | BackupBucket | create | R update patch delete | status finalizers | spec.shootRef
backupentries.core.gardener.cloud | BackupEntry | create | R update patch delete | status | spec.shootRef
bastions.operations.gardener.cloud | Bastion | | R update patch | status | spec.shootRef.name N
g certificatesigningrequests.certificates.k8s.io | CertificateSigningRequest | create | R | shootclient |
e certificatesigningrequests.certificates.k8s.io | CertificateSigningRequest | | R | |
configmaps | ConfigMap | create | R patch update delete | |
controllerdeployments.core.gardener.cloud | ControllerDeployment | | R | |
namespaces | Namespace | | R | |
projects.core.gardener.cloud | Project | | R | |
controllerinstallations.core.gardener.cloud | ControllerInstallation | | R update patch | status | spec.shootRef
controllerregistrations.core.gardener.cloud | ControllerRegistration | R | | |
events | - | create patch | | |
events.events.k8s.io | - | create patch | | |
gardenlets.seedmanagement.gardener.cloud | Gardenlet | create | R update patch | status | metadata.name N
internalsecrets.core.gardener.cloud | InternalSecret | create | R update patch delete | |
g leases.coordination.k8s.io | Lease | create | R update patch | |
e leases.coordination.k8s.io | Lease | | | |
managedseeds.seedmanagement.gardener.cloud | ManagedSeed | | R update patch | status | spec.shoot.name N
secrets | Secret | create | R patch update delete | |
seeds.core.gardener.cloud | Seed | list watch | get delete | |
g serviceaccounts | ServiceAccount | create | get patch update | |
e serviceaccounts | ServiceAccount | | get | |
shoots.core.gardener.cloud | Shoot | | update patch | status |
shootstates.core.gardener.cloud | ShootState | create | R patch | |
workloadidentities.security.gardener.cloud | WorkloadIdentity | | R create patch | token |`)}

// contractEdges are sections 6.3 and 8.2: graph (S for seeds, H for self-hosted shoots), kind, start, end, class and condition. A vertex is self, at KIND
// NAMESPACE NAME, ref PATH NAMESPACE KINDS, cred PATH or of PREFIX; a word that begins with a dot is a path.
const contractEdges = `
S BackupBucket | cred spec | self |
H BackupBucket | cred spec | self | shg6
S BackupBucket | at Secret .status.generatedSecretRef.namespace .status.generatedSecretRef.name | self | managed
H BackupBucket | at Secret garden generated-bucket-@name | self | managed shg7
S BackupBucket | self | at Seed - .spec.seedName |
SH BackupBucket | self | at Shoot .spec.shootRef.namespace .spec.shootRef.name |
SH BackupEntry | at BackupBucket - .spec.bucketName | self |
S BackupEntry | self | at Seed - .spec.seedName |
S BackupEntry | self | at Seed - .status.seedName |
S BackupEntry | self | at Shoot @ns @owner |
H BackupEntry | self | at Shoot .spec.shootRef.namespace .spec.shootRef.name |
S Bastion | self | at Seed - .spec.seedName |
H Bastion | self | at Shoot @ns .spec.shootRef.name |
S CertificateSigningRequest | self | of gardener.cloud:system:seed | csr
H CertificateSigningRequest | self | of gardener.cloud:system:shoot | csr
SH ControllerDeployment | at Secret garden .helm.ociRepository.pullSecretRef.name | self |
SH ControllerDeployment | at Secret garden .helm.ociRepository.caBundleSecretRef.name | self |
SH ControllerDeployment | ref resources[].resourceRef garden Secret,ConfigMap | self |
SH ControllerInstallation | at ControllerRegistration - .spec.registrationRef.name | self |
S ControllerInstallation | self | at Seed - .spec.seedRef.name |
SH ControllerInstallation | at ControllerDeployment - .spec.deploymentRef.name | self |
SH ControllerInstallation | self | at Shoot .spec.shootRef.namespace .spec.shootRef.name |
SH CredentialsBinding | ref credentialsRef - Secret,WorkloadIdentity,InternalSecret | self |
S SecretBinding | at Secret .secretRef.namespace .secretRef.name | self |
S Gardenlet | self | at Seed - @name | ofSeed
S Gardenlet | cred spec.config.seedConfig.spec.backup | self | configured
S Gardenlet | at Secret kube-system bootstrap-token-@id | self | managed configured known renews
S Gardenlet | at Secret @ns .spec.deployment.helm.ociRepository.caBundleSecretRef.name | self |
S Gardenlet | at Secret @ns .spec.deployment.helm.ociRepository.pullSecretRef.name | self |
H Gardenlet | self | at Shoot @ns @shoot | ofShoot
SH ManagedSeed | self | at Shoot @ns .spec.shoot.name |
SH ManagedSeed | at Seed - @name | self | direct
SH ManagedSeed | self | at Seed - @name |
S ManagedSeed | cred spec.gardenlet.config.seedConfig.spec.backup | self | managed configured
S ManagedSeed | ref spec.gardenlet.config.seedConfig.spec.resources[].resourceRef garden Secret,ConfigMap,WorkloadIdentity | at Seed - @name | configured
S ManagedSeed | at Secret kube-system bootstrap-token-@id | self | managed configured renews BootstrapToken
H ManagedSeed | at Secret kube-system bootstrap-token-@id | self | managed BootstrapToken
S ManagedSeed | at ServiceAccount @ns gardenlet-bootstrap-@name | self | managed configured renews ServiceAccount
S ManagedSeed | at ClusterRoleBinding - gardener.cloud:system:seed-bootstrapper:@ns:gardenlet-bootstrap-@name | self | managed configured renews ServiceAccount
SH Project | self | at Namespace - .spec.namespace |
S ServiceAccount | at Secret @ns .secrets[].name | self | bootstrap
H ServiceAccount | self | at Shoot @ns @extended |
S Seed | at Namespace - seed-@name | self |
S Seed | at Lease gardener-system-seed-lease @name | self |
S Seed | at ConfigMap kube-system cluster-identity | self |
S Seed | cred spec.backup | self |
S Seed | cred spec.dns.provider | self |
S Seed | cred spec.dns.internal | self |
S Seed | cred spec.dns.defaults[] | self |
S Seed | ref spec.resources[].resourceRef garden Secret,ConfigMap,WorkloadIdentity | self |
S Seed | at Secret .spec.secretRef.namespace .spec.secretRef.name | self |
SH Shoot | at Namespace - @ns | self |
SH Shoot | at SecretBinding @ns .spec.secretBindingName | self |
SH Shoot | at CredentialsBinding @ns .spec.credentialsBindingName | self |
SH Shoot | at CloudProfile - .spec.cloudProfileName | self | noProfile
SH Shoot | at CloudProfile - .spec.cloudProfile.name | self | CloudProfile
SH Shoot | at NamespacedCloudProfile @ns .spec.cloudProfile.name | self | NamespacedCloudProfile
SH Shoot | ref spec.resources[].resourceRef @ns Secret,ConfigMap,WorkloadIdentity | self |
S Shoot | self | at Seed - .spec.seedName |
S Shoot | self | at Seed - .status.seedName |
SH Shoot | at ExposureClass - .spec.exposureClassName | self |
SH Shoot | at ConfigMap @ns .spec.kubernetes.kubeAPIServer.auditConfig.auditPolicy.configMapRef.name | self |
SH Shoot | at ConfigMap @ns .spec.kubernetes.kubeAPIServer.structuredAuthentication.configMapName | self |
SH Shoot | at ConfigMap @ns .spec.kubernetes.kubeAPIServer.structuredAuthorization.configMapName | self |
SH Shoot | at Secret @ns .spec.kubernetes.kubeAPIServer.structuredAuthorization.kubeconfigs[].secretName | self |
SH Shoot | dns spec.dns.providers[] | self |
S Shoot | at Secret @ns @name.ca-cluster | self | managed
S Shoot | at Secret @ns @name.ssh-keypair | self | managed
S Shoot | at Secret @ns @name.ssh-keypair.old | self | managed
S Shoot | at Secret @ns @name.monitoring | self | managed
S Shoot | at InternalSecret @ns @name.ca-client | self | managed
S Shoot | at ConfigMap @ns @name.ca-cluster | self | managed
S Shoot | at ConfigMap @ns @name.ca-kubelet | self | managed
S Shoot | at ShootState @ns @name | self |
SH Shoot | at Secret gardener-system-shoot-issuer @project--@uid | self | managed issuer`

type contractRule struct {
	kind                        string
	always, path, sub, selector []string
	readsAll, inNamespace       bool
}

func parseRules(table string) map[string]contractRule {
	rules := map[string]contractRule{}
	for _, line := range strings.Split(strings.TrimSpace(strings.ReplaceAll(table, " R", " get list watch")), "\n") {
		cells := strings.Split(line+" ", "|")
		words := func(i int) []string { return strings.Fields(cells[i]) }
		r := contractRule{strings.TrimSpace(cells[1]), words(2), words(3), words(4), words(5), strings.Contains(cells[5], " S "), strings.Contains(cells[5], " N ")}
		r.selector = r.selector[:min(1, len(r.selector))]
		for _, who := range []string{"g", "e"} {
			if first := words(0); len(first) == 1 || first[0] == who {
				rules[who+" "+first[len(first)-1]] = r
			}
		}
	}
	return rules
}

// contractGraph is who leads to whom; vertices are texts.
type contractGraph struct {
	out            map[string][][2]string // ends, and classes
	known, watched map[string]bool
	leading        map[[2]string]bool
}

// contractObject is an object, with what edges need of others.
type contractObject struct {
	jsonMap
	kind, ns, name  string
	seeds, projects map[string]string // expiries of existing Seeds, projects of namespaces
}

func newContractGraph(graph string, objects []present) *contractGraph {
	g := &contractGraph{map[string][][2]string{}, map[string]bool{}, map[string]bool{}, map[[2]string]bool{}}
	seeds := map[string]string{}
	for _, o := range objects {
		if m := jsonOf(o.object); relation.Schema.Names[o.kind] == "Seed" {
			seeds[textAt(m, "metadata.name")] = textAt(m, "status.clientCertificateExpirationTimestamp") + "!"
		}
	}
	for _, present := range objects {
		m := jsonOf(present.object)
		o := contractObject{m, relation.Schema.Names[present.kind], textAt(m, "metadata.namespace"), textAt(m, "metadata.name"), seeds, projects}
		if graph == "H" && o.kind == "Shoot" && len(values(m, "spec.provider.workers[].controlPlane")) == 0 {
			continue // SHG-8
		}
		g.known[v(o.kind, o.ns, o.name)], g.watched[v(o.kind, o.ns, o.name)] = true, true
		for _, line := range strings.Split(strings.TrimSpace(contractEdges), "\n") {
			cells := strings.Split(line, "|")
			head, conditions := strings.Fields(cells[0]), strings.Fields(cells[3])
			if head[1] != o.kind || !strings.Contains(head[0], graph) || slices.ContainsFunc(conditions, func(c string) bool { return !o.meets(c) }) {
				continue
			}
			for _, from := range o.vertices(cells[1]) {
				for _, to := range o.vertices(cells[2]) {
					g.out[from] = append(g.out[from], [2]string{to, cells[3]})
					g.known[from], g.known[to] = true, true
				}
			}
		}
	}
	return g
}

// values returns what is at a path; a key with [] has a list.
func values(m any, path string) (result []any) {
	key, rest, more := strings.Cut(path, ".")
	key, isList := strings.CutSuffix(key, "[]")
	inner, _ := m.(jsonMap)
	list, _ := inner[key].([]any)
	if !isList && inner[key] != nil {
		list = []any{inner[key]}
	}
	for _, value := range list {
		if more {
			result = append(result, values(value, rest)...)
		} else {
			result = append(result, value)
		}
	}
	return result
}

func textAt(m any, path string) string {
	for _, value := range values(m, path) {
		text, _ := value.(string)
		return text
	}
	return ""
}

// v names a vertex; it is empty without a name.
func v(kind, namespace, name string) string {
	if name == "" {
		return ""
	}
	return strings.TrimSuffix(kind+":"+namespace+"/", ":/") + map[bool]string{true: ":", false: ""}[namespace == ""] + name
}

func tokenID(namespace, name string) string {
	sum := sha256.Sum256([]byte(namespace + "--" + name))
	return hex.EncodeToString(sum[:])[:6]
}

// words returns the texts that a word of an edge stands for.
func (o *contractObject) words(word string) (result []string) {
	if path, is := strings.CutPrefix(word, "."); is {
		for _, value := range values(o.jsonMap, path) {
			text, _ := value.(string)
			result = append(result, text)
		}
		return result
	}
	_, _, extended := shootClient("system:serviceaccount:"+o.ns+":"+o.name, []string{"system:serviceaccounts", "system:serviceaccounts:" + o.ns})
	owner := ""
	for _, reference := range slices.Backward(values(o.jsonMap, "metadata.ownerReferences[]")) {
		if textAt(reference, "kind") == "Shoot" {
			owner = textAt(reference, "name")
		}
	}
	return []string{strings.NewReplacer("@ns", o.ns, "@name", o.name, "@id", tokenID(o.ns, o.name), "@owner", owner, "@shoot", strings.TrimPrefix(o.name, "self-hosted-shoot-"),
		"@extended", extended, "@project", o.projects[o.ns], "@uid", textAt(o.jsonMap, "metadata.uid")).Replace(strings.TrimPrefix(word, "-"))}
}

// vertices returns the vertices that an end of an edge stands for.
func (o *contractObject) vertices(end string) (result []string) {
	add := func(kind, namespace, name string) {
		if vertex := v(kind, namespace, name); vertex != "" {
			result = append(result, vertex)
		}
	}
	reference := func(of any, namespace, kinds string) {
		kind := map[string]string{"v1 Secret": "Secret", "v1 ConfigMap": "ConfigMap", "security.gardener.cloud/v1alpha1 WorkloadIdentity": "WorkloadIdentity",
			"core.gardener.cloud/v1beta1 InternalSecret": "InternalSecret"}[textAt(of, "apiVersion")+" "+textAt(of, "kind")]
		if namespace == "" {
			namespace = textAt(of, "namespace")
		}
		if slices.Contains(strings.Split(kinds, ","), kind) {
			add(kind, namespace, textAt(of, "name"))
		}
	}
	words := append(strings.Fields(end), "", "")
	switch words[0] {
	case "self":
		add(o.kind, o.ns, o.name)
	case "at":
		for _, namespace := range o.words(words[2]) {
			for _, name := range o.words(words[3]) {
				add(words[1], namespace, name)
			}
		}
	case "ref":
		for _, of := range values(o.jsonMap, words[1]) {
			reference(of, o.words(words[2])[0], words[3])
		}
	case "cred", "dns":
		for _, of := range values(o.jsonMap, words[1]) {
			namespace := map[bool]string{true: o.ns}[words[0] == "dns"]
			switch credentials := values(of, "credentialsRef"); {
			case len(credentials) > 0:
				reference(credentials[0], namespace, "Secret,WorkloadIdentity")
			case words[0] == "dns":
				add("Secret", namespace, textAt(of, "secretName"))
			default:
				add("Secret", textAt(of, "secretRef.namespace"), textAt(of, "secretRef.name"))
			}
		}
	case "of": // 2.3
		raw, _ := base64.StdEncoding.DecodeString(textAt(o.jsonMap, "spec.request"))
		if block, _ := pem.Decode(raw); block != nil {
			parsed, err := x509.ParseCertificateRequest(block.Bytes)
			if name, is := strings.CutPrefix(parsed.Subject.CommonName, words[1]+":"); err == nil && is && slices.Equal(parsed.Subject.Organization, []string{words[1] + "s"}) {
				namespace, shoot, split := strings.Cut(name, ":")
				if split {
					add("Shoot", namespace, shoot)
				} else {
					add("Seed", "", name)
				}
			}
		}
	}
	return result
}

// meets reports whether a condition of an edge is met.
func (o *contractObject) meets(condition string) bool {
	text := func(path string) string { return textAt(o.jsonMap, path) }
	config := map[bool]string{true: "spec.config", false: "spec.gardenlet.config"}[o.kind == "Gardenlet"]
	expiry, exists := o.seeds[o.name]
	switch condition {
	case "shg6":
		credentials := append(values(o.jsonMap, "spec.credentialsRef"), values(o.jsonMap, "spec.secretRef")...)
		return len(credentials) > 0 && len(values(o.jsonMap, "spec.shootRef")) > 0 && textAt(credentials[0], "namespace") == text("spec.shootRef.namespace")
	case "shg7":
		return text("status.generatedSecretRef.namespace") == "garden" && text("status.generatedSecretRef.name") == "generated-bucket-"+o.name
	case "csr":
		return len(values(o.jsonMap, "spec.usages[]")) == 3
	case "ofSeed", "ofShoot":
		return strings.HasPrefix(o.name, "self-hosted-shoot-") == (condition == "ofShoot")
	case "bootstrap":
		return strings.HasPrefix(o.name, "gardenlet-bootstrap-")
	case "configured":
		return strings.HasPrefix(text(config+".apiVersion"), "gardenlet.config.gardener.cloud/") && text(config+".kind") == "GardenletConfiguration"
	case "known":
		return exists
	case "renews": // 6.5
		at, err := time.Parse(time.RFC3339, strings.TrimSuffix(expiry, "!"))
		annotations, _ := append(values(o.jsonMap, "metadata.annotations"), jsonMap{})[0].(jsonMap)
		return !exists || err == nil && at.Before(gardengen.Now) || annotations["gardener.cloud/operation"] == "renew-kubeconfig"
	case "BootstrapToken", "ServiceAccount":
		return text("spec.gardenlet.bootstrap") == condition
	case "noProfile":
		return len(values(o.jsonMap, "spec.cloudProfile")) == 0
	case "CloudProfile", "NamespacedCloudProfile":
		kind := text("spec.cloudProfile.kind")
		return kind == condition || kind == "" && condition == "CloudProfile"
	case "issuer": // GE-57
		annotations, _ := append(values(o.jsonMap, "metadata.annotations"), jsonMap{})[0].(jsonMap)
		return annotations["authentication.gardener.cloud/issuer"] == "managed" && o.projects[o.ns] != "" && text("metadata.uid") != ""
	}
	return true // A class.
}
