// Package admissioncontroller is the table of what admission-controller does: one row a feature. What the rows have in common — the graphs
// that authorizers and restrictions ask, what the webhooks keep of the garden once somebody asks them — is beside it.
package admissioncontroller
