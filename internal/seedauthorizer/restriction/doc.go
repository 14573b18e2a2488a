// Package restriction decides about objects that clients of a seed create, and about the few changes that need an
// object's body: the SeedRestriction admission webhook. The SeedAuthorizer lets seeds create objects, because a new
// object has no place in the graph yet; this webhook requires that the new object belongs to the seed (section 7 of
// the authorization contract).
//
// ShootRestriction does the same for self-hosted shoots (shoots.go).
//
// There is one rule for each resource (rules.go). The lookups of rules read from the garden at that moment, so that
// an object created a moment ago counts.
package restriction
