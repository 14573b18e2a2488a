package rules

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"slices"
	"strings"
	"testing"
	"time"

	"crypto/x509"

	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
	"github.com/espalier-project/espalier/test/gardengen"
)

// This is the graph of the contract written down a second time: section 6.3 and 8.2 line by line over the JSON of the objects, without
// slices, ranks or an index. Vertices are texts, and every question is a search.

type jsonMap = map[string]any

// naiveGraph is who leads to whom.
type naiveGraph struct {
	out map[string][]naiveEdge
	// known are vertices of edges and of objects that are there.
	known, watched map[string]bool
}

type naiveEdge struct {
	to              string
	managed, direct bool
}

func at(m any, path ...string) any {
	for _, key := range path {
		next, _ := m.(jsonMap)
		m = next[key]
	}
	return m
}

func textAt(m any, path ...string) string {
	text, _ := at(m, path...).(string)
	return text
}

func listAt(m any, path ...string) []any {
	list, _ := at(m, path...).([]any)
	return list
}

// v names a vertex; it is empty without a name.
func v(kind, namespace, name string) string {
	switch {
	case name == "":
		return ""
	case namespace == "":
		return kind + ":" + name
	}
	return kind + ":" + namespace + "/" + name
}

func (g *naiveGraph) edge(from, to string, kinds ...string) {
	if from == "" || to == "" || from == to {
		return
	}
	g.out[from] = append(g.out[from], naiveEdge{to, slices.Contains(kinds, "managed"), slices.Contains(kinds, "direct")})
	g.known[from], g.known[to] = true, true
}

// named is the vertex that a reference names, if its kind is one of those; namespace replaces its own one.
func named(reference any, namespace string, kinds ...string) string {
	kind := map[string]string{
		"v1 Secret": "Secret", "v1 ConfigMap": "ConfigMap", "security.gardener.cloud/v1alpha1 WorkloadIdentity": "WorkloadIdentity", "core.gardener.cloud/v1beta1 InternalSecret": "InternalSecret",
	}[textAt(reference, "apiVersion")+" "+textAt(reference, "kind")]
	if !slices.Contains(kinds, kind) {
		return ""
	}
	if namespace == "" {
		namespace = textAt(reference, "namespace")
	}
	return v(kind, namespace, textAt(reference, "name"))
}

// credential is a credentials reference, or the Secret reference of old where there is none.
func credential(of any) string {
	if reference := at(of, "credentialsRef"); reference != nil {
		return named(reference, "", "Secret", "WorkloadIdentity")
	}
	return v("Secret", textAt(of, "secretRef", "namespace"), textAt(of, "secretRef", "name"))
}

// facts are what some edges need of other objects.
type naiveFacts struct {
	seeds    map[string]string // existing ones with the time of expiry
	projects map[string]string
}

func (f naiveFacts) expired(seed string) bool {
	at, err := time.Parse(time.RFC3339, f.seeds[seed])
	return err == nil && at.Before(gardengen.Now)
}

func newNaiveGraph(t *testing.T, objects []present, selfHosted bool) *naiveGraph {
	g := &naiveGraph{out: map[string][]naiveEdge{}, known: map[string]bool{}, watched: map[string]bool{}}
	facts := naiveFacts{seeds: map[string]string{}, projects: projects}
	var all []jsonMap
	var kinds []string
	for _, o := range objects {
		raw, err := json.Marshal(o.object)
		if err != nil {
			t.Fatal(err)
		}
		m := jsonMap{}
		if err := json.Unmarshal(raw, &m); err != nil {
			t.Fatal(err)
		}
		kind := relation.Schema.Names[o.kind]
		if kind == "Seed" {
			facts.seeds[textAt(m, "metadata", "name")] = textAt(m, "status", "clientCertificateExpirationTimestamp")
		}
		all, kinds = append(all, m), append(kinds, kind)
	}
	for i, m := range all {
		if selfHosted {
			g.addSelfHosted(kinds[i], m, facts)
		} else {
			g.add(kinds[i], m, facts)
		}
	}
	return g
}

func tokenOf(namespace, name string) string {
	return v("Secret", "kube-system", "bootstrap-token-"+tokenID(namespace, name))
}

// configuration is the gardenlet's, nil if it cannot be read.
func configuration(config any) any {
	if !strings.HasPrefix(textAt(config, "apiVersion"), "gardenlet.config.gardener.cloud/") || textAt(config, "kind") != "GardenletConfiguration" {
		return nil
	}
	return config
}

// add adds the edges of an object to the graph for seeds (6.3).
func (g *naiveGraph) add(kind string, m jsonMap, facts naiveFacts) {
	ns, name := textAt(m, "metadata", "namespace"), textAt(m, "metadata", "name")
	self := v(kind, ns, name)
	seed := func(name string) string { return v("Seed", "", name) }
	switch kind {
	case "BackupBucket":
		g.bucket(self, m)
		g.edge(self, seed(textAt(m, "spec", "seedName"))) // GE-2
	case "BackupEntry":
		g.edge(v("BackupBucket", "", textAt(m, "spec", "bucketName")), self) // GE-5
		g.edge(self, seed(textAt(m, "spec", "seedName")))                    // GE-6
		g.edge(self, seed(textAt(m, "status", "seedName")))                  // GE-7
		for _, owner := range listAt(m, "metadata", "ownerReferences") {     // GE-8
			if textAt(owner, "kind") == "Shoot" {
				g.edge(self, v("Shoot", ns, textAt(owner, "name")))
				break
			}
		}
	case "Bastion":
		g.edge(self, seed(textAt(m, "spec", "seedName"))) // GE-9
	case "CertificateSigningRequest":
		g.edge(self, seed(subject(m, "gardener.cloud:system:seeds", "gardener.cloud:system:seed:"))) // GE-10
	case "ControllerDeployment":
		g.deployment(self, m)
	case "ControllerInstallation":
		g.installation(self, m)
		g.edge(self, seed(textAt(m, "spec", "seedRef", "name"))) // GE-15
	case "CredentialsBinding":
		g.edge(named(at(m, "credentialsRef"), "", "Secret", "WorkloadIdentity", "InternalSecret"), self) // GE-18
	case "SecretBinding":
		g.edge(v("Secret", textAt(m, "secretRef", "namespace"), textAt(m, "secretRef", "name")), self) // GE-19
	case "Gardenlet":
		if !strings.HasPrefix(name, "self-hosted-shoot-") {
			g.edge(self, seed(name)) // GE-20
		}
		if config := configuration(at(m, "spec", "config")); config != nil {
			g.edge(credential(at(config, "seedConfig", "spec", "backup")), self) // GE-21
			if _, exists := facts.seeds[name]; exists && (facts.expired(name) || renewing(m)) {
				g.edge(tokenOf(ns, name), self, "managed") // GE-22
			}
		}
		for _, ref := range []string{"caBundleSecretRef", "pullSecretRef"} { // GE-23
			g.edge(v("Secret", ns, textAt(m, "spec", "deployment", "helm", "ociRepository", ref, "name")), self)
		}
	case "ManagedSeed":
		g.edge(self, v("Shoot", ns, textAt(m, "spec", "shoot", "name"))) // GE-24
		g.edge(seed(name), self, "direct")                               // GE-25
		g.edge(self, seed(name))                                         // GE-27
		config := configuration(at(m, "spec", "gardenlet", "config"))
		if config == nil {
			break
		}
		g.edge(credential(at(config, "seedConfig", "spec", "backup")), self, "managed") // GE-26
		for _, r := range listAt(config, "seedConfig", "spec", "resources") {           // GE-28
			g.edge(named(at(r, "resourceRef"), "garden", "Secret", "ConfigMap", "WorkloadIdentity"), seed(name))
		}
		if _, exists := facts.seeds[name]; exists && !facts.expired(name) && !renewing(m) {
			break
		}
		switch textAt(m, "spec", "gardenlet", "bootstrap") {
		case "BootstrapToken":
			g.edge(tokenOf(ns, name), self, "managed") // GE-29
		case "ServiceAccount":
			g.edge(v("ServiceAccount", ns, "gardenlet-bootstrap-"+name), self, "managed")                                                    // GE-30
			g.edge(v("ClusterRoleBinding", "", "gardener.cloud:system:seed-bootstrapper:"+ns+":gardenlet-bootstrap-"+name), self, "managed") // GE-31
		}
	case "Project":
		g.edge(self, v("Namespace", "", textAt(m, "spec", "namespace"))) // GE-32
	case "ServiceAccount":
		if strings.HasPrefix(name, "gardenlet-bootstrap-") { // GE-33
			for _, secret := range listAt(m, "secrets") {
				g.edge(v("Secret", ns, textAt(secret, "name")), self)
			}
		}
	case "Seed":
		g.edge(v("Namespace", "", "seed-"+name), self)                  // GE-34
		g.edge(v("Lease", "gardener-system-seed-lease", name), self)    // GE-35
		g.edge(v("ConfigMap", "kube-system", "cluster-identity"), self) // GE-36
		g.edge(credential(at(m, "spec", "backup")), self)               // GE-37
		g.edge(credential(at(m, "spec", "dns", "provider")), self)      // GE-38
		g.edge(credential(at(m, "spec", "dns", "internal")), self)      // GE-39
		for _, provider := range listAt(m, "spec", "dns", "defaults") { // GE-40
			g.edge(credential(provider), self)
		}
		for _, r := range listAt(m, "spec", "resources") { // GE-41
			g.edge(named(at(r, "resourceRef"), "garden", "Secret", "ConfigMap", "WorkloadIdentity"), self)
		}
		g.edge(v("Secret", textAt(m, "spec", "secretRef", "namespace"), textAt(m, "spec", "secretRef", "name")), self) // of old
	case "Shoot":
		g.shoot(self, ns, m, facts)
		g.edge(self, seed(textAt(m, "spec", "seedName")))                                                   // GE-46
		g.edge(self, seed(textAt(m, "status", "seedName")))                                                 // GE-47
		for _, suffix := range []string{".ca-cluster", ".ssh-keypair", ".ssh-keypair.old", ".monitoring"} { // GE-53
			g.edge(v("Secret", ns, name+suffix), self, "managed")
		}
		g.edge(v("InternalSecret", ns, name+".ca-client"), self, "managed") // GE-54
		g.edge(v("ConfigMap", ns, name+".ca-cluster"), self, "managed")     // GE-55
		g.edge(v("ConfigMap", ns, name+".ca-kubelet"), self, "managed")
		g.edge(v("ShootState", ns, name), self) // GE-56
	}
	g.known[self], g.watched[self] = true, true
}

func renewing(m jsonMap) bool {
	return textAt(m, "metadata", "annotations", "gardener.cloud/operation") == "renew-kubeconfig"
}

func (g *naiveGraph) bucket(self string, m jsonMap) {
	g.edge(credential(at(m, "spec")), self)                                                                                                         // GE-1
	g.edge(v("Secret", textAt(m, "status", "generatedSecretRef", "namespace"), textAt(m, "status", "generatedSecretRef", "name")), self, "managed") // GE-3
	g.edge(self, v("Shoot", textAt(m, "spec", "shootRef", "namespace"), textAt(m, "spec", "shootRef", "name")))                                     // GE-4
}

func (g *naiveGraph) deployment(self string, m jsonMap) {
	for _, ref := range []string{"pullSecretRef", "caBundleSecretRef"} { // GE-12
		g.edge(v("Secret", "garden", textAt(m, "helm", "ociRepository", ref, "name")), self)
	}
	for _, r := range listAt(m, "resources") { // GE-13
		g.edge(named(at(r, "resourceRef"), "garden", "Secret", "ConfigMap"), self)
	}
}

func (g *naiveGraph) installation(self string, m jsonMap) {
	g.edge(v("ControllerRegistration", "", textAt(m, "spec", "registrationRef", "name")), self)                 // GE-14
	g.edge(v("ControllerDeployment", "", textAt(m, "spec", "deploymentRef", "name")), self)                     // GE-16
	g.edge(self, v("Shoot", textAt(m, "spec", "shootRef", "namespace"), textAt(m, "spec", "shootRef", "name"))) // GE-17
}

// shoot adds what leads to a Shoot by what it says.
func (g *naiveGraph) shoot(self, ns string, m jsonMap, facts naiveFacts) {
	g.edge(v("Namespace", "", ns), self)                                         // GE-42
	g.edge(v("SecretBinding", ns, textAt(m, "spec", "secretBindingName")), self) // GE-43
	g.edge(v("CredentialsBinding", ns, textAt(m, "spec", "credentialsBindingName")), self)
	switch profile := at(m, "spec", "cloudProfile"); { // GE-44
	case profile == nil:
		g.edge(v("CloudProfile", "", textAt(m, "spec", "cloudProfileName")), self)
	case textAt(profile, "kind") == "" || textAt(profile, "kind") == "CloudProfile":
		g.edge(v("CloudProfile", "", textAt(profile, "name")), self)
	case textAt(profile, "kind") == "NamespacedCloudProfile":
		g.edge(v("NamespacedCloudProfile", ns, textAt(profile, "name")), self)
	}
	for _, r := range listAt(m, "spec", "resources") { // GE-45
		g.edge(named(at(r, "resourceRef"), ns, "Secret", "ConfigMap", "WorkloadIdentity"), self)
	}
	g.edge(v("ExposureClass", "", textAt(m, "spec", "exposureClassName")), self) // GE-48
	api := at(m, "spec", "kubernetes", "kubeAPIServer")
	g.edge(v("ConfigMap", ns, textAt(api, "auditConfig", "auditPolicy", "configMapRef", "name")), self) // GE-49
	g.edge(v("ConfigMap", ns, textAt(api, "structuredAuthentication", "configMapName")), self)          // GE-50
	g.edge(v("ConfigMap", ns, textAt(api, "structuredAuthorization", "configMapName")), self)           // GE-51
	for _, k := range listAt(api, "structuredAuthorization", "kubeconfigs") {
		g.edge(v("Secret", ns, textAt(k, "secretName")), self)
	}
	for _, p := range listAt(m, "spec", "dns", "providers") { // GE-52
		if ref := at(p, "credentialsRef"); ref != nil {
			g.edge(named(ref, ns, "Secret", "WorkloadIdentity"), self)
		} else {
			g.edge(v("Secret", ns, textAt(p, "secretName")), self)
		}
	}
	project, uid := facts.projects[ns], textAt(m, "metadata", "uid")
	if textAt(m, "metadata", "annotations", "authentication.gardener.cloud/issuer") == "managed" && project != "" && uid != "" { // GE-57
		g.edge(v("Secret", "gardener-system-shoot-issuer", project+"--"+uid), self, "managed")
	}
}

// addSelfHosted adds the edges of an object to the graph for self-hosted shoots (8.2).
func (g *naiveGraph) addSelfHosted(kind string, m jsonMap, facts naiveFacts) {
	ns, name := textAt(m, "metadata", "namespace"), textAt(m, "metadata", "name")
	self := v(kind, ns, name)
	switch kind {
	case "BackupBucket":
		namespace := textAt(m, "spec", "shootRef", "namespace")
		reference := at(m, "spec", "credentialsRef")
		if reference == nil {
			reference = at(m, "spec", "secretRef")
		}
		if at(m, "spec", "shootRef") != nil && textAt(reference, "namespace") == namespace { // SHG-6
			g.edge(credential(at(m, "spec")), self)
		}
		if generated := at(m, "status", "generatedSecretRef"); textAt(generated, "namespace") == "garden" && textAt(generated, "name") == "generated-bucket-"+name { // SHG-7
			g.edge(v("Secret", "garden", "generated-bucket-"+name), self, "managed")
		}
		g.edge(self, v("Shoot", namespace, textAt(m, "spec", "shootRef", "name"))) // GE-4
	case "BackupEntry":
		g.edge(v("BackupBucket", "", textAt(m, "spec", "bucketName")), self)
		g.edge(self, v("Shoot", textAt(m, "spec", "shootRef", "namespace"), textAt(m, "spec", "shootRef", "name")))
	case "Bastion":
		g.edge(self, v("Shoot", ns, textAt(m, "spec", "shootRef", "name")))
	case "CertificateSigningRequest":
		if shoot := subject(m, "gardener.cloud:system:shoots", "gardener.cloud:system:shoot:"); shoot != "" {
			namespace, rest, _ := strings.Cut(shoot, ":")
			g.edge(self, v("Shoot", namespace, rest))
		}
	case "ControllerDeployment":
		g.deployment(self, m)
	case "ControllerInstallation":
		g.installation(self, m)
	case "CredentialsBinding":
		g.edge(named(at(m, "credentialsRef"), "", "Secret", "WorkloadIdentity", "InternalSecret"), self)
	case "Gardenlet":
		if shoot, found := strings.CutPrefix(name, "self-hosted-shoot-"); found {
			g.edge(self, v("Shoot", ns, shoot))
		}
	case "ManagedSeed":
		g.edge(self, v("Shoot", ns, textAt(m, "spec", "shoot", "name")))
		g.edge(v("Seed", "", name), self, "direct")
		g.edge(self, v("Seed", "", name))
		if textAt(m, "spec", "gardenlet", "bootstrap") == "BootstrapToken" {
			g.edge(tokenOf(ns, name), self)
		}
	case "Project":
		g.edge(self, v("Namespace", "", textAt(m, "spec", "namespace")))
	case "ServiceAccount":
		if rest, found := strings.CutPrefix(name, "extension-shoot--"); found {
			if shoot, _, found := strings.Cut(rest, "--"); found && shoot != "" {
				g.edge(self, v("Shoot", ns, shoot))
			}
		}
	case "Shoot":
		if !slices.ContainsFunc(listAt(m, "spec", "provider", "workers"), func(pool any) bool { return at(pool, "controlPlane") != nil }) {
			return // SHG-8
		}
		g.shoot(self, ns, m, facts)
	default:
		return // Not watched.
	}
	g.known[self], g.watched[self] = true, true
}

// subject is what follows a prefix in the common name of a request for a client certificate.
func subject(m jsonMap, group, prefix string) string {
	raw, err := base64.StdEncoding.DecodeString(textAt(m, "spec", "request"))
	if err != nil || len(listAt(m, "spec", "usages")) != 3 {
		return ""
	}
	block, _ := pem.Decode(raw)
	if block == nil {
		return ""
	}
	parsed, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil || !slices.Equal(parsed.Subject.Organization, []string{group}) {
		return ""
	}
	rest, _ := strings.CutPrefix(parsed.Subject.CommonName, prefix)
	return rest
}

// leads searches for a path. An edge that is direct counts as the first one only.
func (g *naiveGraph) leads(from, to string) bool {
	if !g.known[from] || !g.known[to] {
		return false
	}
	seen := map[string]bool{}
	var search func(at string, first bool) bool
	search = func(at string, first bool) bool {
		if at == to {
			return true
		}
		seen[at] = true
		for _, e := range g.out[at] {
			if (first || !e.direct) && !seen[e.to] && search(e.to, false) {
				return true
			}
		}
		return false
	}
	return search(from, true)
}

// owned says whether the path begins with an edge over which the start is also written.
func (g *naiveGraph) owned(from, to string) bool {
	for _, e := range g.out[from] {
		if e.managed && (e.to == to || g.leadsWithoutDirect(e.to, to)) {
			return true
		}
	}
	return false
}

func (g *naiveGraph) leadsWithoutDirect(from, to string) bool {
	seen := map[string]bool{from: true}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		if queue[0] == to {
			return true
		}
		for _, e := range g.out[queue[0]] {
			if !e.direct && !seen[e.to] {
				seen[e.to] = true
				queue = append(queue, e.to)
			}
		}
	}
	return false
}
