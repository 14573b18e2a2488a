// Written by internal/gen/docs from the table of edges; make generate writes it anew.

// Package relation defines the dependencies between objects of the garden: one row for each edge of the graph, in one
// table (Watches), the source of the watches, the labels of metrics, docs/reference/graph.md and the picture below.
//
// A row is a pure function from an object of a watched kind to edges. The few rows that depend on another object, too,
// name it in Needs; State keeps the fields that they need of it and computes the rows again when these change.
//
// The picture reads from the bottom to the top: the kinds below a kind have edges to it, by the rows in brackets. A
// seed's clients may reach every object that leads to their Seed. Each kind's own lines stand once, where it is
// nearest to the Seed; elsewhere it ends in dots.
//
//	Seed
//	├─ Bastion [GE-9]
//	├─ CertificateSigningRequest [GE-10]
//	├─ ConfigMap [GE-28, GE-36, GE-41]
//	├─ Lease [GE-35]
//	├─ Secret [GE-28, GE-37, GE-38, GE-39, GE-40, GE-41, GE-41a]
//	├─ WorkloadIdentity [GE-28, GE-37, GE-38, GE-39, GE-40, GE-41]
//	├─ BackupBucket [GE-2]
//	│  ├─ Secret [GE-1, GE-3]
//	│  └─ WorkloadIdentity [GE-1]
//	├─ BackupEntry [GE-6, GE-7]
//	│  └─ BackupBucket [GE-5] …
//	├─ ControllerInstallation [GE-15]
//	│  ├─ ControllerRegistration [GE-14]
//	│  └─ ControllerDeployment [GE-16]
//	│     ├─ ConfigMap [GE-13]
//	│     └─ Secret [GE-12, GE-13]
//	├─ Gardenlet [GE-20]
//	│  ├─ Secret [GE-21, GE-22, GE-23]
//	│  └─ WorkloadIdentity [GE-21]
//	├─ ManagedSeed [GE-27]
//	│  ├─ ClusterRoleBinding [GE-31]
//	│  ├─ Secret [GE-26, GE-29]
//	│  ├─ Seed [GE-25 for requests for it alone] …
//	│  ├─ WorkloadIdentity [GE-26]
//	│  └─ ServiceAccount [GE-30]
//	│     └─ Secret [GE-33]
//	├─ Namespace [GE-34]
//	│  └─ Project [GE-32]
//	└─ Shoot [GE-46, GE-47]
//	   ├─ BackupBucket [GE-4] …
//	   ├─ BackupEntry [GE-8] …
//	   ├─ CloudProfile [GE-44]
//	   ├─ ConfigMap [GE-45, GE-49, GE-50, GE-51, GE-55]
//	   ├─ ControllerInstallation [GE-17] …
//	   ├─ ExposureClass [GE-48]
//	   ├─ InternalSecret [GE-54]
//	   ├─ ManagedSeed [GE-24] …
//	   ├─ Namespace [GE-42] …
//	   ├─ NamespacedCloudProfile [GE-44]
//	   ├─ Secret [GE-45, GE-51, GE-52, GE-53, GE-57]
//	   ├─ ShootState [GE-56]
//	   ├─ WorkloadIdentity [GE-45, GE-52]
//	   ├─ CredentialsBinding [GE-43]
//	   │  ├─ InternalSecret [GE-18]
//	   │  ├─ Secret [GE-18]
//	   │  └─ WorkloadIdentity [GE-18]
//	   └─ SecretBinding [GE-43]
//	      └─ Secret [GE-19]
package relation
