package v1alpha1

// Profiles maps each profile name to its defaults, as YAML that the configuration file overrides. Both decide alike
// about node agents.
var Profiles = map[string]string{"contract": "", "gardener": ""}
