// Package seed decides what the gardenlet and the extensions of a seed may do in the garden: the SeedAuthorizer.
//
// The rules are one table (rules.go), read by one function (decide.go) step by step, SA-1 to SA-14. It never denies: whatever it does
// not allow is left to the authorizers after it, with a reason that names the rule and what is missing. Most decisions need nothing
// but the table and one check in the graph; only objects that the graph has not seen yet are asked for in the garden (live.go).
package seed
