package dump

import (
	"encoding/json"
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	gardenletv1alpha1 "github.com/espalier-project/espalier/internal/externalapi/gardenlet/v1alpha1"
	"github.com/espalier-project/espalier/internal/externalapi/partialmeta"
	seedmanagementv1alpha1 "github.com/espalier-project/espalier/internal/externalapi/seedmanagement/v1alpha1"
	"github.com/espalier-project/espalier/internal/externalapi/wellknown"
)

// sliced is an object whose type has only the fields that are read.
type sliced interface {
	runtime.Object
	Metadata() *partialmeta.Object
}

// cut returns a copy of an object with only the fields that the table of edges reads, and its namespace and name.
// Complete objects of Kubernetes' own kinds are copied field by field; partial types have only these fields already,
// except for metadata and embedded configurations.
func cut(object runtime.Object) (copied runtime.Object, namespace, name string, err error) {
	switch typed := object.(type) {
	case *corev1.Namespace:
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: typed.Name, ResourceVersion: typed.ResourceVersion, Labels: only(typed.Labels, wellknown.Project),
		}}, "", typed.Name, nil
	case *corev1.ServiceAccount:
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: typed.Namespace, Name: typed.Name, ResourceVersion: typed.ResourceVersion}}
		for i := range typed.Secrets {
			account.Secrets = append(account.Secrets, corev1.ObjectReference{Name: typed.Secrets[i].Name})
		}
		return account, typed.Namespace, typed.Name, nil
	case *certificatesv1.CertificateSigningRequest: // A request has a public key and the name of the requester.
		return &certificatesv1.CertificateSigningRequest{
			ObjectMeta: metav1.ObjectMeta{Name: typed.Name, ResourceVersion: typed.ResourceVersion},
			Spec:       certificatesv1.CertificateSigningRequestSpec{Request: typed.Spec.Request, Usages: typed.Spec.Usages},
		}, "", typed.Name, nil
	case sliced:
		slice, isSlice := typed.DeepCopyObject().(sliced)
		if !isSlice {
			return nil, "", "", fmt.Errorf("a copy of %T is %T", typed, slice)
		}
		metadata := slice.Metadata()
		*metadata = cutMetadata(metadata)
		return slice, metadata.Namespace, metadata.Name, cutConfigs(slice)
	}
	return nil, "", "", fmt.Errorf("objects of type %T are not part of a dump", object)
}

// cutMetadata keeps the names, the version, the UID, which is a part of an issuer's name (GE-57), the annotations that decide about edges
// (GE-22, GE-29, GE-57), and the names of owners (GE-8).
func cutMetadata(m *partialmeta.Object) partialmeta.Object {
	less := partialmeta.Object{
		Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion,
		Annotations: only(m.Annotations, wellknown.Operation, wellknown.Issuer),
	}
	for _, owner := range m.OwnerReferences {
		less.OwnerReferences = append(less.OwnerReferences, metav1.OwnerReference{APIVersion: owner.APIVersion, Kind: owner.Kind, Name: owner.Name})
	}
	return less
}

// cutConfigs cuts embedded configurations of gardenlets.
func cutConfigs(object runtime.Object) (err error) {
	switch typed := object.(type) {
	case *seedmanagementv1alpha1.ManagedSeed:
		if typed.Spec.Gardenlet != nil {
			typed.Spec.Gardenlet.Config, err = cutConfig(typed.Spec.Gardenlet.Config)
		}
	case *seedmanagementv1alpha1.Gardenlet:
		typed.Spec.Config, err = cutConfig(typed.Spec.Config)
	}
	return err
}

// cutConfig keeps the references of a gardenlet's configuration. An unreadable configuration has no edges, so it is
// replaced by an empty one.
func cutConfig(raw *runtime.RawExtension) (*runtime.RawExtension, error) {
	if raw == nil {
		return nil, nil
	}
	less := []byte("{}")
	if config, unreadable := gardenletv1alpha1.Decode(raw); unreadable == nil {
		var err error
		if less, err = json.Marshal(config); err != nil {
			return nil, err
		}
	}
	return &runtime.RawExtension{Raw: less}, nil
}

// only returns the entries with some keys, nil if there are none.
func only(all map[string]string, keys ...string) map[string]string {
	var some map[string]string
	for _, key := range keys {
		if value, found := all[key]; found {
			if some == nil {
				some = map[string]string{}
			}
			some[key] = value
		}
	}
	return some
}
