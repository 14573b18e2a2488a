package rules

import (
	"strings"

	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
)

// excuse is why a cluster may reach something over an edge that one of its own identities writes.
type excuse struct {
	// of are the kinds of objects, by is the prefix of the users and part the write that it holds for; empty is all.
	of   []graph.Kind
	by   string
	part string
	// trusted says that references Checked closes it.
	trusted bool
	// proof is where the garden's API (the reference at b312835d) keeps it within bounds: file and function.
	proof string
	// reason says why it is no gain of a foreign object, or whose decision it is.
	reason string
}

func (e excuse) excuses(who propertyClient, part string, watch *relation.Watch, checked bool) bool {
	for _, kind := range e.of {
		if kind == watch.Kind {
			return strings.HasPrefix(who.user.Name, e.by) && (e.part == "" || e.part == part) && (!checked || !e.trusted)
		}
	}
	return false
}

const (
	registers = "a gardenlet registers itself and names there what nothing else names; references Trusted (the default) is the operator's decision"
	byName    = "the object's name follows from names and UIDs that nobody changes"
	operator  = "gardenadm sets a shoot up with a token that an operator issued for it, and creates what the Shoot names; in the shoot's namespace the garden's API cannot tell what is its own"

	// immutableNames keeps names, namespaces and UIDs of the garden's objects.
	immutableNames = "k8s.io/apimachinery/pkg/api/validation/objectmeta.go: ValidateObjectMetaAccessorUpdate"
	// readable wants the writer to be allowed to get what spec.resources names.
	readable = "plugin/pkg/global/resourcereferencemanager/admission.go: ensureResourceReferences"
	// readableCredentials wants the same of credentials, but for those in the namespace of gardenadm's shoot.
	readableCredentials = "plugin/pkg/global/resourcereferencemanager/admission.go: ensureBindingReferences"
	// oneProject keeps a namespace in one Project.
	oneProject = "plugin/pkg/global/resourcereferencemanager/admission.go: ensureProjectNamespace"
	// selfHosted keeps self-hosted Shoots in namespace garden, which no user but operators has.
	selfHosted = "pkg/api/core/validation/shoot.go: ValidateShootSpec"
)

var (
	seedKind      = []graph.Kind{relation.Seed}
	gardenletKind = []graph.Kind{relation.Gardenlet}
	shootKind     = []graph.Kind{relation.Shoot}
	bootstraps    = []graph.Kind{relation.ManagedSeed, relation.Seed}
)

// ownHand are the edges by which a cluster's identities give themselves rights, reviewed one by one; nothing else may. Each has the
// validation of the garden's API that bounds it, or is closed by references Checked.
var ownHand = map[string]excuse{
	"GE-3":   {of: []graph.Kind{relation.BackupBucket}, proof: immutableNames, reason: byName},
	"GE-18":  {of: []graph.Kind{relation.CredentialsBinding}, by: gardenadmPrefix, part: created, proof: readableCredentials, reason: operator},
	"GE-19":  {of: []graph.Kind{relation.SecretBinding}, by: gardenadmPrefix, part: created, proof: readableCredentials, reason: operator},
	"GE-21":  {of: gardenletKind, part: created, trusted: true, reason: registers},
	"GE-22":  {of: []graph.Kind{relation.Gardenlet, relation.Seed}, proof: immutableNames, reason: byName},
	"GE-23":  {of: gardenletKind, part: created, trusted: true, reason: registers},
	"GE-29":  {of: bootstraps, proof: immutableNames, reason: byName},
	"GE-30":  {of: bootstraps, proof: immutableNames, reason: byName},
	"GE-31":  {of: bootstraps, proof: immutableNames, reason: byName},
	"GE-37":  {of: seedKind, trusted: true, reason: registers},
	"GE-38":  {of: seedKind, trusted: true, reason: registers},
	"GE-39":  {of: seedKind, trusted: true, reason: registers},
	"GE-40":  {of: seedKind, trusted: true, reason: registers},
	"GE-41":  {of: seedKind, trusted: true, proof: readable, reason: registers},
	"GE-41a": {of: seedKind, trusted: true, reason: registers},
	"GE-42":  {of: shootKind, by: gardenadmPrefix, part: created, proof: oneProject, reason: "the project of the shoot's own namespace"},
	"GE-43":  {of: shootKind, by: gardenadmPrefix, part: created, proof: selfHosted, reason: operator},
	"GE-44":  {of: shootKind, by: gardenadmPrefix, part: created, proof: selfHosted, reason: operator},
	"GE-45":  {of: shootKind, by: gardenadmPrefix, part: created, proof: readable, reason: operator},
	"GE-48":  {of: shootKind, by: gardenadmPrefix, part: created, proof: selfHosted, reason: operator},
	"GE-49":  {of: shootKind, by: gardenadmPrefix, part: created, proof: selfHosted, reason: operator},
	"GE-50":  {of: shootKind, by: gardenadmPrefix, part: created, proof: selfHosted, reason: operator},
	"GE-51":  {of: shootKind, by: gardenadmPrefix, part: created, proof: selfHosted, reason: operator},
	"GE-52":  {of: shootKind, by: gardenadmPrefix, part: created, proof: selfHosted, reason: operator},
	"GE-57":  {of: shootKind, proof: immutableNames, reason: byName},
	"SHG-7":  {of: []graph.Kind{relation.BackupBucket}, proof: immutableNames, reason: byName},
	"SHG-4":  {of: []graph.Kind{relation.ManagedSeed}, proof: immutableNames, reason: byName},
}
