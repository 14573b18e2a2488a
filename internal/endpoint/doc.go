// Package endpoint reads the bodies of requests so that none of them blocks others, and assigns HTTP statuses to
// errors. The endpoints are in authorization (SubjectAccessReviews) and admission (AdmissionReviews). Limits apply to
// all endpoints that share a Bodies.
package endpoint
