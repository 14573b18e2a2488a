// Package admissioncontroller is the table of the features of admission-controller: one row a feature. The package also has the common parts of the
// rows: the graphs that authorizers and restrictions ask, and the index in which webhooks find
// the users of an object.
package admissioncontroller
