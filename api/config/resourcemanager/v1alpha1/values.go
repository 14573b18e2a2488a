package v1alpha1

// AlwaysUpdateScope selects the objects that get an update although nothing differs.
type AlwaysUpdateScope string

const (
	// AlwaysUpdateAll updates all objects.
	AlwaysUpdateAll AlwaysUpdateScope = "All"
	// AlwaysUpdateUnwatched updates only the objects that no watch covers.
	AlwaysUpdateUnwatched AlwaysUpdateScope = "Unwatched"
)

// DescriptionFormat is the form of selectors in descriptions of NetworkPolicies.
type DescriptionFormat string

const (
	// DescriptionFormatLabels shows the labels, as map[k:v].
	DescriptionFormatLabels DescriptionFormat = "Labels"
	// DescriptionFormatSelector shows the whole selector, as {map[k:v] []}.
	DescriptionFormatSelector DescriptionFormat = "Selector"
)
