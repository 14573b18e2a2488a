// Package rules decides about the requests of a node's agent in its shoot cluster: the node-agent authorizer.
//
// An agent is identified by the Machine that it runs on, or by its Node if there are no Machines. The rules are one
// table (rules.go): verbs and subresources as data, and for each resource a function that checks the object. Every
// request of an agent is allowed or denied, never left to other authorizers. An object that cannot be read is an
// error, which denies, too (B-1).
package rules
