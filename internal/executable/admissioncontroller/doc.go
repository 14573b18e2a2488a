// Package admissioncontroller is the table of the features of admission-controller: one row a feature. The common parts of the rows — the graphs
// that authorizers and restrictions ask, what the webhooks keep of the garden once somebody asks them — are beside it.
package admissioncontroller
