// Package restriction decides about objects that clients of a seed create, and about the few changes that need an
// object's body: the SeedRestriction admission webhook. The SeedAuthorizer lets seeds create, as an object that does
// not exist yet has no place in the graph; here the new object must turn out to belong to the seed (section 7 of the
// authorization contract).
//
// ShootRestriction does the same for self-hosted shoots (shoots.go).
//
// One rule a resource (rules.go); the look-ups of rules are read from the garden at that moment, so that an object
// created a moment ago counts.
package restriction
