package garden

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-project/espalier/internal/foreign/names"
)

// Strip removes from an object what nobody reads of it in a cache: all metadata but what identifies it, when it goes, and whether its
// issuer is managed.
func Strip(object any) (any, error) {
	switch o := object.(type) {
	case *Shoot:
		o.ObjectMeta = strip(&o.ObjectMeta)
	case *SecretBinding:
		o.ObjectMeta = strip(&o.ObjectMeta)
	case *CredentialsBinding:
		o.ObjectMeta = strip(&o.ObjectMeta)
	}
	return object, nil
}

func strip(m *metav1.ObjectMeta) metav1.ObjectMeta {
	kept := metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion, DeletionTimestamp: m.DeletionTimestamp}
	if issuer, found := m.Annotations[names.Issuer]; found {
		kept.Annotations = map[string]string{names.Issuer: issuer}
	}
	return kept
}
