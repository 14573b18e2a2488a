// Package resourcemanager has the table of resource-manager's features: one row for each feature. It also has the
// common parts of the rows: how a webhook is served, how a leader starts, and which objects of a cluster are cached.
package resourcemanager
