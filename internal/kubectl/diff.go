package kubectl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/aymanbagabas/go-udiff"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/hold"
	"github.com/espalier-project/espalier/internal/managedresource/inspect"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/plaintext"
	"github.com/espalier-project/espalier/internal/process"
)

// diff is the verb that shows the changes of a ManagedResource's next run.
func diff() process.Subcommand {
	var to connection
	var output format
	var files diffFiles
	return process.Subcommand{
		Name: "diff", Operand: "[MANAGEDRESOURCE]", Fault: faultCode,
		Short: "Print what the next run of a ManagedResource would create, change and delete",
		Long: "The ManagedResource is read from the source, or with --filename from a file, whose Secrets come before those of the source.\n" +
			"A file without a ManagedResource has manifests: each replaces that of the object's owner, and nothing is deleted.\n\n" +
			clustersLong + "\n\n" +
			"Plan, merge and comparison are those of resource-manager; webhooks and validation have no effect.\n" +
			"Values of Secrets are masked. It sends one request per object, and a few more.",
		Codes: []process.Term{
			{Name: "0", Text: "the next run changes nothing"},
			{Name: "1", Text: "the next run changes something"},
			{Name: "2", Text: "an error, or a part is unknown"},
		},
		Arguments: func(arguments []string) error {
			given := slices.DeleteFunc([]bool{len(arguments) > 0, files.manifests != "", files.selector != ""}, func(is bool) bool { return !is })
			if len(given) != 1 {
				return errors.New("want either a MANAGEDRESOURCE, --selector or --filename")
			}
			_, err := managedResourceName(arguments)
			return err
		},
		Complete:      to.completeManagedResource,
		CompleteFlags: to.completeFlags(outputOnly),
		Flags: func(set *pflag.FlagSet) {
			to.add(set)
			output.add(set)
			set.StringVarP(&files.selector, "selector", "l", "", "label `selector` of ManagedResources of the namespace")
			set.StringVarP(&files.manifests, "filename", "f", "", "`file` with a ManagedResource and its Secrets, or with manifests; - for standard input")
			set.StringArrayVar(&files.secrets, "secret", nil, "`file` with a Secret that replaces the one of its name; may be repeated")
		},
		Run: interruptible(func(ctx context.Context, set *pflag.FlagSet, out io.Writer) error {
			name, err := managedResourceName(set.Args())
			if err != nil {
				return err
			}
			found, err := answerDiff(ctx, &to, name, files)
			if err != nil {
				return err
			}
			if err := printDiff(out, process.Stderr(), styleOf(out), output, found); err != nil {
				return err
			}
			return found.exitCode()
		}),
	}
}

// diffFiles are the files that diff reads, or the selector in place of a name.
type diffFiles struct {
	manifests string
	secrets   []string
	selector  string
}

// differing is the result of diff.
type differing struct {
	// Changes are the changes of all selected ManagedResources.
	Changes []inspect.Change `json:"changes"`
	// Notes apply to a ManagedResource as a whole; Faults name unknown facts.
	Notes  []string `json:"notes,omitempty"`
	Faults []string `json:"faults,omitempty"`
}

// exitCode returns the exit code as an error.
func (d *differing) exitCode() error {
	if len(d.Faults) > 0 {
		return fmt.Errorf("the answer is not complete: %s", strings.Join(d.Faults, "; "))
	}
	for i := range d.Changes {
		if d.Changes[i].Writes() {
			return somethingFound
		}
	}
	return nil
}

func answerDiff(ctx context.Context, to *connection, name string, files diffFiles) (*differing, error) {
	given, err := readFiles(files)
	if err != nil {
		return nil, err
	}
	clusters, err := to.open(ctx)
	if err != nil {
		return nil, err
	}
	r := &runReader{clusters: clusters, given: given}
	if files.selector != "" {
		return r.selected(ctx, files.selector)
	}
	if name == "" && given.managedResource == nil {
		return r.manifests(ctx)
	}
	mr := given.managedResource
	if mr == nil {
		if mr, err = r.readOwner(ctx, clusters.namespace, name); err != nil {
			return nil, err
		}
		if mr == nil {
			return nil, fmt.Errorf("ManagedResource %s/%s does not exist", clusters.namespace, name)
		}
	} else if err := r.asInCluster(ctx, mr); err != nil {
		return nil, err
	}
	found := &differing{}
	return found, r.managedResource(ctx, mr, found)
}

// selected adds what the next run of each selected ManagedResource of the namespace would do.
func (r *runReader) selected(ctx context.Context, selector string) (*differing, error) {
	objects, err := r.source.list(ctx, managedResources, r.namespace, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, fmt.Errorf("listing ManagedResources: %w", err)
	}
	all, err := typedAll[resourcesv1alpha1.ManagedResource](objects)
	if err != nil {
		return nil, err
	}
	found := &differing{}
	for _, mr := range all {
		if err := r.managedResource(ctx, mr, found); err != nil {
			found.Faults = append(found.Faults, fmt.Sprintf("ManagedResource %s/%s: %v", mr.Namespace, mr.Name, err))
		}
	}
	return found, ctx.Err()
}

// asInCluster gives a ManagedResource of a file the namespace, inventory and state of the same one in the source.
func (r *runReader) asInCluster(ctx context.Context, mr *resourcesv1alpha1.ManagedResource) error {
	if mr.Namespace == "" {
		mr.Namespace = r.namespace
	}
	current, err := r.readOwner(ctx, mr.Namespace, mr.Name)
	if err != nil || current == nil {
		return err
	}
	mr.Status, mr.UID, mr.DeletionTimestamp = current.Status, current.UID, current.DeletionTimestamp
	return nil
}

// note returns a text that applies to a ManagedResource as a whole.
func note(mr *resourcesv1alpha1.ManagedResource) string {
	name := "ManagedResource " + mr.Namespace + "/" + mr.Name
	switch {
	case meta.Ignored(mr):
		return name + " is ignored: the next run changes nothing"
	case mr.DeletionTimestamp != nil:
		return name + " is being deleted"
	}
	if held := hold.Of(mr.Annotations, time.Now()); held.State == hold.InForce {
		return name + " is left alone " + held.String()
	}
	return waits(name, mr.Status.Conditions)
}

// waits returns a text about a condition for which the next run does not make the changes.
func waits(name string, conditions meta.Conditions) string {
	const unmade = ": the next run does not make these changes"
	applied := conditions.Get(resourcesv1alpha1.ResourcesApplied)
	switch {
	case applied == nil || applied.Status == resourcesv1alpha1.ConditionTrue:
	case applied.Reason == resourcesv1alpha1.ReasonDeletionHeld:
		return name + " has a deletion that waits for its confirmation" + unmade
	}
	return ""
}

// printDiff prints changes as kubectl diff does, and notes and faults on stderr.
func printDiff(out, notes io.Writer, s style, f format, found *differing) error {
	if f.structured() {
		if found.Changes == nil {
			found.Changes = []inspect.Change{}
		}
		return encode(out, f, found)
	}
	for _, text := range found.Notes {
		if _, err := fmt.Fprintln(notes, text); err != nil {
			return err
		}
	}
	for i := range found.Changes {
		if err := printChange(out, notes, s, f, &found.Changes[i]); err != nil {
			return err
		}
	}
	return nil
}

func printChange(out, notes io.Writer, s style, f format, c *inspect.Change) error {
	if f == asName {
		_, err := fmt.Fprintf(out, "%s %s\n", c.Action, fileOf(c))
		return err
	}
	if c.Live == nil && c.Wanted == nil {
		_, err := fmt.Fprintf(notes, "%s: %s: %s\n", fileOf(c), c.Action, plaintext.Line(c.Why))
		return err
	}
	if c.Why != "" && c.Action == inspect.Update {
		if _, err := fmt.Fprintf(notes, "%s: %s\n", fileOf(c), plaintext.Line(c.Why)); err != nil {
			return err
		}
	}
	before, err := text(c.Live)
	if err != nil {
		return err
	}
	after, err := text(c.Wanted)
	if err != nil {
		return err
	}
	for line := range strings.Lines(unified("LIVE/"+fileOf(c), "MERGED/"+fileOf(c), before, after)) {
		if _, err := io.WriteString(out, s.diffLine(line)); err != nil {
			return err
		}
	}
	return nil
}

// unified returns the difference of two texts as diff -u -N prints it. The library limits its time: if much differs, it
// shows equal lines between two changes as changed.
func unified(from, to, before, after string) string {
	return fmt.Sprintf("diff -u -N %s %s\n%s", from, to, udiff.Unified(from, to, before, after))
}

// fileOf returns the file name of an object, as kubectl diff names its files.
func fileOf(c *inspect.Change) string {
	group, version, found := strings.Cut(c.APIVersion, "/")
	if !found {
		group, version = "", group
	}
	var parts []string
	for _, part := range []string{group, version, c.Kind, c.Namespace, c.Name} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return plaintext.Line(strings.Join(parts, "."))
}

func text(object *unstructured.Unstructured) (string, error) {
	if object == nil {
		return "", nil
	}
	content, err := yaml.Marshal(object.Object)
	return string(content), err
}

func (s style) diffLine(line string) string {
	line = strings.TrimSuffix(line, "\n")
	colour := ""
	switch {
	case strings.HasPrefix(line, "diff "), strings.HasPrefix(line, "--- "), strings.HasPrefix(line, "+++ "):
		colour = bold
	case strings.HasPrefix(line, "@@ "):
		colour = cyan
	case strings.HasPrefix(line, "-"):
		colour = red
	case strings.HasPrefix(line, "+"):
		colour = green
	default:
		return line + "\n"
	}
	return s.in(colour, line) + "\n"
}
