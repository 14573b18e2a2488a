// Package endpoint reads the bodies of requests so that none of them holds up others, and gives errors the HTTP status they are answered with.
// The endpoints are in authorization (SubjectAccessReviews) and admission (AdmissionReviews). Limits hold for all endpoints that
// share a Bodies.
package endpoint
