package kubectl

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/pflag"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/brake"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/plaintext"
	"github.com/espalier-project/espalier/internal/process"
)

// confirmVerb is the verb that confirms a deletion that waits.
func confirmVerb() process.Subcommand {
	var to connection
	return process.Subcommand{
		Name: "confirm", Operand: "MANAGEDRESOURCE", Fault: faultCode, Codes: holdCodes,
		Short: "Confirm the deletion of the objects of a ManagedResource that waits because their manifests vanished",
		Long: "It waits while its condition ResourcesApplied has the reason DeletionHeld, or names an object that is deleted and recreated once that is confirmed.\n" +
			"The command prints the objects, and confirms by an annotation in the source; if the manifests change meanwhile, it confirms nothing.",
		Arguments:     wantsManagedResource,
		Complete:      to.completeManagedResource,
		CompleteFlags: to.completeFlags(nil),
		Flags:         to.add,
		Run: interruptible(func(ctx context.Context, set *pflag.FlagSet, out io.Writer) error {
			name, err := oneManagedResource(set.Args())
			if err != nil {
				return err
			}
			return confirmDeletion(ctx, &to, name, out)
		}),
	}
}

func confirmDeletion(ctx context.Context, to *connection, name string, out io.Writer) error {
	p, err := to.find(ctx, []string{"managedresource", name})
	if err != nil {
		return err
	}
	object, err := p.read(ctx)
	if err != nil {
		return err
	}
	mr, err := typed[resourcesv1alpha1.ManagedResource](object)
	if err != nil {
		return err
	}
	condition := meta.Conditions(mr.Status.Conditions).Get(resourcesv1alpha1.ResourcesApplied)
	checksum := ""
	if condition != nil {
		checksum = brake.ChecksumIn(condition.Message)
	}
	switch {
	case checksum == "" && (condition == nil || condition.Reason != resourcesv1alpha1.ReasonDeletionHeld):
		return fmt.Errorf("no deletion of %s waits", p)
	case checksum == "":
		return fmt.Errorf("the condition of %s names no checksum: another version of resource-manager wrote it", p)
	}
	if err := p.annotate(ctx, object, map[string]any{resourcesv1alpha1.AnnotationConfirmDeletion: checksum}); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s\n%s goes on\n", plaintext.Line(condition.Message), p)
	return err
}
