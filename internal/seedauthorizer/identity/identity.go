// Package identity determines the owner of a request or a certificate, by user name and groups (section 2 of the
// authorization contract). The authorizer, the admission webhook and the graph use the same rules.
package identity

import (
	"slices"
	"strings"

	"github.com/espalier-project/espalier/internal/externalapi/wellknown"
)

// Type is the type of a seed's client.
type Type string

// Types of clients.
const (
	Gardenlet Type = "gardenlet"
	Extension Type = "extension"
	Gardenadm Type = "gardenadm"
)

// SeedClient is a client that works for a seed.
type SeedClient struct {
	Seed string
	Type Type
}

// ShootClient is a client that works for a self-hosted shoot.
type ShootClient struct {
	Namespace, Name string
	Type            Type
	// Installation is the ControllerInstallation whose name an extension carries; others have none.
	Installation string
}

// OfShoot returns the client of a self-hosted shoot that has the name of a user (SHI-1, SHI-2). Whether the client
// counts depends on the garden's objects (SHI-3). OfShoot allocates nothing.
func OfShoot(user string, groups []string) (ShootClient, bool) {
	if slices.Contains(groups, wellknown.ShootsGroup) {
		clientType := Gardenlet
		rest, found := strings.CutPrefix(user, wellknown.ShootUserPrefix)
		if !found {
			clientType = Gardenadm
			rest, found = strings.CutPrefix(user, wellknown.GardenadmPrefix)
		}
		namespace, name, split := strings.Cut(rest, ":")
		return ShootClient{Namespace: namespace, Name: name, Type: clientType}, found && split && isObjectName(namespace) && isObjectName(name)
	}
	if !slices.Contains(groups, serviceAccountsGroup) {
		return ShootClient{}, false
	}
	rest, found := strings.CutPrefix(user, serviceAccountPrefix)
	namespace, account, split := strings.Cut(rest, ":")
	if !found || !split || !inNamespace(groups, namespace) {
		return ShootClient{}, false
	}
	return ExtensionOfShoot(namespace, account)
}

// ExtensionOfShoot returns the extension of a self-hosted shoot that has the name of a ServiceAccount in the
// namespace of a project: extension-shoot--<shoot>--<controllerInstallation>.
func ExtensionOfShoot(namespace, account string) (ShootClient, bool) {
	rest, found := strings.CutPrefix(account, wellknown.ExtensionOfShootPrefix)
	shoot, installation, split := strings.Cut(rest, "--")
	inProject := namespace == wellknown.Garden || strings.HasPrefix(namespace, wellknown.ProjectPrefix)
	return ShootClient{namespace, shoot, Extension, installation}, found && split && inProject && isObjectName(shoot)
}

const (
	serviceAccountsGroup  = "system:serviceaccounts"
	serviceAccountsPrefix = "system:serviceaccounts:"
	serviceAccountPrefix  = "system:serviceaccount:"
)

// OfSeed returns the client of a seed that a user is, if any (ID-1 … ID-6, B-4). It allocates nothing.
func OfSeed(user string, groups []string) (SeedClient, bool) {
	if slices.Contains(groups, wellknown.SeedsGroup) {
		seed, found := strings.CutPrefix(user, wellknown.SeedUserPrefix)
		return SeedClient{seed, Gardenlet}, found && isObjectName(seed)
	}
	if !slices.Contains(groups, serviceAccountsGroup) {
		return SeedClient{}, false
	}
	rest, found := strings.CutPrefix(user, serviceAccountPrefix)
	if !found {
		return SeedClient{}, false
	}
	namespace, name, found := strings.Cut(rest, ":")
	if !found || !strings.HasPrefix(name, wellknown.ExtensionPrefix) || !inNamespace(groups, namespace) {
		return SeedClient{}, false
	}
	seed, found := strings.CutPrefix(namespace, wellknown.SeedPrefix)
	return SeedClient{seed, Extension}, found && isObjectName(seed)
}

func inNamespace(groups []string, namespace string) bool {
	for _, group := range groups {
		if of, found := strings.CutPrefix(group, serviceAccountsPrefix); found && of == namespace {
			return true
		}
	}
	return false
}

// isObjectName reports whether a text can be the name of an object: a DNS subdomain.
func isObjectName(name string) bool {
	if name == "" || len(name) > 253 {
		return false
	}
	before := byte('.')
	for i := range len(name) {
		c := name[i]
		switch {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9':
		case c == '-' && before != '.':
		case c == '.' && before != '.' && before != '-':
		default:
			return false
		}
		before = c
	}
	return before != '.' && before != '-'
}
