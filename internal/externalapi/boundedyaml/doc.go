// Package boundedyaml decodes YAML and JSON that others write: users, tenants and extensions.
//
// Its one idea: the cost of a document is known before it is parsed. Nodes are counted on the text, and the expansion
// of aliases on the tree, where an alias is still one node. So a document that is refused costs little, however large
// it would become, and the decoded value is bounded. YAML becomes JSON here and nowhere else, so that the decoders of
// all kinds read JSON alone; a test keeps other packages from decoding YAML that is not the process's own.
//
// No error about a limit repeats anything of a document, which may be a Secret. The package knows no kinds.
package boundedyaml
