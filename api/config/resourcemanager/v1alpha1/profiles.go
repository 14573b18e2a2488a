package v1alpha1

// Profiles maps each profile name to its defaults, as YAML that the configuration file overrides. contract follows the
// contract; gardener is never laxer, heavier or slower than Gardener v1.150.0-dev (b312835d) (contract, decisions R1,
// R8, MRC-3c, T3-12, T4-5, T4-8 and T4-9 by profile).
var Profiles = map[string]string{
	"contract": "",
	"gardener": `
controllers:
  csrApprover:
    nodeAgentServiceAccount: false
  managedResource:
    alwaysUpdateScope: Unwatched
    massDeletion:
      wait: 0s
    readyCondition: false
  networkPolicy:
    onlyForExistingPods: true
    descriptionFormat: Selector
  tokenRequestor:
    class: shoot
`,
}
