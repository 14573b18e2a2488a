// Package answers bounds the memory that answers of foreign API servers take, before anything is decoded.
//
// Its one idea: the decoded size of an answer is computed on its text. A Transport reads an answer whole, or a watch event by event, adds up what the
// decoder would allocate for it, by the Go types of its kind or as maps, and fails the answer if that exceeds five times its size and 8 MiB. With the
// text and its copy, no answer of n bytes takes more than 8 n + 8 MiB. The size is charged to the Share of the API server, which also bounds all of its
// answers together.
//
// The package knows the types of a scheme, the two encodings, and no kinds.
package answers
