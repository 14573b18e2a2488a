package v1alpha1

// Profiles maps each profile name to its defaults, as YAML that the configuration file overrides. contract follows the
// contract; gardener is never laxer, heavier or slower than Gardener v1.150.0-dev (b312835d) (contract, decision R2 by
// profile).
var Profiles = map[string]string{
	"contract": "",
	"gardener": `
server:
  seedAuthorizer:
    readScope: Related
`,
}
