// Package admission is the endpoint for AdmissionReviews: it reads and decodes a review once, calls a function, and
// writes the response.
//
// A webhook is a typed function: Mutate is for functions that change an object, Validate for functions that validate
// an object, and Decide for functions that check the request. Their results become codes in one place (refusal.go). A
// changed object becomes a JSON patch of the bytes that were sent: fields unknown to this version, and numbers of any
// size, stay as they are; the patch has only the changes of the function (patch.go).
//
// The endpoint bounds bodies, time and concurrent requests, recovers panics, and counts by webhook. It has no rules
// and no cluster. Package admissiontest has the properties of every webhook.
package admission
