// Package admission is the endpoint for AdmissionReviews: it reads and decodes a review once, calls a function, and writes the answer.
//
// A webhook is a typed function: Mutate takes one that changes an object, Validate one that judges an object, Decide
// one that judges the request. Their results are mapped to codes in one place (refusal.go). A changed object becomes a
// JSON patch on the bytes that were sent: fields that this version does not know, and numbers of any size, stay as
// they are; the patch has only the changes of the function (patch.go).
//
// The endpoint bounds bodies, time and the number of requests at once, turns a panic into an answer, and counts by webhook. It knows no rule
// and no cluster. Package admissiontest has the properties that every webhook keeps.
package admission
