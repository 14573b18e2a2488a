// Package inspect joins the facts of a source and a target about managed objects into reports for people: why an
// object is as it is, the state of all objects of ManagedResources, and the writes of the next run.
//
// Its one idea: a report is a pure function of facts that were read before (Facts). The engine's own packages decide:
// decode and plan about the wanted state, merge about writes, schema about differences, healthcheck about health,
// ownership about objects that are left. So a report agrees with a run on the same facts.
//
// It must not know how the facts are read, nor what that costs, nor how a report is printed. Values of Secrets are in
// no report.
package inspect
