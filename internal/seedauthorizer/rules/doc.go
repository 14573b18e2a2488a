// Package rules authorizes the clients in the garden that work for a part of it: the gardenlet and the extensions of a
// seed (the SeedAuthorizer), and those of a self-hosted shoot (the ShootAuthorizer).
//
// Each has a table of rules (seed_rules.go, shoot_rules.go), read by one function (decide.go) step by step, SA-1 to
// SA-14. Nothing is ever denied: a request that is not allowed is left to the authorizers after it, with a reason that
// names the rule and the missing path. Most decisions need nothing but the table and one check in the graph; only
// objects that the graph has not seen yet are asked for in the garden (live.go).
package rules
