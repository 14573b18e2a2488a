package kubectl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/rollout"
	"github.com/espalier-project/espalier/internal/plaintext"
	"github.com/espalier-project/espalier/internal/process"
)

// Words for the actions on a roll-out group.
const (
	showRollout   = "status"
	resumeRollout = "resume"
	abortRollout  = "abort"
)

var rolloutWords = []string{showRollout, resumeRollout, abortRollout}

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// rolloutFlags are the flags of rollout.
type rolloutFlags struct {
	connection
	output format
}

// rolloutVerb is the verb that shows, resumes or aborts a roll-out group.
func rolloutVerb() process.Subcommand {
	var flags rolloutFlags
	return process.Subcommand{
		Name: "rollout", Operand: "status|resume|abort GROUP", Fault: faultCode,
		Short: "Show, resume or abort a staged roll-out",
		Long: "GROUP is a ConfigMap in the namespace of controllers.managedResource.rolloutGroupNamespace. All is read and annotated in the source.\n" +
			"status shows the waves and the failed members, with reasons.\n" +
			"resume ignores the current failures, and ends an abort.\n" +
			"abort keeps the waiting content from being applied, until members have another content.",
		Codes: []process.Term{
			{Name: "0", Text: "the group is not halted, or annotated as requested"},
			{Name: "1", Text: "the group is halted"},
			{Name: "2", Text: "an error; nothing was written"},
		},
		Arguments: func(arguments []string) error {
			if len(arguments) != 2 || !slices.Contains(rolloutWords, arguments[0]) {
				return fmt.Errorf("want one of %s, and one GROUP", strings.Join(rolloutWords, ", "))
			}
			return nil
		},
		Complete: func(_ *pflag.FlagSet, arguments []string, begun string) []string {
			switch len(arguments) {
			case 0:
				return begin(rolloutWords, begun)
			case 1:
				return flags.completeGroup(begun)
			}
			return nil
		},
		CompleteFlags: flags.completeFlags(outputOnly),
		Flags: func(set *pflag.FlagSet) {
			flags.add(set)
			flags.output.add(set)
		},
		Run: interruptible(func(ctx context.Context, set *pflag.FlagSet, out io.Writer) error {
			return flags.run(ctx, set.Arg(0), set.Arg(1), out)
		}),
	}
}

// completeGroup offers the names of roll-out groups.
func (c *connection) completeGroup(begun string) []string {
	return c.complete(begun, func(ctx context.Context, found *clusters) []string {
		return found.source.names(ctx, configMaps, found.namespace, resourcesv1alpha1.LabelRolloutGroup)
	})
}

// groupReport is the output of status.
type groupReport struct {
	Group   string         `json:"group"`
	Halted  bool           `json:"halted"`
	Waves   []waveReport   `json:"waves"`
	Failed  []memberReport `json:"failed,omitempty"`
	Waiting []memberReport `json:"waiting,omitempty"`
}

// waveReport counts the members of a wave; the last wave has those that no other one takes.
type waveReport struct {
	Wave       int `json:"wave"`
	Members    int `json:"members"`
	Through    int `json:"through"`
	OnTheirWay int `json:"onTheirWay"`
	Failed     int `json:"failed"`
	Waiting    int `json:"waiting"`
	Unknown    int `json:"unknown"`
}

// memberReport is a member, and why it failed or waits.
type memberReport struct {
	ManagedResource string `json:"managedResource"`
	Wave            int    `json:"wave"`
	Revision        string `json:"revision"`
	Why             string `json:"why"`
}

// groupRead is a group as it was read.
type groupRead struct {
	object   *unstructured.Unstructured
	group    *rollout.Group
	members  []*rollout.Member
	reasons  []string
	roster   *rollout.Roster
	decision rollout.Decision
}

func (f *rolloutFlags) run(ctx context.Context, word, name string, out io.Writer) error {
	clusters, err := f.open(ctx)
	if err != nil {
		return err
	}
	read, err := readGroup(ctx, clusters, name, time.Now())
	if err != nil {
		return err
	}
	if word != showRollout {
		return f.annotateGroup(ctx, clusters.namespace, read, out, word)
	}
	report := read.report()
	switch {
	case f.output.structured():
		err = encode(out, f.output, report)
	case f.output == asName:
		_, err = fmt.Fprintf(out, "configmap/%s\n", name)
	default:
		err = printGroup(out, styleOf(out), report)
	}
	if err == nil && report.Halted {
		return somethingFound
	}
	return err
}

// readGroup reads a group and its members, and decides as resource-manager does. It assumes that content which resource-manager does not report as
// waiting is applied, or was let go last.
func readGroup(ctx context.Context, clusters *clusters, name string, now time.Time) (*groupRead, error) {
	object, err := clusters.source.get(ctx, configMaps, clusters.namespace, name)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("there is no ConfigMap %s/%s", clusters.namespace, name)
	}
	if err != nil {
		return nil, err
	}
	if _, labelled := object.GetLabels()[resourcesv1alpha1.LabelRolloutGroup]; !labelled {
		return nil, fmt.Errorf("ConfigMap %s/%s has no label %s, so that it is no roll-out group", clusters.namespace, name, resourcesv1alpha1.LabelRolloutGroup)
	}
	cm, err := typed[corev1.ConfigMap](object)
	if err != nil {
		return nil, err
	}
	read := &groupRead{object: object}
	if read.group, err = rollout.Parse(clusters.namespace+"/"+name, cm.Data, cm.Annotations); err != nil {
		return nil, err
	}
	objects, err := clusters.source.list(ctx, managedResources, "", metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	all, err := typedAll[resourcesv1alpha1.ManagedResource](objects)
	if err != nil {
		return nil, err
	}
	for _, mr := range all {
		if rollout.GroupOf(mr) == name && rollout.IsMember(mr) {
			read.add(mr)
		}
	}
	read.roster = read.group.Assign(read.members)
	read.decision = read.group.Decide(read.members, read.roster, now)
	return read, nil
}

func (r *groupRead) add(mr *resourcesv1alpha1.ManagedResource) {
	m, why := rollout.MemberOf(mr), ""
	for _, condition := range mr.Status.Conditions {
		if condition.Type == resourcesv1alpha1.RolloutHeld {
			why = condition.Message
		}
	}
	m.Judge(mr.Status.Conditions, r.group.Progressing)
	r.members, r.reasons = append(r.members, &m), append(r.reasons, why)
}

func (r *groupRead) report() *groupReport {
	report := &groupReport{Group: r.group.Name, Halted: r.decision.Halted}
	for k := range r.roster.Len() {
		p := r.decision.Progress[k]
		report.Waves = append(report.Waves, waveReport{k + 1, p.Members, p.Through, p.OnTheirWay, p.Failed, p.Waiting, p.Unknown})
	}
	failed := map[types.NamespacedName]rollout.Bad{}
	for _, bad := range r.decision.Failed {
		failed[bad.NamespacedName] = bad
	}
	for i, m := range r.members {
		line := memberReport{m.String(), r.roster.Wave(i), string(m.Wanted), r.reasons[i]}
		if bad, found := failed[m.NamespacedName]; found {
			line.Revision, line.Why = string(bad.Wanted), bad.Why
			report.Failed = append(report.Failed, line)
		} else if r.decision.IsHeld(i) {
			report.Waiting = append(report.Waiting, line)
		}
	}
	return report
}

// printGroup prints a group for people. The members that wait are counted only: they all wait for the same.
func printGroup(out io.Writer, style style, report *groupReport) error {
	state := style.in(green, "goes on")
	if report.Halted {
		state = style.in(red, "is halted")
	}
	lines := []string{
		fmt.Sprintf("Roll-out group %s %s", report.Group, state),
		fmt.Sprintf("%-6s %8s %8s %11s %8s %8s %8s", "WAVE", "MEMBERS", "THROUGH", "ON THE WAY", "FAILED", "WAITING", "UNKNOWN"),
	}
	for _, w := range report.Waves {
		lines = append(lines, fmt.Sprintf("%-6d %8d %8d %11d %8d %8d %8d", w.Wave, w.Members, w.Through, w.OnTheirWay, w.Failed, w.Waiting, w.Unknown))
	}
	for _, m := range report.Failed {
		lines = append(lines, fmt.Sprintf("%s of wave %d failed with revision %s: %s", m.ManagedResource, m.Wave, m.Revision, plaintext.Line(m.Why)))
	}
	_, err := fmt.Fprintln(out, strings.Join(lines, "\n"))
	return err
}

// annotateGroup has a group go on, or not.
func (f *rolloutFlags) annotateGroup(ctx context.Context, namespace string, read *groupRead, out io.Writer, word string) error {
	annotations, done, err := read.annotations(word)
	if err != nil {
		return err
	}
	k := &kind{GroupVersionKind: corev1.SchemeGroupVersion.WithKind("ConfigMap"), resource: configMaps.Resource, namespaced: true}
	p, err := f.source.place(k, namespace, read.object.GetName())
	if err != nil {
		return err
	}
	if err := p.annotate(ctx, read.object, annotations); err != nil {
		return err
	}
	if f.output.structured() {
		return encode(out, f.output, read.report())
	}
	_, err = fmt.Fprintf(out, "Roll-out group %s %s\n", read.group.Name, done)
	return err
}

// annotations returns the annotations that resume or abort writes, and their effect in words.
func (r *groupRead) annotations(word string) (annotations map[string]any, done string, err error) {
	if word == abortRollout {
		tokens := r.group.Abort(r.members, r.decision)
		text, err := rollout.Tokens(tokens)
		if len(tokens) == 0 {
			err = errors.New("nothing waits in the group, so that there is nothing to abort")
		}
		return map[string]any{resourcesv1alpha1.AnnotationRolloutAborted: text}, fmt.Sprintf("does not apply what %d members wait for", len(tokens)), err
	}
	tokens := r.group.Resume(r.decision)
	text, err := rollout.Tokens(tokens)
	annotations = map[string]any{resourcesv1alpha1.AnnotationRolloutResumed: text, resourcesv1alpha1.AnnotationRolloutAborted: nil}
	return annotations, fmt.Sprintf("goes on in spite of %d members that failed", len(tokens)), err
}
