package garden

import "k8s.io/utils/ptr"

// ReferencesIndex is the name under which caches index Shoots by References.
const ReferencesIndex = "references"

// References returns the objects by which webhooks look Shoots up, as ConfigMap/<name> and Secret/<name>.
func (s *Shoot) References() []string {
	server := s.Spec.Kubernetes.KubeAPIServer
	if server == nil {
		return nil
	}
	var all []string
	add := func(kind, name string) {
		if name != "" {
			all = append(all, kind+"/"+name)
		}
	}
	if c := server.AuditConfig; c != nil && c.AuditPolicy != nil && c.AuditPolicy.ConfigMapRef != nil {
		add("ConfigMap", c.AuditPolicy.ConfigMapRef.Name)
	}
	if c := server.StructuredAuthentication; c != nil {
		add("ConfigMap", c.ConfigMapName)
	}
	if c := server.StructuredAuthorization; c != nil {
		add("ConfigMap", c.ConfigMapName)
		for _, kubeconfig := range c.Kubeconfigs {
			add("Secret", kubeconfig.SecretName)
		}
	}
	for _, plugin := range server.AdmissionPlugins {
		add("Secret", ptr.Deref(plugin.KubeconfigSecretName, ""))
	}
	return all
}
