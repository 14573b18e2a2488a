// follow lists the commits of the reference that touch the paths of the components, each with its answer in docs/internals/reference-log.md. It reads a clone of
// the reference, and works offline. It fails if a commit has no answer, and prints how old the base is.
//
//	follow <root of the repository> <clone of the reference>
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// paths are the paths of the three components, of their configurations, of the parts that they share with others, and
// of their deployment by gardenlet and gardener-operator.
var paths = []string{
	"cmd/gardener-resource-manager", "pkg/resourcemanager", "pkg/apis/config/resourcemanager", "pkg/component/gardener/resourcemanager", "charts/gardener/resource-manager",
	"cmd/gardener-admission-controller", "pkg/admissioncontroller", "pkg/apis/config/admissioncontroller", "pkg/component/gardener/admissioncontroller",
	"pkg/apis/resources", "pkg/utils/graph", "pkg/webhook/authorizer", "pkg/api/config/resourcemanager", "pkg/api/config/admissioncontroller", "pkg/api/resources",
	"pkg/component/shared/resourcemanager.go", "pkg/gardenlet/operation/botanist/resource_manager.go", "pkg/gardenadm/botanist/resource_manager.go",
}

// answers are the possible answers of the log to a commit.
var answers = []string{"taken", "not ours", "open", "coming"}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: follow <root of the repository> <clone of the reference>")
		os.Exit(2)
	}
	if err := follow(os.Args[1], os.Args[2], time.Now(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "follow:", err)
		os.Exit(1)
	}
}

func follow(root, clone string, now time.Time, out io.Writer) error {
	content, err := os.ReadFile(filepath.Join(root, "docs", "internals", "reference-log.md"))
	if err != nil {
		return err
	}
	l, err := parse(string(content))
	if err != nil {
		return err
	}
	dated, err := git(clone, "log", "-1", "--format=%cs", l.base)
	if err != nil {
		return fmt.Errorf("the base %s: %w", l.base, err)
	}
	base, err := time.Parse(time.DateOnly, strings.TrimSpace(dated))
	if err != nil {
		return err
	}
	after, err := commits(clone, l.base+"..HEAD")
	if err != nil {
		return err
	}
	before, err := commits(clone, "--since="+l.from+"T00:00:00Z", l.base)
	if err != nil {
		return err
	}
	unanswered := l.print(out, append(after, before...))
	_, _ = fmt.Fprintf(out, "The base %s is %d days old; %d commits since then touch our paths, and %d in the time before it from %s on.\n",
		l.base, int(now.Sub(base).Hours()/24), len(after), len(before), l.from)
	if unanswered > 0 {
		return fmt.Errorf("%d commits have no answer in docs/internals/reference-log.md", unanswered)
	}
	return nil
}

type commit struct{ hash, date, title string }

var request = regexp.MustCompile(`\(#(\d+)\)$`)

// name returns the pull request of a commit, or its hash.
func (c *commit) name() string {
	if found := request.FindStringSubmatch(c.title); found != nil {
		return "#" + found[1]
	}
	return c.hash[:10]
}

func commits(clone string, which ...string) ([]commit, error) {
	arguments := append(append([]string{"log", "--no-merges", "--format=%H\t%cs\t%s"}, which...), "--")
	text, err := git(clone, append(arguments, paths...)...)
	var all []commit
	for line := range strings.Lines(text) {
		fields := strings.SplitN(strings.TrimSpace(line), "\t", 3)
		if len(fields) == 3 {
			all = append(all, commit{fields[0], fields[1], fields[2]})
		}
	}
	return all, err
}

func git(clone string, arguments ...string) (string, error) {
	var problem strings.Builder
	command := exec.Command("git", append([]string{"-C", clone}, arguments...)...)
	command.Stderr = &problem
	text, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", arguments[0], err, strings.TrimSpace(problem.String()))
	}
	return string(text), nil
}

// log is docs/internals/reference-log.md.
type log struct {
	base, from string
	// answers has the answers by the names of commits.
	answers map[string]string
}

var (
	baseLine = regexp.MustCompile("(?m)^Base: `([0-9a-f]{8,40})` .*from (\\d{4}-\\d\\d-\\d\\d) on")
	row      = regexp.MustCompile(`(?m)^\| (#\d+|[0-9a-f]{10}) \| ([^|]*) \| ([^|]*) \|`)
)

func parse(text string) (*log, error) {
	head := baseLine.FindStringSubmatch(text)
	if head == nil {
		return nil, errors.New("docs/internals/reference-log.md names no base and no date")
	}
	l := &log{base: head[1], from: head[2], answers: map[string]string{}}
	for _, r := range row.FindAllStringSubmatch(text, -1) {
		name, answer := r[1], strings.TrimSpace(r[3])
		if !slices.Contains(answers, answer) {
			return nil, fmt.Errorf("docs/internals/reference-log.md: %s has the answer %q; want one of %s", name, answer, strings.Join(answers, ", "))
		}
		if _, twice := l.answers[name]; twice {
			return nil, fmt.Errorf("docs/internals/reference-log.md: %s has two rows", name)
		}
		l.answers[name] = answer
	}
	return l, nil
}

// print prints commits with their answers, and returns the number of those without one.
func (l *log) print(out io.Writer, all []commit) (unanswered int) {
	for i := range all {
		c := &all[i]
		answer := l.answers[c.name()]
		if answer == "" {
			answer = "NO ANSWER"
			unanswered++
		}
		_, _ = fmt.Fprintf(out, "%-9s  %s  %s  %s\n", answer, c.date, c.hash[:10], c.title)
	}
	return unanswered
}
