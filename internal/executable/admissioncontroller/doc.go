// Package admissioncontroller is the table of the features of admission-controller: one row a feature. The package also has the common parts of the
// rows: the graphs that authorizers and restrictions ask, and the caches of the garden that begin with the first request to a webhook.
package admissioncontroller
