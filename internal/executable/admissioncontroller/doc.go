// Package admissioncontroller has the table of admission-controller's features: one row for each feature. It also has
// the common parts of the rows: the graphs for authorizers and restrictions, and the index in which webhooks find the
// users of an object.
package admissioncontroller
