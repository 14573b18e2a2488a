// Package inspect joins what a source and a target say about managed objects into reports for people: why an object is
// as it is, how all objects of ManagedResources are, and what the next run would write.
//
// Its one idea: a report is a pure function of facts that were read before (Facts). The engine's own packages decide:
// decode and plan say what is wanted, merge what would be written, schema what counts as a difference, healthcheck what
// is healthy, ownership what becomes of an object that is left. So a report cannot say anything else than a run would
// do with the same facts.
//
// It must not know how the facts are read, nor what that costs, nor how a report is printed. Values of Secrets are in
// no report.
package inspect
