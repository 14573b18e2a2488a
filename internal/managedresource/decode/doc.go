// Package decode turns the data of Secrets into objects: Brotli, YAML and JSON, many documents in a value.
//
// Any input, within limits, results in objects or in errors with a place. An error of one document does not affect
// other documents; an error of a stream ends this stream, but does not affect other keys. No error repeats content of
// a Secret.
//
// The package does not depend on clusters: it has no kinds, no scopes and no client.
package decode
