package relation

import (
	"slices"

	"github.com/espalier-project/espalier/internal/graph"
)

// Kinds of vertices (6.1).
const (
	Secret graph.Kind = iota
	ConfigMap
	InternalSecret
	WorkloadIdentity
	CloudProfile
	NamespacedCloudProfile
	ExposureClass
	Lease
	ShootState
	ControllerRegistration
	ClusterRoleBinding
	Project
	Bastion
	CertificateSigningRequest
	ControllerDeployment
	CredentialsBinding
	SecretBinding
	ServiceAccount
	Gardenlet
	Namespace
	BackupBucket
	BackupEntry
	ControllerInstallation
	ManagedSeed
	Shoot
	Seed
	numberOfKinds
)

// Schema is the schema of the garden's graph. The ranks follow from the table of edges: an ordinary edge always leads
// to a higher rank, so that no cycle is possible; Direct edges may lead back. A test compares the ranks with the
// table.
var Schema = graph.Schema{
	Sink: Seed,
	Names: []string{
		Secret: "Secret", ConfigMap: "ConfigMap", InternalSecret: "InternalSecret", WorkloadIdentity: "WorkloadIdentity",
		CloudProfile: "CloudProfile", NamespacedCloudProfile: "NamespacedCloudProfile", ExposureClass: "ExposureClass", Lease: "Lease",
		ShootState: "ShootState", ControllerRegistration: "ControllerRegistration", ClusterRoleBinding: "ClusterRoleBinding",
		Project: "Project", Bastion: "Bastion", CertificateSigningRequest: "CertificateSigningRequest",
		ControllerDeployment: "ControllerDeployment", CredentialsBinding: "CredentialsBinding", SecretBinding: "SecretBinding",
		ServiceAccount: "ServiceAccount", Gardenlet: "Gardenlet", Namespace: "Namespace", BackupBucket: "BackupBucket",
		BackupEntry: "BackupEntry", ControllerInstallation: "ControllerInstallation", ManagedSeed: "ManagedSeed", Shoot: "Shoot", Seed: "Seed",
	},
	Ranks: []int{
		Secret: 0, ConfigMap: 0, InternalSecret: 0, WorkloadIdentity: 0, CloudProfile: 0, NamespacedCloudProfile: 0, ExposureClass: 0,
		Lease: 0, ShootState: 0, ControllerRegistration: 0, ClusterRoleBinding: 0, Project: 0, Bastion: 0, CertificateSigningRequest: 0,
		ControllerDeployment: 1, CredentialsBinding: 1, SecretBinding: 1, ServiceAccount: 1, Gardenlet: 1, Namespace: 1, BackupBucket: 1,
		BackupEntry: 2, ControllerInstallation: 2, ManagedSeed: 2, Shoot: 3, Seed: 4,
	},
}

// KindNamed returns the kind with a name.
func KindNamed(name string) (graph.Kind, bool) {
	at := slices.Index(Schema.Names, name)
	return graph.Kind(max(at, 0)), at >= 0
}

// SeedVertex returns the vertex of a seed.
func SeedVertex(name string) graph.Vertex { return graph.Vertex{Kind: Seed, Name: name} }

// ClusterScoped reports whether objects of a kind have no namespace.
func ClusterScoped(kind graph.Kind) bool {
	switch kind {
	case BackupBucket, CertificateSigningRequest, CloudProfile, ClusterRoleBinding, ControllerDeployment, ControllerInstallation,
		ControllerRegistration, ExposureClass, Namespace, Project, Seed:
		return true
	}
	return false
}
