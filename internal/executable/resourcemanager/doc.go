// Package resourcemanager is the table of what resource-manager does: one row a feature. What the rows have in common — how a webhook is
// served, how a leader begins, what is kept of which cluster — is beside it.
package resourcemanager
