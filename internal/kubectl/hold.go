package kubectl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	holds "github.com/espalier-project/espalier/internal/managedresource/hold"
	"github.com/espalier-project/espalier/internal/plaintext"
	"github.com/espalier-project/espalier/internal/process"
)

var holdCodes = []process.Term{{Name: "0", Text: "annotated as requested"}, {Name: "2", Text: "an error; nothing was written"}}

// holdVerb is the verb that suspends repairs of an object.
func holdVerb() process.Subcommand {
	var to connection
	var asked holdRequest
	verb := objectVerb(&to, "hold", "Suspend repairs of an object, or of all objects of a ManagedResource, for a limited time", func(ctx context.Context, arguments []string, out io.Writer) error {
		asked.now = time.Now()
		return asked.set(ctx, &to, arguments, out)
	})
	verb.Long = "The object is not repaired until the printed time: an edit stays until then.\n" +
		"KIND managedresource stands for all objects of that ManagedResource.\n" +
		"In a shoot a hold counts only if the ManagedResource, or the configuration of resource-manager, allows it.\n\n" + clustersLong
	flags := verb.Flags
	verb.Flags = func(set *pflag.FlagSet) {
		flags(set)
		set.DurationVar(&asked.lasts, "for", time.Hour, "time until the repair, at most 24h")
		set.StringVar(&asked.reason, "reason", "", "`text` that Events pass on")
	}
	return verb
}

// releaseVerb is the verb that ends a hold.
func releaseVerb() process.Subcommand {
	var to connection
	verb := objectVerb(&to, "release", "End a hold, so that its objects are repaired at once", func(ctx context.Context, arguments []string, out io.Writer) error {
		return releaseHold(ctx, &to, arguments, out)
	})
	verb.Long = clustersLong
	return verb
}

func objectVerb(to *connection, name, short string, do func(context.Context, []string, io.Writer) error) process.Subcommand {
	return process.Subcommand{
		Name: name, Operand: "KIND[.GROUP] NAME", Fault: faultCode, Short: short, Codes: holdCodes,
		Arguments:     wantsObject,
		Complete:      to.completeObject,
		CompleteFlags: to.completeFlags(nil),
		Flags:         to.add,
		Run: interruptible(func(ctx context.Context, set *pflag.FlagSet, out io.Writer) error {
			return do(ctx, set.Args(), out)
		}),
	}
}

type holdRequest struct {
	lasts  time.Duration
	reason string
	now    time.Time
}

// annotations returns the annotations of the hold. It parses them as resource-manager does, so that none is written
// that resource-manager would refuse.
func (h *holdRequest) annotations() (map[string]any, holds.Hold, error) {
	if h.lasts <= 0 || h.lasts > holds.Longest {
		return nil, holds.Hold{}, fmt.Errorf("--for is %s: a hold lasts more than nothing, and %s at most", h.lasts, holds.Longest)
	}
	texts := map[string]string{resourcesv1alpha1.AnnotationLeaveAloneUntil: h.now.Add(h.lasts).UTC().Format(time.RFC3339)}
	if h.reason != "" {
		texts[resourcesv1alpha1.AnnotationLeaveAloneReason] = h.reason
	}
	read := holds.Of(texts, h.now)
	switch read.State {
	case holds.InForce:
	case holds.Refused:
		return nil, read, read.Refusal
	case holds.None, holds.Over:
		return nil, read, errors.New("--for is less than a second")
	}
	all := noHold()
	for name, text := range texts {
		all[name] = text
	}
	return all, read, nil
}

// noHold removes all annotations of a hold.
func noHold() map[string]any {
	all := map[string]any{}
	for _, name := range holds.Annotations {
		all[name] = nil
	}
	return all
}

// place is an object that is held or released, and the client that may patch it.
type place struct {
	*kind
	namespace, name string
	client          dynamic.ResourceInterface
}

func (p *place) String() string { return p.GroupVersionKind.Kind + " " + fullName(p.namespace, p.name) }

// find returns the place of an object: ManagedResources are in the source, all others in the target.
func (c *connection) find(ctx context.Context, arguments []string) (*place, error) {
	kindName, name, err := kindAndName(arguments)
	if err != nil {
		return nil, err
	}
	found, err := c.open(ctx)
	if err != nil {
		return nil, err
	}
	if isManagedResource(kindName) {
		return c.source.place(kindOfManagedResources(), found.namespace, name)
	}
	k, err := found.target.resolve(ctx, kindName)
	if err != nil {
		return nil, err
	}
	where, _ := c.toTarget()
	return where.place(k, k.within(found.targetNamespace), name)
}

// place returns an object of the cluster, with a client that patches it.
func (a *access) place(k *kind, namespace, name string) (*place, error) {
	config, _, err := a.load()
	if err != nil {
		return nil, err
	}
	client, err := newPatcher(config)
	if err != nil {
		return nil, err
	}
	return &place{kind: k, namespace: namespace, name: name, client: client.Resource(k.Resource).Namespace(namespace)}, nil
}

// newPatcher returns a client that reads and patches.
func newPatcher(config *rest.Config) (dynamic.Interface, error) {
	config = guarded(config, "reads and patches", func(request *http.Request) bool {
		return request.Method == http.MethodGet || request.Method == http.MethodPatch
	})
	config.UserAgent = rest.DefaultKubernetesUserAgent()
	return dynamic.NewForConfig(config)
}

func (p *place) read(ctx context.Context) (*unstructured.Unstructured, error) {
	object, err := p.client.Get(ctx, p.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("%s is not there", p)
	}
	return object, err
}

// annotate patches annotations of the object that was read, and not of a new object with its name.
func (p *place) annotate(ctx context.Context, object *unstructured.Unstructured, annotations map[string]any) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": object.GetUID(), "annotations": annotations}})
	if err != nil {
		return err
	}
	_, err = p.client.Patch(ctx, p.name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: executable})
	return err
}

func (h *holdRequest) set(ctx context.Context, to *connection, arguments []string, out io.Writer) error {
	p, err := to.find(ctx, arguments)
	if err != nil {
		return err
	}
	object, err := p.read(ctx)
	if err != nil {
		return err
	}
	annotations, read, err := h.annotations()
	if err != nil {
		return err
	}
	isAll := p.Resource == managedResources
	if !isAll && object.GetAnnotations()[resourcesv1alpha1.AnnotationOrigin] == "" {
		return fmt.Errorf("%s has no origin: no ManagedResource repairs it", p)
	}
	if err := p.annotate(ctx, object, annotations); err != nil {
		return err
	}
	what := p.String()
	if isAll {
		what = "all of " + what
	}
	_, err = fmt.Fprintf(out, "%s is left alone %s\n", what, plaintext.Line(read.String()))
	return err
}

func releaseHold(ctx context.Context, to *connection, arguments []string, out io.Writer) error {
	p, err := to.find(ctx, arguments)
	if err != nil {
		return err
	}
	object, err := p.read(ctx)
	if err != nil {
		return err
	}
	if _, found := object.GetAnnotations()[resourcesv1alpha1.AnnotationLeaveAloneUntil]; !found {
		_, err = fmt.Fprintf(out, "%s has no hold\n", p)
		return err
	}
	if err := p.annotate(ctx, object, noHold()); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s: hold removed\n", p)
	return err
}
