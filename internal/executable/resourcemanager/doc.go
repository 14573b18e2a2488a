// Package resourcemanager is the table of the features of resource-manager: one row a feature. The common parts of the rows — how a webhook is
// served, how a leader begins, what is kept of which cluster — are beside it.
package resourcemanager
