package relation

import "github.com/espalier-project/espalier/internal/graph"

// writers are the usual writers of the objects of a kind, for a reader who looks for the component that has to make a
// missing link.
var writers = map[graph.Kind]string{
	BackupBucket:              "the gardenlet of the seed, or of the self-hosted shoot",
	BackupEntry:               "the gardenlet of the shoot's seed",
	Bastion:                   "members of the project; gardener-apiserver sets the seed of the Shoot",
	CertificateSigningRequest: "the gardenlet that wants the certificate, with a new request: its spec does not change",
	ControllerDeployment:      "operators of the garden",
	ControllerInstallation:    "gardener-controller-manager, for a seed or a shoot that needs the extension",
	CredentialsBinding:        "members of the project, with a new binding: its reference does not change",
	Gardenlet:                 "operators of the garden",
	ManagedSeed:               "operators of the garden",
	Namespace:                 "gardener-controller-manager, for the Project",
	Project:                   "gardener-controller-manager, when it creates the project's namespace",
	SecretBinding:             "members of the project, with a new binding: its reference does not change",
	Seed:                      "operators of the garden, or the seed's own gardenlet from its configuration",
	ServiceAccount:            "the gardenlet that deploys another one",
	Shoot:                     "members of the project",
}

// writersOfRows are the writers of rows whose field has other writers than the object.
var writersOfRows = map[string]string{
	"GE-3":  "the gardenlet, when an extension has generated the Secret",
	"GE-7":  "the gardenlet that has the BackupEntry, at the end of a migration",
	"GE-22": "operators of the garden, with the annotation that renews the kubeconfig; or the Seed's certificate expires",
	"GE-29": "operators of the garden, with the annotation that renews the kubeconfig; or the Seed's certificate expires",
	"GE-30": "operators of the garden, with the annotation that renews the kubeconfig; or the Seed's certificate expires",
	"GE-31": "operators of the garden, with the annotation that renews the kubeconfig; or the Seed's certificate expires",
	"GE-46": "gardener-scheduler for a new Shoot, operators over the subresource binding for others",
	"GE-47": "the gardenlet that has the Shoot, which sets it when a migration begins and ends",
	"GE-57": "members of the project, with the annotation; gardener-controller-manager labels the namespace",
	"SHG-7": "the gardenlet, when an extension has generated the Secret",
}

// Writer returns the component that could make the link.
func (l Link) Writer() string {
	if of, found := writersOfRows[l.Row.ID]; found {
		return of
	}
	return writers[l.Watch.Kind]
}
