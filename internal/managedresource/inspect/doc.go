// Package inspect combines facts about managed objects in a source and a target into reports for people: why an
// object has its state, the state of all objects of ManagedResources, and the writes of the next run.
//
// A report is a pure function of facts that were read before (Facts). The packages of the engine make the decisions:
// decode and plan about the desired state, merge about writes, schema about differences, healthcheck about health,
// ownership about objects that are left. A report therefore agrees with a run on the same facts.
//
// The package must not depend on how facts are read, what that costs, or how a report is printed. No report has
// values of Secrets.
package inspect
