package builders

// Annotated sets an annotation.
func (o *Object) Annotated(key, value string) *Object { return o.keyed("annotations", key, value) }

// Labelled sets a label.
func (o *Object) Labelled(key, value string) *Object { return o.keyed("labels", key, value) }

// keyed sets a key, which may have dots, of a map in the metadata.
func (o *Object) keyed(name, key, value string) *Object {
	metadata, _ := o.parent("metadata." + name)
	values, is := metadata[name].(map[string]any)
	if !is {
		values = map[string]any{}
		metadata[name] = values
	}
	values[key] = value
	return o
}

// UID sets the UID.
func (o *Object) UID(uid string) *Object { return o.With("metadata.uid", uid) }

// OwnedBy adds an owner.
func (o *Object) OwnedBy(kind, name string) *Object {
	return o.Add("metadata.ownerReferences", map[string]any{"apiVersion": "core.gardener.cloud/v1beta1", "kind": kind, "name": name, "uid": "u"})
}

// OnSeed names the Seed that the object is to be on.
func (o *Object) OnSeed(seed string) *Object { return o.With("spec.seedName", seed) }

// SelfHosted gives a Shoot a pool that runs its control plane.
func (o *Object) SelfHosted() *Object {
	return o.Add("spec.provider.workers", map[string]any{"controlPlane": map[string]any{}})
}

// StillOnSeed names the Seed that the object was on last.
func (o *Object) StillOnSeed(seed string) *Object { return o.With("status.seedName", seed) }

// CloudProfile names the CloudProfile of a Shoot.
func (o *Object) CloudProfile(name string) *Object { return o.With("spec.cloudProfile.name", name) }

// SecretBinding names the SecretBinding of a Shoot.
func (o *Object) SecretBinding(name string) *Object { return o.With("spec.secretBindingName", name) }

// CredentialsBinding names the CredentialsBinding of a Shoot.
func (o *Object) CredentialsBinding(name string) *Object {
	return o.With("spec.credentialsBindingName", name)
}

// Resource adds what a Shoot or a Seed refers to for its extensions.
func (o *Object) Resource(to ...Reference) *Object {
	for _, reference := range to {
		o.Add("spec.resources", resource(reference))
	}
	return o
}

func resource(to Reference) map[string]any {
	return map[string]any{"name": to["name"], "resourceRef": to}
}

// DNSProvider adds a provider of DNS to a Shoot, with its credentials.
func (o *Object) DNSProvider(credentials Reference) *Object {
	return o.Add("spec.dns.providers", map[string]any{"credentialsRef": credentials})
}

// APIServer sets a field of the kube-apiserver of a Shoot.
func (o *Object) APIServer(path string, value any) *Object {
	return o.With("spec.kubernetes.kubeAPIServer."+path, value)
}

// AuditPolicy names the ConfigMap with the audit policy of a Shoot.
func (o *Object) AuditPolicy(configMap string) *Object {
	return o.APIServer("auditConfig.auditPolicy.configMapRef.name", configMap)
}

// Authentication names the ConfigMap with the authentication configuration of a Shoot.
func (o *Object) Authentication(configMap string) *Object {
	return o.APIServer("structuredAuthentication.configMapName", configMap)
}

// Authorization names the ConfigMap with the authorization configuration of a Shoot.
func (o *Object) Authorization(configMap string) *Object {
	return o.APIServer("structuredAuthorization.configMapName", configMap)
}

// Authorizer adds the Secret with the kubeconfig of a webhook authorizer of a Shoot.
func (o *Object) Authorizer(name, secret string) *Object {
	return o.Add("spec.kubernetes.kubeAPIServer.structuredAuthorization.kubeconfigs", map[string]any{"authorizerName": name, "secretName": secret})
}

// Bootstrap says how the gardenlet of a ManagedSeed joins: BootstrapToken, ServiceAccount or None.
func (o *Object) Bootstrap(mode string) *Object { return o.With("spec.gardenlet.bootstrap", mode) }

// SeedSpec sets a field of the Seed that a Gardenlet, or the gardenlet of a ManagedSeed, registers.
func (o *Object) SeedSpec(path string, value any) *Object {
	config := "spec.config."
	if o.fields["kind"] == "ManagedSeed" {
		config = "spec.gardenlet.config."
	}
	o.With(config+"apiVersion", "gardenlet.config.gardener.cloud/v1alpha1").With(config+"kind", "GardenletConfiguration")
	return o.With(config+"seedConfig.spec."+path, value)
}

// Pulls names the Secrets that images of a Gardenlet or a ControllerDeployment are pulled with.
func (o *Object) Pulls(secret, caBundle string) *Object {
	repository := "helm.ociRepository."
	if o.fields["kind"] == "Gardenlet" {
		repository = "spec.deployment." + repository
	}
	return o.With(repository+"pullSecretRef.name", secret).With(repository+"caBundleSecretRef.name", caBundle)
}
