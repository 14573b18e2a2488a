// Package boundedyaml decodes YAML and JSON from untrusted sources: users, tenants and extensions.
//
// The cost of a document is known before it is parsed: nodes are counted on the text, and the expansion of aliases on
// the tree, where an alias is still one node. So a document that is refused costs little, however large it would
// become, and the decoded value is bounded. YAML becomes JSON only here, so that the decoders of all kinds read only
// JSON; a test keeps other packages from decoding YAML of other origin than the process.
//
// No error about a limit has content of the document, which may be a Secret. The package has no code for single
// kinds.
package boundedyaml
