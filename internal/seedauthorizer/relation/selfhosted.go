package relation

import (
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	gardencorev1 "github.com/espalier-project/espalier/internal/externalapi/core/v1"
	gardencorev1beta1 "github.com/espalier-project/espalier/internal/externalapi/core/v1beta1"
	operationsv1alpha1 "github.com/espalier-project/espalier/internal/externalapi/operations/v1alpha1"
	securityv1alpha1 "github.com/espalier-project/espalier/internal/externalapi/security/v1alpha1"
	seedmanagementv1alpha1 "github.com/espalier-project/espalier/internal/externalapi/seedmanagement/v1alpha1"
	"github.com/espalier-project/espalier/internal/externalapi/wellknown"
	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/internal/seedauthorizer/identity"
)

// SelfHostedSchema is the schema of the graph for self-hosted shoots: the same kinds, with Shoots as sinks.
var SelfHostedSchema = graph.Schema{Names: Schema.Names, Ranks: Schema.Ranks, Sink: Shoot}

// SelfHosted is the table of the graph for self-hosted shoots (section 8.2). It has no other Shoots (SHG-8). It
// leaves out objects that belong to a Shoot by their name, because the client's own name is sufficient for them.
// Content that the clients of a self-hosted shoot write into their own Gardenlet and ServiceAccounts makes no edges,
// and of their BackupBucket only the references that can be theirs do.
var SelfHosted = Table{
	derive(backupBuckets, []string{"GE-4"}, []row[gardencorev1beta1.BackupBucket]{
		{Row{ID: "SHG-6", From: credentials, To: kinds(BackupBucket), Fields: []string{"spec.credentialsRef", "spec.secretRef"}, When: "in the namespace of spec.shootRef"},
			func(b *gardencorev1beta1.BackupBucket, add *collector) {
				if shoot := b.Spec.ShootRef; shoot != nil {
					add.credentialsIn(shoot.Namespace, b.Spec.CredentialsRef, b.Spec.SecretRef)
				}
			}},
		{Row{ID: "SHG-7", Joins: generatedBucket, From: kinds(Secret), To: kinds(BackupBucket), Fields: []string{"status.generatedSecretRef"}, Class: graph.Manages,
			When: "Secret " + wellknown.Garden + "/" + wellknown.GeneratedBucketPrefix + "<name>, which the gardenlet writes"},
			func(b *gardencorev1beta1.BackupBucket, add *collector) {
				if ref := b.Status.GeneratedSecretRef; ref != nil && ref.Namespace == wellknown.Garden && ref.Name == wellknown.GeneratedBucketPrefix+b.Name {
					add.from(Secret, ref.Namespace, ref.Name)
				}
			}},
	}),
	derive(backupEntries, []string{"GE-5"}, []row[gardencorev1beta1.BackupEntry]{
		{Row{ID: "SHG-1", From: kinds(BackupEntry), To: kinds(Shoot), Fields: []string{"spec.shootRef"}},
			func(b *gardencorev1beta1.BackupEntry, add *collector) { add.toReference(Shoot, b.Spec.ShootRef) }},
	}),
	derive(bastions, nil, []row[operationsv1alpha1.Bastion]{
		{Row{ID: "SHG-2", Joins: sameNamespace, From: kinds(Bastion), To: kinds(Shoot), Fields: []string{"spec.shootRef"}, When: "in the Bastion's namespace"},
			func(b *operationsv1alpha1.Bastion, add *collector) {
				add.to(Shoot, b.Namespace, nameOf(b.Spec.ShootRef))
			}},
	}),
	derive(certificateSigningRequests, nil, []row[certificatesv1.CertificateSigningRequest]{
		{Row{ID: "GE-11", From: kinds(CertificateSigningRequest), To: kinds(Shoot), Fields: []string{"spec.request"}, When: "the request is for the client certificate of a self-hosted shoot's gardenlet"},
			func(c *certificatesv1.CertificateSigningRequest, add *collector) {
				if namespace, name, err := identity.ShootOfCertificateRequest(c.Spec.Request, c.Spec.Usages); err == nil {
					add.to(Shoot, namespace, name)
				}
			}},
	}),
	derive[gardencorev1.ControllerDeployment](controllerDeployments, []string{"GE-12", "GE-13"}, nil),
	derive[gardencorev1beta1.ControllerInstallation](controllerInstallations, []string{"GE-14", "GE-16", "GE-17"}, nil),
	derive[securityv1alpha1.CredentialsBinding](credentialsBindings, []string{"GE-18"}, nil),
	derive(gardenlets, nil, []row[seedmanagementv1alpha1.Gardenlet]{
		{Row{ID: "SHG-3", Joins: ofShootGardenlet, From: kinds(Gardenlet), To: kinds(Shoot), When: "for a name that starts with " + wellknown.SelfHostedShootPrefix + ", the Shoot that the rest names"},
			func(g *seedmanagementv1alpha1.Gardenlet, add *collector) {
				if shoot, found := strings.CutPrefix(g.Name, wellknown.SelfHostedShootPrefix); found {
					add.to(Shoot, g.Namespace, shoot)
				}
			}},
	}),
	derive(managedSeeds, []string{"GE-24", "GE-25", "GE-27"}, []row[seedmanagementv1alpha1.ManagedSeed]{
		{Row{ID: "SHG-4", Joins: bootstrapToken, From: kinds(Secret), To: kinds(ManagedSeed), Class: graph.Manages,
			When: "the bootstrap token's Secret, with mode " + seedmanagementv1alpha1.BootstrapToken},
			func(m *seedmanagementv1alpha1.ManagedSeed, add *collector) {
				if m.Spec.Gardenlet != nil && deref(m.Spec.Gardenlet.Bootstrap) == seedmanagementv1alpha1.BootstrapToken {
					add.from(Secret, wellknown.KubeSystem, wellknown.BootstrapTokenSecret(m.Namespace, m.Name))
				}
			}},
	}),
	derive[gardencorev1beta1.Project](projects, []string{"GE-32"}, nil),
	derive(serviceAccounts, nil, []row[corev1.ServiceAccount]{
		{Row{ID: "SHG-5", Joins: ofShootExtension, From: kinds(ServiceAccount), To: kinds(Shoot), Class: graph.Manages,
			When: "ServiceAccounts named " + wellknown.ExtensionOfShootPrefix + "<shoot>--…"},
			func(s *corev1.ServiceAccount, add *collector) {
				if extension, ok := identity.ExtensionOfShoot(s.Namespace, s.Name); ok {
					add.to(Shoot, s.Namespace, extension.Name)
				}
			}},
	}),
	derive[gardencorev1beta1.Shoot](only(shoots, isSelfHosted), []string{"GE-42", "GE-43", "GE-44", "GE-45", "GE-48", "GE-49", "GE-50", "GE-51", "GE-52", "GE-57"}, nil),
}

// isSelfHosted reports whether a pool of the Shoot runs the Shoot's own control plane.
func isSelfHosted(s *gardencorev1beta1.Shoot) bool {
	return slices.ContainsFunc(s.Spec.Provider.Workers, func(w gardencorev1beta1.ShootWorker) bool { return w.ControlPlane != nil })
}

// only returns a watch for a graph that has only some of the objects.
func only[T any](w *Watch, selects func(*T) bool) *Watch {
	selecting, options := *w, w.options.(watchOptions[T])
	options.only = selects
	selecting.options = options
	return &selecting
}

// derive makes a watch of another graph out of some rows of a watch, and of more.
func derive[T any, P interface {
	*T
	runtime.Object
}](w *Watch, keep []string, more []row[T]) *Watch {
	options, rows := w.options.(watchOptions[T]), []row[T]{}
	for _, r := range w.typed.([]row[T]) {
		if slices.Contains(keep, r.ID) {
			rows = append(rows, r)
		}
	}
	return watch[T, P](options, append(rows, more...))
}
