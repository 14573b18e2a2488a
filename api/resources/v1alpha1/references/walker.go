package references

import (
	corev1 "k8s.io/api/core/v1"
)

// walker collects references. TestWalkerKnowsAllFields compares it with the types of Pods.
type walker struct{ found []Reference }

func (w *walker) add(kind Kind, name string) {
	if name != "" {
		w.found = append(w.found, Reference{kind, name})
	}
}

func (w *walker) environment(from []corev1.EnvFromSource, variables []corev1.EnvVar) {
	for _, source := range from {
		if source.SecretRef != nil {
			w.add(Secret, source.SecretRef.Name)
		}
		if source.ConfigMapRef != nil {
			w.add(ConfigMap, source.ConfigMapRef.Name)
		}
	}
	for _, variable := range variables {
		if variable.ValueFrom == nil {
			continue
		}
		if ref := variable.ValueFrom.SecretKeyRef; ref != nil {
			w.add(Secret, ref.Name)
		}
		if ref := variable.ValueFrom.ConfigMapKeyRef; ref != nil {
			w.add(ConfigMap, ref.Name)
		}
	}
}

func (w *walker) volume(v *corev1.VolumeSource) {
	if v.Secret != nil {
		w.add(Secret, v.Secret.SecretName)
	}
	if v.ConfigMap != nil {
		w.add(ConfigMap, v.ConfigMap.Name)
	}
	if v.Projected != nil {
		for _, source := range v.Projected.Sources {
			if source.Secret != nil {
				w.add(Secret, source.Secret.Name)
			}
			if source.ConfigMap != nil {
				w.add(ConfigMap, source.ConfigMap.Name)
			}
		}
	}
	if v.AzureFile != nil {
		w.add(Secret, v.AzureFile.SecretName)
	}
	for _, ref := range credentials(v) {
		if ref != nil {
			w.add(Secret, ref.Name)
		}
	}
}

// credentials returns the Secrets with the credentials for mounting a volume.
func credentials(v *corev1.VolumeSource) []*corev1.LocalObjectReference {
	var refs []*corev1.LocalObjectReference
	if v.CSI != nil {
		refs = append(refs, v.CSI.NodePublishSecretRef)
	}
	if v.CephFS != nil {
		refs = append(refs, v.CephFS.SecretRef)
	}
	if v.Cinder != nil {
		refs = append(refs, v.Cinder.SecretRef)
	}
	if v.FlexVolume != nil {
		refs = append(refs, v.FlexVolume.SecretRef)
	}
	if v.ISCSI != nil {
		refs = append(refs, v.ISCSI.SecretRef)
	}
	if v.RBD != nil {
		refs = append(refs, v.RBD.SecretRef)
	}
	if v.ScaleIO != nil {
		refs = append(refs, v.ScaleIO.SecretRef)
	}
	if v.StorageOS != nil {
		refs = append(refs, v.StorageOS.SecretRef)
	}
	return refs
}
