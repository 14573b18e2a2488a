package v1alpha1

// AlwaysUpdateScope selects the objects that get an update although nothing differs.
type AlwaysUpdateScope string

const (
	// AlwaysUpdateAll has all objects written.
	AlwaysUpdateAll AlwaysUpdateScope = "All"
	// AlwaysUpdateUnwatched has those written that no watch covers.
	AlwaysUpdateUnwatched AlwaysUpdateScope = "Unwatched"
)

// DescriptionFormat says how descriptions of NetworkPolicies show selectors.
type DescriptionFormat string

const (
	// DescriptionFormatLabels shows the labels, as map[k:v].
	DescriptionFormatLabels DescriptionFormat = "Labels"
	// DescriptionFormatSelector shows the whole selector, as {map[k:v] []}.
	DescriptionFormatSelector DescriptionFormat = "Selector"
)
