package target

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/clock"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/healthcheck"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
)

const (
	// readTimeout limits one read for an assessment: one slow kind must not use up the time of the others (MRB-35).
	readTimeout = 10 * time.Second
	// namedProblems is the number of objects that a condition names: as many as a reader can act on.
	namedProblems = 10
	// confirmTime limits the reads of further missing objects once the first is confirmed: with the client's rate
	// limit, hundreds of reads would delay the condition.
	confirmTime = 500 * time.Millisecond
)

// Assessor assesses the health of the objects of a ManagedResource. It uses the tracker where a watch keeps it up to
// date, and otherwise reads the objects.
type Assessor struct {
	client  *Client
	tracker *objects.Tracker
	watches *Watches
	clock   clock.PassiveClock
	pods    *podCounter
}

// NewAssessor returns an Assessor that reads objects with client.
func NewAssessor(client *Client, l *objects.Tracker, watches *Watches, clock clock.PassiveClock) *Assessor {
	pods := &podCounter{client: client, tracker: l}
	return &Assessor{client: client, tracker: l, watches: watches, clock: clock, pods: pods}
}

// Assessment is the health status of a ManagedResource's objects.
type Assessment struct {
	// Health is the change of ResourcesHealthy, and Progressing the change of ResourcesProgressing; a change has no
	// type if the objects could not be assessed.
	Health, Progressing meta.ConditionChange
	// Problem is true if one of the conditions reports a problem.
	Problem bool
	// Covered is true if watches report every change, so that no object needs a periodic check.
	Covered bool
	// Unsettled is true if a missing object is about to be recreated, so that Health is about to change.
	Unsettled bool
	// UnlabelledLive counts the objects that a request found although lists or watches had reported them as gone, for
	// instance because another writer replaced them by objects without the label. No watch will report their end.
	UnlabelledLive int
	// PodsLeft counts the Deployments that have more Pods than desired although their status reports the end of the
	// roll-out. No watch reports the end of these Pods.
	PodsLeft int
}

// Changes returns the changes of the conditions that were assessed.
func (a *Assessment) Changes() (changes []meta.ConditionChange) {
	for _, change := range []meta.ConditionChange{a.Health, a.Progressing} {
		if change.Type != "" {
			changes = append(changes, change)
		}
	}
	return changes
}

type problem struct {
	reason, message string
	// service is the object if its Events must be reported, too.
	service *resourcesv1alpha1.ObjectReference
}

// KnownHealth returns the conditions if the tracker proves that all objects are healthy and rolled out; otherwise ok
// is false.
func (a *Assessor) KnownHealth(refs []resourcesv1alpha1.ObjectReference) (changes []meta.ConditionChange, ok bool) {
	for i := range refs {
		recorded, assessed := a.known(&refs[i])
		// An object that is unhealthy now may be healthy in a moment: the health controllers report lasting problems.
		if !recorded.Present || recorded.UnlabelledLive || !assessed || recorded.OutOfSync || !isComplete(recorded.Health) {
			return nil, false
		}
	}
	return []meta.ConditionChange{healthy(), rolledOut()}, true
}

func healthy() meta.ConditionChange {
	return meta.ConditionChange{Type: resourcesv1alpha1.ResourcesHealthy, Status: resourcesv1alpha1.ConditionTrue,
		Reason: resourcesv1alpha1.ReasonResourcesHealthy, Message: meta.MessageHealthy}
}

func rolledOut() meta.ConditionChange {
	return meta.ConditionChange{Type: resourcesv1alpha1.ResourcesProgressing, Status: resourcesv1alpha1.ConditionFalse,
		Reason: resourcesv1alpha1.ReasonResourcesRolledOut, Message: meta.MessageRolledOut}
}

// Assess determines whether all objects exist and are healthy (MRH-3 … MRH-10), and whether they are rolled out
// (MRP-2 … MRP-6). It finds all problems; the conditions name the first ones (MRB-29). With an error, it returns the
// conditions that it could assess.
func (a *Assessor) Assess(ctx context.Context, refs []resourcesv1alpha1.ObjectReference) (Assessment, error) {
	return a.assess(ctx, refs, false)
}

// Confirm is Assess, but also reads missing objects that are about to be recreated (MRB-38).
func (a *Assessor) Confirm(ctx context.Context, refs []resourcesv1alpha1.ObjectReference) (Assessment, error) {
	return a.assess(ctx, refs, true)
}

func (a *Assessor) assess(ctx context.Context, refs []resourcesv1alpha1.ObjectReference,
	confirms bool) (result Assessment, _ error) {
	pass := assessing{Assessor: a, timedOut: map[schema.GroupKind]error{}}
	var problems []problem
	var workloads []workload
	missed, began := 0, a.clock.Now()
	for i := range refs {
		ref := &refs[i]
		// One missing object makes the condition False, whatever the state of the others.
		pass.confirms = confirms && (missed == 0 || missed < namedProblems && a.clock.Since(began) < confirmTime)
		recorded, noMatch, err := pass.find(ctx, ref)
		if err != nil && ctx.Err() != nil {
			return Assessment{}, err
		}
		switch {
		case err != nil:
			problems = append(problems, problem{reason: resourcesv1alpha1.ReasonHealthCheckError,
				message: fmt.Sprintf("Error executing health check for %s %q: %v", ref.Kind, ref.Namespace+"/"+ref.Name, err)})
		case !recorded.Present:
			result.Unsettled = result.Unsettled || recorded.OutOfSync
			missed++
			problems = append(problems, missing(ref, noMatch))
		case recorded.Health.Unhealthy != "":
			problems = append(problems, unhealthy(ref, recorded.Health.Unhealthy))
		}
		if a.watches.view.Health.Progresses(ref.GroupVersionKind()) {
			workloads = append(workloads, workload{ref, recorded, err})
		}
	}
	a.addEvents(ctx, problems[:min(len(problems), namedProblems)])
	result.Health = conditionOf(healthy(), resourcesv1alpha1.ConditionFalse, problems)
	err := a.addRollouts(ctx, workloads, missed > 0, &result)
	result.Problem = result.Problem || len(problems) > 0
	result.Covered, result.UnlabelledLive = a.covered(refs), a.unwatched(refs)
	return result, err
}

// workload is an object that is rolled out; err is the error of reading it.
type workload struct {
	ref      *resourcesv1alpha1.ObjectReference
	recorded objects.Object
	err      error
}

// addRollouts adds the status of roll-outs to an assessment. If the result is urgent, a slow count of Pods is left to
// the next assessment (MRB-40).
func (a *Assessor) addRollouts(ctx context.Context, workloads []workload, urgent bool, result *Assessment) error {
	counting := ctx
	if urgent {
		var cancel context.CancelFunc
		counting, cancel = context.WithTimeout(ctx, confirmTime)
		defer cancel()
	}
	var problems []problem
	for _, w := range workloads {
		recorded, err := w.recorded, w.err
		if err == nil && recorded.Present && podsPending(recorded.Health) {
			if recorded, err = a.countPods(counting, w.ref); err != nil && counting.Err() != nil && ctx.Err() == nil {
				result.PodsLeft++
				return nil
			}
		}
		if err != nil {
			return fmt.Errorf("reading %s %q: %w", w.ref.Kind, w.ref.Namespace+"/"+w.ref.Name, err)
		}
		if !recorded.Present {
			continue // The health condition reports it (MRP-3).
		}
		waitsFor := recorded.Health.Progressing
		if waitsFor == "" && podsPending(recorded.Health) {
			waitsFor = healthcheck.OldPods
		}
		if pods := recorded.Health.Pods; pods == healthcheck.PodsLeft || pods == healthcheck.PodsUncounted {
			result.PodsLeft++
		}
		if waitsFor != "" {
			problems = append(problems, problem{reason: w.ref.Kind + "Progressing", message: fmt.Sprintf(
				"%s %q is progressing: %s", w.ref.Kind, w.ref.Namespace+"/"+w.ref.Name, waitsFor)})
		}
	}
	result.Progressing = conditionOf(rolledOut(), resourcesv1alpha1.ConditionTrue, problems)
	result.Problem = len(problems) > 0
	return nil
}

// conditionOf returns the condition with the problems and the status, or ok if there are no problems.
func conditionOf(ok meta.ConditionChange, status resourcesv1alpha1.ConditionStatus,
	problems []problem) meta.ConditionChange {
	if len(problems) == 0 {
		return ok
	}
	return meta.ConditionChange{Type: ok.Type, Status: status, Reason: problems[0].reason, Message: join(problems)}
}

func (a *Assessor) covered(refs []resourcesv1alpha1.ObjectReference) bool {
	return !slices.ContainsFunc(refs, func(ref resourcesv1alpha1.ObjectReference) bool {
		recorded, assessed := a.known(&ref)
		return recorded.MissingFromList || recorded.UnlabelledLive || recorded.Present && !assessed ||
			!a.watches.Covered(objects.RefOf(&ref)) || podsPending(recorded.Health)
	})
}

// unwatched counts the objects whose end no watch will report, although a watch covers their kind.
func (a *Assessor) unwatched(refs []resourcesv1alpha1.ObjectReference) (count int) {
	for i := range refs {
		if recorded, _ := a.known(&refs[i]); recorded.UnlabelledLive {
			count++
		}
	}
	return count
}

// known returns the record of an object; assessed is false if the record has no health for the version of the entry:
// another ManagedResource may have the object in another version, for which health is not checked or differs (MRH-8).
// A healthy object without the label that is created only once counts as watched, though only runs and audits read it
// (MR-30).
func (a *Assessor) known(ref *resourcesv1alpha1.ObjectReference) (recorded objects.Object, assessed bool) {
	entry := objects.RefOf(ref)
	recorded = a.tracker.Get(entry.ID, entry.Version)
	if meta.Truthy(ref.Annotations, resourcesv1alpha1.AnnotationIgnore) && isComplete(recorded.Health) {
		recorded.UnlabelledLive = false
	}
	return recorded, recorded.Assessed || !a.watches.view.Whole(entry.GVK())
}

// isComplete reports whether an object is healthy and rolled out.
func isComplete(status healthcheck.Status) bool {
	return status.Unhealthy == "" && status.Progressing == "" && !podsPending(status)
}

// podsPending reports whether a Deployment may still have old Pods.
func podsPending(status healthcheck.Status) bool {
	return status.CountsPods() && status.Pods != healthcheck.PodsExact
}

// countPods counts the Pods of a Deployment, and returns the updated record of the Deployment.
func (a *Assessor) countPods(ctx context.Context,
	deployment *resourcesv1alpha1.ObjectReference) (objects.Object, error) {
	if err := a.pods.count(ctx, deployment.Namespace); err != nil {
		return objects.Object{}, fmt.Errorf("counting its Pods: %w", err)
	}
	recorded, _ := a.known(deployment)
	return recorded, nil
}

// assessing is one pass over the objects of a ManagedResource.
type assessing struct {
	*Assessor
	// confirms is true if missing objects are read although they are about to be recreated.
	confirms bool
	// timedOut has the kinds for which a read took too long: their other objects are not read, so that there is time
	// for other kinds (MRB-35).
	timedOut map[schema.GroupKind]error
}

// find returns the record of an object. It reads the object first if the tracker has no record of it or no watch
// keeps the record up to date. An object that is recorded as missing is read again before that is reported (MRB-38).
// An object without the label, which lists and watches omit, is always read.
func (a assessing) find(ctx context.Context, ref *resourcesv1alpha1.ObjectReference) (objects.Object, error, error) {
	entry := objects.RefOf(ref)
	covered := a.watches.AwaitCovered(ctx, entry)
	recorded, assessed := a.known(ref)
	if covered && (recorded.Present && !recorded.UnlabelledLive && assessed || !recorded.Present && recorded.OutOfSync &&
		!recorded.MissingFromList && !a.confirms) {
		return recorded, nil, nil
	}
	if err := a.timedOut[entry.GroupKind()]; err != nil {
		return objects.Object{}, nil, fmt.Errorf(
			"the object was not read, because reading another object of its kind failed: %w", err)
	}
	return a.read(ctx, ref, entry.ID, recorded)
}

// read is find for an object that must be read; recorded is its record before the read.
func (a assessing) read(ctx context.Context, ref *resourcesv1alpha1.ObjectReference, key objects.ID,
	recorded objects.Object) (objects.Object, error, error) {
	reading, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	observation, err := a.watches.read(reading, ref.GroupVersionKind(), ref.Namespace, ref.Name, recorded)
	if reading.Err() != nil {
		a.timedOut[key.GroupKind()] = err
	}
	switch {
	case isNotFound(err) && Gone(err):
		return objects.Object{Known: true, OutOfSync: a.tracker.Get(key).OutOfSync}, nil, nil
	case Gone(err):
		return objects.Object{Known: true}, err, nil
	case err != nil:
		return objects.Object{}, nil, err
	}
	found := objects.Object{Known: true, Present: true, UID: observation.UID}
	if observation.Health != nil {
		found.Health = *observation.Health
	}
	return found, nil, nil
}

func missing(ref *resourcesv1alpha1.ObjectReference, noMatch error) problem {
	message := fmt.Sprintf("Required %s %q in namespace %q is missing", ref.Kind, ref.Name, ref.Namespace)
	if noMatch != nil {
		message += ": " + noMatch.Error()
	}
	return problem{reason: ref.Kind + "Missing", message: message}
}

func unhealthy(ref *resourcesv1alpha1.ObjectReference, why string) problem {
	p := problem{reason: ref.Kind + "Unhealthy",
		message: fmt.Sprintf("%s %q is unhealthy: %s", ref.Kind, ref.Namespace+"/"+ref.Name, why)}
	if ref.APIVersion == "v1" && ref.Kind == "Service" {
		p.service = ref
	}
	return p
}

// addEvents adds the Events of Services to their problems (MRX-13). All these requests together have the time limit
// of one read, because many clusters store Events in a separate etcd.
func (a *Assessor) addEvents(ctx context.Context, problems []problem) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	for i := range problems {
		if service := problems[i].service; service != nil && ctx.Err() == nil {
			problems[i].message += a.EventText(ctx, &service.ObjectReference)
		}
	}
}

// join returns the messages of the first problems, and the number of the others.
func join(problems []problem) string {
	message := problems[0].message
	for _, p := range problems[1:min(len(problems), namedProblems)] {
		message += "; " + p.message
	}
	if more := len(problems) - namedProblems; more > 0 {
		message += fmt.Sprintf("; and %d more", more)
	}
	return message
}

// EventText returns the text of the newest five Warning events about an object, oldest first (MRX-13); empty if there
// are none or they cannot be read.
func (a *Assessor) EventText(ctx context.Context, object *corev1.ObjectReference) string {
	const newest = 5
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	events, err := a.client.WarningEvents(ctx, object)
	if err != nil || len(events) == 0 {
		return ""
	}
	slices.SortStableFunc(events, func(x, y corev1.Event) int { return x.LastTimestamp.Compare(y.LastTimestamp.Time) })
	if len(events) > newest {
		events = events[len(events)-newest:]
	}
	var text strings.Builder
	text.WriteString("\n\n-> Events:")
	for i := range events {
		text.WriteString(a.eventLine(&events[i]))
	}
	return text.String()
}

func (a *Assessor) eventLine(event *corev1.Event) string {
	source := event.Source.Component
	if source == "" {
		source = event.ReportingController
	}
	first := event.FirstTimestamp.Time
	if first.IsZero() {
		first = event.EventTime.Time
	}
	age := a.age(first)
	if event.Count > 1 {
		return fmt.Sprintf("\n* %s reported %s ago (x%d over %s): %s", source, a.age(event.LastTimestamp.Time), event.Count,
			age, event.Message)
	}
	return fmt.Sprintf("\n* %s reported %s ago: %s", source, age, event.Message)
}

func (a *Assessor) age(t time.Time) string {
	if t.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(a.clock.Since(t))
}

var ages = regexp.MustCompile(` reported \S+ ago(?: \(x\d+ over \S+\))?: `)

// WithoutRepeats returns the change with the present message if only the ages of Events differ, so that the condition
// is not rewritten for them (MRB-18).
func WithoutRepeats(change meta.ConditionChange, conditions []resourcesv1alpha1.Condition) meta.ConditionChange {
	present := meta.Conditions(conditions).Get(change.Type)
	if present != nil && present.Message != change.Message &&
		ages.ReplaceAllString(present.Message, " ") == ages.ReplaceAllString(change.Message, " ") {
		change.Message = present.Message
	}
	return change
}
