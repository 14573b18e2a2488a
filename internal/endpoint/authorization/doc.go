// Package authorization is the endpoint for SubjectAccessReviews, for any authorizer: it reads and decodes a review,
// calls the authorizer, and writes the response in the form that kube-apiserver expects. It bounds the cost of a
// body, the concurrent decisions and their time, and converts a panic into an evaluation error. It has no rules and
// no cluster.
package authorization
