// Package authorization is the endpoint for SubjectAccessReviews, for any authorizer: it reads and decodes a review, asks, and writes the answer
// in the form that kube-apiserver expects. It bounds what a body may cost and how many decisions are made at a time, gives each a deadline,
// and turns a panic into an evaluation error. It knows no rule and no cluster.
package authorization
