package csrapprover

import (
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	"github.com/espalier-project/espalier/internal/controller/csrapprover/csr"
	machinev1alpha1 "github.com/espalier-project/espalier/internal/externalapi/machine/v1alpha1"
	"github.com/espalier-project/espalier/internal/feature"
)

// Reads are the objects that the approver reads. It keeps only the names of requests that are decided or that another
// approver decides.
func Reads(cfg *config.ResourceManagerConfiguration) []feature.Read {
	all := []feature.Read{
		{
			Cluster: feature.Target, Kind: certificatesv1.SchemeGroupVersion.WithKind("CertificateSigningRequest"), Resource: "certificatesigningrequests", ClusterScoped: true, Form: feature.Whole,
			Strip: feature.Stripping(csr.Strip),
		},
		{Cluster: feature.Target, Kind: corev1.SchemeGroupVersion.WithKind("Node"), Resource: "nodes", ClusterScoped: true, Form: feature.Live},
	}
	if namespace := ptr.Deref(cfg.Controllers.CSRApprover.MachineNamespace, ""); namespace != "" {
		all = append(all, feature.Read{Cluster: feature.Source, Kind: machineKind, Resource: machinev1alpha1.Machines.Resource, Namespace: namespace, Form: feature.Live, Listed: true})
	}
	return all
}

// Writes are the decisions. To approve, the API server also requires the permission for the signer.
func Writes(*config.ResourceManagerConfiguration) []feature.Write {
	return []feature.Write{
		{Cluster: feature.Target, Group: certificatesv1.GroupName, Resource: "certificatesigningrequests/approval", Verbs: []string{"update"}},
		{Cluster: feature.Target, Group: certificatesv1.GroupName, Resource: "signers", Verbs: []string{"approve"}, Names: []string{certificatesv1.KubeletServingSignerName, certificatesv1.KubeAPIServerClientSignerName}},
	}
}
