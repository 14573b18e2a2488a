package garden

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-project/espalier/internal/externalapi/names"
)

// Strip removes the fields of objects that no reader of a cache needs: all metadata but what identifies them, when they go, and whether their
// issuer is managed. Of a Shoot that refers to nothing only those are left. All caches of a kind of the garden keep it like this.
// +kubebuilder:object:generate=false
type Strip struct{}

// Strip changes an object of this package, and returns any as what is kept of it.
func (Strip) Strip(object any) (any, error) {
	switch o := object.(type) {
	case *Shoot:
		o.ObjectMeta = strip(&o.ObjectMeta)
		if len(o.References()) == 0 {
			o.Spec, o.Status = ShootSpec{}, ShootStatus{}
		}
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
