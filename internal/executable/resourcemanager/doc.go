// Package resourcemanager is the table of the features of resource-manager: one row a feature. The package also has the common parts of the rows: how a
// webhook is served, how a leader begins, and which objects of which cluster are cached.
package resourcemanager
