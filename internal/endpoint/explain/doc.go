// Package explain is a decision of an authorizer with its derivation: as a question and an answer, as text for people,
// and as an endpoint and its client. Every authorizer fills the same answer, so that every executable prints and
// serves it alike.
//
// An answer has names of objects, never their content.
package explain
