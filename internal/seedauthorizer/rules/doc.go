// Package rules authorizes the clients in the garden that work for a part of it: the gardenlet and the extensions of a
// seed (the SeedAuthorizer), and those of a self-hosted shoot (the ShootAuthorizer).
//
// Each has a table of rules (seed_rules.go, shoot_rules.go), which one function (decide.go) applies step by step,
// SA-1 to SA-14. No request is denied: a request that is not allowed is left to the authorizers after it, with a
// reason that names the rule and the missing path. Most decisions need only the table and one check in the graph;
// only objects that the graph does not have yet are read from the garden (live.go).
package rules
