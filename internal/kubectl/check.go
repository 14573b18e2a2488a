package kubectl

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/espalier-project/espalier/internal/plaintext"
	"github.com/espalier-project/espalier/internal/process"
)

// result is the outcome of one check.
type result string

// Results.
const (
	isOK      result = "ok"
	isWrong   result = "wrong"
	isUnknown result = "unknown"
)

// checked is a line of the output of check.
type checked struct {
	Result  result `json:"result"`
	Subject string `json:"subject"`
	Text    string `json:"text"`
}

type checkFlags struct {
	connection
	output                             format
	lease, serviceAccount, certificate string
}

// checkVerb is the verb that checks what an installation needs.
func checkVerb() process.Subcommand {
	var flags checkFlags
	return process.Subcommand{
		Name: "check", Fault: faultCode,
		Short: "Check what an installation needs: versions, CRD, rights, Lease and webhooks",
		Long: "The namespace is that of resource-manager in the source. Each check is one line: ok, wrong, or unknown if a right is missing.\n" +
			"Webhooks are those in the target whose configuration is named after an executable.\n" +
			"It sends GET requests, and SubjectAccessReviews about the ServiceAccount.\n\n" + clustersLong,
		Codes: []process.Term{
			{Name: "0", Text: "all checks are ok"},
			{Name: "1", Text: "something is wrong"},
			{Name: "2", Text: "nothing is wrong but something unknown, or an error"},
		},
		CompleteFlags: flags.completeFlags(outputOnly),
		Flags: func(set *pflag.FlagSet) {
			flags.add(set)
			flags.output.add(set)
			set.StringVar(&flags.lease, "lease", "gardener-resource-manager", "`name` of resource-manager's Lease")
			set.StringVar(&flags.certificate, "certificate", "", "`name` of the Secret with the serving certificate, in the namespace of the webhooks' Service")
			set.StringVar(&flags.serviceAccount, "service-account", "gardener-resource-manager", "`name` of resource-manager's ServiceAccount")
		},
		Run: interruptible(func(ctx context.Context, _ *pflag.FlagSet, out io.Writer) error {
			return flags.run(ctx, out, time.Now())
		}),
	}
}

func (f *checkFlags) run(ctx context.Context, out io.Writer, now time.Time) error {
	found, err := f.open(ctx)
	if err != nil {
		return err
	}
	c := &checker{clusters: found, certificate: f.certificate, now: now}
	c.version(ctx, "source", found.source)
	if found.target != found.source {
		c.version(ctx, "target", found.target)
	}
	c.definition(ctx)
	if err := c.rights(ctx, f); err != nil {
		return err
	}
	c.lease(ctx, f.lease)
	c.webhooks(ctx, "ValidatingWebhookConfiguration", "validatingwebhookconfigurations")
	c.webhooks(ctx, "MutatingWebhookConfiguration", "mutatingwebhookconfigurations")
	if err := c.print(out, f.output); err != nil {
		return err
	}
	has := func(v result) bool {
		return slices.ContainsFunc(c.lines, func(line checked) bool { return line.Result == v })
	}
	switch {
	case has(isWrong):
		return somethingFound
	case has(isUnknown):
		return process.ExitCode(faultCode)
	}
	return ctx.Err()
}

func (c *checker) print(out io.Writer, f format) error {
	if f.structured() {
		return encode(out, f, c.lines)
	}
	style := styleOf(out)
	colours := map[result]string{isOK: green, isWrong: red, isUnknown: yellow}
	for _, line := range c.lines {
		text := style.in(colours[line.Result], fmt.Sprintf("%-8s", line.Result)) + plaintext.Line(line.Subject+": "+line.Text)
		if _, err := io.WriteString(out, text+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// checker collects the lines of the output.
type checker struct {
	*clusters
	// certificate is the name of the Secret with the serving certificate, "" if there is none to compare.
	certificate string
	now         time.Time
	lines       []checked
}

func (c *checker) say(v result, subject, text string, arguments ...any) {
	c.lines = append(c.lines, checked{v, subject, fmt.Sprintf(text, arguments...)})
}

// oldest is the oldest minor version of Kubernetes 1 that the charts support.
const oldest = 30

func (c *checker) version(ctx context.Context, name string, r *reader) {
	subject := "API server of the " + name
	version, minor, err := r.version(ctx)
	switch {
	case err != nil:
		c.say(isUnknown, subject, "its version cannot be read: %v", err)
	case minor < oldest:
		c.say(isWrong, subject, "version %s is older than 1.%d", version, oldest)
	default:
		c.say(isOK, subject, "version %s", version)
	}
}

func (c *checker) lease(ctx context.Context, name string) {
	subject := "Lease " + c.namespace + "/" + name
	object, err := c.source.get(ctx, leases, c.namespace, name)
	if c.unread(subject, err, "it does not exist: no resource-manager has been leader here") {
		return
	}
	lease, err := typed[coordinationv1.Lease](object)
	if err != nil {
		c.say(isUnknown, subject, "%v", err)
		return
	}
	record := resourcelock.LeaseSpecToLeaderElectionRecord(&lease.Spec)
	holder, lasts := record.HolderIdentity, time.Duration(record.LeaseDurationSeconds)*time.Second
	switch {
	case holder == "" || record.RenewTime.IsZero():
		c.say(isWrong, subject, "nobody holds it")
	case c.now.After(record.RenewTime.Add(lasts)):
		c.say(isWrong, subject, "%s renewed it %s ago, and it lasts %s", holder, ago(c.now, record.RenewTime.Time), lasts)
	default:
		c.say(isOK, subject, "%s holds it", holder)
	}
}

// webhooks checks the registrations of Espalier.
func (c *checker) webhooks(ctx context.Context, kindName, resource string) {
	objects, err := c.target.list(ctx, admissionRegistrations.WithResource(resource), "", metav1.ListOptions{})
	if err != nil {
		c.say(isUnknown, kindName, "they cannot be listed: %v", err)
		return
	}
	none := true
	for i := range objects {
		name := objects[i].GetName()
		if !slices.ContainsFunc(executables, func(of string) bool { return strings.Contains(name, of) }) {
			continue
		}
		none = false
		c.registration(ctx, kindName+" "+name, &objects[i])
	}
	if none {
		c.say(isOK, kindName, "none is registered")
	}
}
