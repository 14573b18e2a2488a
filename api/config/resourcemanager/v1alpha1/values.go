package v1alpha1

// AlwaysUpdateScope selects the objects that get an update although nothing differs.
type AlwaysUpdateScope string

const (
	// AlwaysUpdateAll has all objects written.
	AlwaysUpdateAll AlwaysUpdateScope = "All"
	// AlwaysUpdateUnwatched has those written that no watch covers.
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
