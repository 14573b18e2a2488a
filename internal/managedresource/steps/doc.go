// Package steps has what the steps of a run share: Freshness proves that the run is still current, Source reads and
// writes its ManagedResource, Owners and Claims find out which ManagedResource has an object, Locations reads an
// object at its present location, Limits and Breaker bound the requests, and WriteLog collects what was written.
//
// The package does not decide what a step does with an object: packages apply and prune do.
package steps
