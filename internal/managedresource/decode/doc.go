// Package decode turns the data of Secrets into objects: Brotli, YAML and JSON, many documents in a value.
//
// Its one idea: bytes from outside end in objects or in errors that name the place, within limits, whatever they are.
// An error that belongs to one document leaves its neighbours alone; an error that belongs to the whole stream ends
// that stream and leaves the other keys alone. No error repeats content of a Secret.
//
// It knows nothing of clusters: no kinds, no scopes, no client.
package decode
