package v1alpha1

// Profiles are defaults by name, as YAML below the configuration file. Both decide alike about node agents.
var Profiles = map[string]string{"contract": "", "gardener": ""}
