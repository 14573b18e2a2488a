// Package landscape generates gardens of any size: the same for benchmarks, tests and the local run. Its result depends on
// its options only.
package landscape

import (
	"fmt"
)

// Options are the size of a garden.
type Options struct {
	Seeds, Projects, Shoots int
}

// Object is one object of the garden, in the form of its JSON.
type Object struct {
	// Resource is the plural name.
	Resource string
	Content  map[string]any
}

type fields = map[string]any

// SeedName is the name of a seed.
func SeedName(i int) string { return fmt.Sprintf("seed-%03d", i) }

// ShootName returns namespace and name of a shoot.
func (o Options) ShootName(i int) (namespace, name string) {
	return o.namespace(i % o.Projects), fmt.Sprintf("shoot-%05d", i)
}

// SeedOf is the seed of a shoot. The last seed has none, so that it is refused whatever it asks of shoots.
func (o Options) SeedOf(i int) string { return SeedName(i % (o.Seeds - 1)) }

// IdleSeed is the seed without shoots.
func (o Options) IdleSeed() string { return SeedName(o.Seeds - 1) }

func (o Options) namespace(project int) string { return fmt.Sprintf("garden-p%03d", project) }

// CloudProfile is the one that all shoots have.
const CloudProfile = "profile"

// Generate calls emit for each object of the garden, those that others need first.
func (o Options) Generate(emit func(Object) error) error {
	var failed error
	// add completes an object and emits it, until the first error.
	add := func(resource, apiVersion, kind, namespace, name string, content fields) {
		if failed != nil {
			return
		}
		metadata := fields{"name": name}
		if namespace != "" {
			metadata["namespace"] = namespace
		}
		if more, found := content["metadata"].(fields); found {
			for key, value := range more {
				metadata[key] = value
			}
		}
		content["apiVersion"], content["kind"], content["metadata"] = apiVersion, kind, metadata
		failed = emit(Object{resource, content})
	}
	const core, security = "core.gardener.cloud/v1beta1", "security.gardener.cloud/v1alpha1"
	for i := range o.Projects {
		name, namespace := fmt.Sprintf("p%03d", i), o.namespace(i)
		add("namespaces", "v1", "Namespace", "", namespace, fields{"metadata": fields{"labels": fields{"project.gardener.cloud/name": name}}})
		add("projects", core, "Project", "", name, fields{"spec": fields{"namespace": namespace, "description": "A project of the landscape"}})
		add("secretbindings", core, "SecretBinding", namespace, "old", fields{"secretRef": fields{"namespace": namespace, "name": "credentials-old"}})
		add("credentialsbindings", security, "CredentialsBinding", namespace, "new", fields{"credentialsRef": secret(namespace, "credentials-new"), "provider": fields{"type": "local"}})
	}
	for i := range o.Seeds {
		o.seed(i, add)
	}
	for i := range o.Shoots {
		o.shoot(i, add)
	}
	return failed
}

type adder func(resource, apiVersion, kind, namespace, name string, content fields)

func secret(namespace, name string) fields {
	return fields{"apiVersion": "v1", "kind": "Secret", "namespace": namespace, "name": name}
}

// extensions is the number of ControllerInstallations of a seed.
const extensions = 10

func (o Options) seed(i int, add adder) {
	const core = "core.gardener.cloud/v1beta1"
	name := SeedName(i)
	add("namespaces", "v1", "Namespace", "", "seed-"+name, fields{})
	add("seeds", core, "Seed", "", name, fields{
		"metadata": fields{"labels": fields{"name.seed.gardener.cloud/" + name: "true"}},
		"spec": fields{
			"backup":   fields{"provider": "local", "credentialsRef": secret("garden", "backup-"+name)},
			"dns":      fields{"provider": fields{"type": "local", "credentialsRef": secret("garden", "dns-"+name)}, "internal": fields{"type": "local", "domain": "internal.example.com", "credentialsRef": secret("garden", "internal-domain")}},
			"networks": fields{"nodes": "10.0.0.0/16", "pods": "10.1.0.0/16", "services": "10.2.0.0/16"},
			"provider": fields{"type": "local", "region": "local", "zones": []any{"a", "b", "c"}},
		},
	})
	add("backupbuckets", core, "BackupBucket", "", "bucket-"+name, fields{"spec": fields{
		"seedName": name, "credentialsRef": secret("garden", "backup-"+name), "provider": fields{"type": "local", "region": "local"}}})
	for e := range extensions {
		extension := fmt.Sprintf("extension-%02d", e)
		add("controllerinstallations", core, "ControllerInstallation", "", extension+"-"+name, fields{"spec": fields{
			"registrationRef": fields{"name": extension}, "deploymentRef": fields{"name": extension}, "seedRef": fields{"name": name}}})
	}
}

func (o Options) shoot(i int, add adder) {
	const core = "core.gardener.cloud/v1beta1"
	namespace, name := o.ShootName(i)
	seed := o.SeedOf(i)
	binding, bindingField := "old", "secretBindingName"
	if i%2 == 1 {
		binding, bindingField = "new", "credentialsBindingName"
	}
	add("shoots", core, "Shoot", namespace, name, fields{
		"metadata": fields{
			"labels":      fields{"name.seed.gardener.cloud/" + seed: "true", "shoot.gardener.cloud/status": "healthy"},
			"annotations": fields{"gardener.cloud/created-by": "somebody@example.com"},
		},
		"spec": fields{
			"seedName": seed, bindingField: binding, "cloudProfile": fields{"kind": "CloudProfile", "name": CloudProfile}, "purpose": "evaluation", "region": "local",
			"dns":       fields{"domain": name + ".example.com", "providers": []any{fields{"type": "local", "credentialsRef": fields{"apiVersion": "v1", "kind": "Secret", "name": name + "-dns"}}}},
			"resources": []any{fields{"name": "audit", "resourceRef": fields{"apiVersion": "v1", "kind": "Secret", "name": name + "-resource"}}},
			"kubernetes": fields{"version": "1.34.1", "kubeAPIServer": fields{
				"auditConfig": fields{"auditPolicy": fields{"configMapRef": fields{"name": "audit-policy"}}}, "requests": fields{"maxMutatingInflight": 400, "maxNonMutatingInflight": 800}},
				"kubeControllerManager": fields{"nodeCIDRMaskSize": 24}, "kubeProxy": fields{"mode": "IPTables", "enabled": true}, "kubelet": fields{"failSwapOn": true}},
			"maintenance": fields{"autoUpdate": fields{"kubernetesVersion": true, "machineImageVersion": true}, "timeWindow": fields{"begin": "220000+0100", "end": "230000+0100"}},
			"networking":  fields{"type": "calico", "pods": "100.64.0.0/12", "nodes": "10.180.0.0/16", "services": "100.104.0.0/13"},
			"provider":    fields{"type": "local", "workers": []any{worker("a"), worker("b")}},
			"hibernation": fields{"schedules": []any{fields{"start": "0 18 * * 1-5", "end": "0 8 * * 1-5", "location": "Europe/Berlin"}}},
		},
		"status": fields{
			"seedName": seed, "technicalID": "shoot--" + namespace + "--" + name, "clusterIdentity": namespace + "-" + name, "observedGeneration": 3, "retryCycleStartTime": "2026-01-01T00:00:00Z",
			"lastOperation": fields{"type": "Reconcile", "state": "Succeeded", "progress": 100, "description": "Shoot cluster has been successfully reconciled."},
			"conditions":    []any{condition("APIServerAvailable"), condition("ControlPlaneHealthy"), condition("EveryNodeReady"), condition("ObservabilityComponentsHealthy"), condition("SystemComponentsHealthy")},
		},
	})
	add("backupentries", core, "BackupEntry", namespace, "shoot--"+name, fields{
		"metadata": fields{"ownerReferences": []any{fields{"apiVersion": core, "kind": "Shoot", "name": name, "uid": fmt.Sprintf("00000000-0000-0000-0000-%012d", i)}}},
		"spec":     fields{"bucketName": "bucket-" + seed, "seedName": seed}, "status": fields{"seedName": seed}})
	// Somebody's ServiceAccount, of which gardens have many; it has no place in the graph.
	add("serviceaccounts", "v1", "ServiceAccount", namespace, "robot-"+name, fields{})
}

func worker(name string) fields {
	return fields{
		"name": "worker-" + name, "minimum": 1, "maximum": 5, "maxSurge": 1, "maxUnavailable": 0, "zones": []any{"a", "b"},
		"machine": fields{"type": "large", "architecture": "amd64", "image": fields{"name": "linux", "version": "1.2.3"}}, "volume": fields{"type": "fast", "size": "50Gi"},
		"cri": fields{"name": "containerd"}, "systemComponents": fields{"allow": true},
	}
}

func condition(name string) fields {
	return fields{"type": name, "status": "True", "reason": name + "Running", "message": "All is as it should be.", "lastTransitionTime": "2026-01-01T00:00:00Z", "lastUpdateTime": "2026-01-01T00:00:00Z"}
}
