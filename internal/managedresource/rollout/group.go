package rollout

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/externalapi/boundedyaml"
)

// Keys of the data of a group's ConfigMap.
const (
	KeyWaves          = "waves"
	KeyGate           = "gate"
	KeyPause          = "pause"
	KeyTimeout        = "timeout"
	KeyMaxUnavailable = "maxUnavailable"
	KeyMaxFailed      = "maxFailed"
)

const (
	// defaultPause gives the writer of the content time to write the members of earlier waves, and gives members time to
	// show whether they are healthy.
	defaultPause = 5 * time.Minute
	// defaultTimeout is as long as kube-controller-manager gives a Deployment.
	defaultTimeout = 10 * time.Minute
	// longest bounds pause and timeout: a roll-out that takes longer than a week is no roll-out.
	longest = 7 * 24 * time.Hour
	// mostWaves and longestWaves bound what each decision goes through: a wave for each of the regions of a landscape.
	mostWaves    = 64
	longestWaves = 64 << 10
	// mostTokens bounds resumed and aborted members: with 33 bytes each, both together take less than the 256 KiB that the
	// annotations of an object may have.
	mostTokens = 3500
)

// Group is the content of a ConfigMap.
type Group struct {
	// Name is that of the ConfigMap, with its namespace.
	Name  string
	Waves []Wave
	// Progressing is true if the gate asks for ResourcesProgressing=False in addition to ResourcesApplied=True and
	// ResourcesHealthy=True.
	Progressing bool
	// Pause is the least time between two waves, and between a change and its turn in any but the first wave.
	Pause time.Duration
	// Timeout limits the time in which a member passes the gate. A failure that begins later does not count.
	Timeout time.Duration
	// MaxUnavailable bounds the members that are on their way at once, and MaxFailed those that may have failed
	// without a halt.
	MaxUnavailable, MaxFailed Amount
	// Resumed are members that failed and count no more, Aborted those whose present content is not applied.
	Resumed, Aborted sets.Set[Token]
}

// Wave selects members. A member is in the first wave that selects it; a last wave has all other members.
type Wave struct {
	// Selector selects by the labels of the ManagedResource, Namespaces by patterns of names of namespaces as path.Match
	// has them. Both have to match.
	Selector   labels.Selector
	Namespaces []string
	// UntilPercent fills the wave with members that no wave selects, until that share of all members is in this wave or an
	// earlier one.
	UntilPercent int
}

// Amount is a number of members, or a share of all.
type Amount struct {
	Number  int
	Percent bool
}

// Of is the amount of so many members; a share of some is one at least.
func (a Amount) Of(all int) int {
	if !a.Percent {
		return a.Number
	}
	return (all*a.Number + 99) / 100
}

// waveText is a wave as it is written.
type waveText struct {
	Selector     string   `json:"selector,omitempty"`
	Namespaces   []string `json:"namespaces,omitempty"`
	UntilPercent *int     `json:"untilPercent,omitempty"`
}

// Parse reads the ConfigMap of a group; an error names its key.
func Parse(name string, data, annotations map[string]string) (*Group, error) {
	g := &Group{Name: name, Pause: defaultPause, Timeout: defaultTimeout}
	var errs []error
	note := func(key string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("key %s: %w", key, err))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(data)) {
		var err error
		switch text := strings.TrimSpace(data[key]); key {
		case KeyWaves:
			g.Waves, err = parseWaves(text)
		case KeyGate:
			g.Progressing, err = parseGate(text)
		case KeyPause:
			g.Pause, err = parseDuration(text)
		case KeyTimeout:
			g.Timeout, err = parseDuration(text)
		case KeyMaxUnavailable:
			if g.MaxUnavailable, err = parseAmount(text); err == nil && g.MaxUnavailable.Number == 0 {
				err = errors.New("must be more than nothing, or be left out for no limit")
			}
		case KeyMaxFailed:
			g.MaxFailed, err = parseAmount(text)
		default:
			err = errors.New("is not known")
		}
		note(key, err)
	}
	if _, found := data[KeyWaves]; !found {
		note(KeyWaves, errors.New("is missing"))
	}
	var err error
	g.Resumed, err = parseTokens(annotations, resourcesv1alpha1.AnnotationRolloutResumed)
	errs = append(errs, err)
	g.Aborted, err = parseTokens(annotations, resourcesv1alpha1.AnnotationRolloutAborted)
	errs = append(errs, err)
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("ConfigMap %s: %w", name, err)
	}
	return g, nil
}

func parseWaves(text string) ([]Wave, error) {
	if len(text) > longestWaves {
		return nil, fmt.Errorf("is longer than %d bytes", longestWaves)
	}
	var texts []waveText
	if err := boundedyaml.UnmarshalStrict([]byte(text), &texts); err != nil {
		return nil, fmt.Errorf("is no list of waves: %w", err)
	}
	if len(texts) == 0 || len(texts) > mostWaves {
		return nil, fmt.Errorf("has %d waves, want 1 to %d", len(texts), mostWaves)
	}
	waves, percent := make([]Wave, len(texts)), 0
	for i, each := range texts {
		wave, err := each.parse()
		if err == nil && each.UntilPercent != nil && wave.UntilPercent <= percent {
			err = fmt.Errorf("untilPercent must be more than the %d of an earlier wave", percent)
		}
		if err != nil {
			return nil, fmt.Errorf("wave %d: %w", i+1, err)
		}
		percent = max(percent, wave.UntilPercent)
		waves[i] = wave
	}
	return waves, nil
}

func (w waveText) parse() (wave Wave, err error) {
	bySelection := w.Selector != "" || len(w.Namespaces) > 0
	switch {
	case bySelection == (w.UntilPercent != nil):
		return wave, errors.New("want selector or namespaces, or else untilPercent")
	case w.UntilPercent != nil && (*w.UntilPercent < 1 || *w.UntilPercent > 100):
		return wave, fmt.Errorf("untilPercent is %d, want 1 to 100", *w.UntilPercent)
	case w.UntilPercent != nil:
		return Wave{UntilPercent: *w.UntilPercent}, nil
	}
	if wave.Selector, err = labels.Parse(w.Selector); err != nil {
		return wave, fmt.Errorf("selector: %w", err)
	}
	for i, pattern := range w.Namespaces {
		if _, err := path.Match(pattern, ""); err != nil {
			return wave, fmt.Errorf("namespaces[%d]: %w", i, err)
		}
	}
	wave.Namespaces = w.Namespaces
	return wave, nil
}

// selects reports whether a wave selects a member by its labels and its namespace.
func (w Wave) selects(m *Member) bool {
	if w.Selector == nil || !w.Selector.Matches(labels.Set(m.Labels)) {
		return false
	}
	return len(w.Namespaces) == 0 || slices.ContainsFunc(w.Namespaces, func(pattern string) bool {
		matches, _ := path.Match(pattern, m.Namespace)
		return matches
	})
}

func parseGate(text string) (progressing bool, err error) {
	for part := range strings.SplitSeq(text, ",") {
		switch resourcesv1alpha1.ConditionType(strings.TrimSpace(part)) {
		case resourcesv1alpha1.ResourcesApplied, resourcesv1alpha1.ResourcesHealthy:
		case resourcesv1alpha1.ResourcesProgressing:
			progressing = true
		default:
			return false, fmt.Errorf("has %q, want ResourcesApplied, ResourcesHealthy, ResourcesProgressing with commas between them",
				strings.TrimSpace(part))
		}
	}
	return progressing, nil
}

func parseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%q is no duration such as 5m", text)
	}
	if d < 0 || d > longest {
		return 0, fmt.Errorf("%s is out of range, want 0s to %s", d, longest)
	}
	return d, nil
}

func parseAmount(text string) (Amount, error) {
	number, percent := strings.CutSuffix(text, "%")
	n, err := strconv.Atoi(number)
	if err != nil || n < 0 || percent && n > 100 {
		return Amount{}, fmt.Errorf("%q is no number of members, and no share such as 10%%", text)
	}
	return Amount{n, percent}, nil
}

func parseTokens(annotations map[string]string, name string) (sets.Set[Token], error) {
	tokens := sets.New[Token]()
	for text := range strings.SplitSeq(annotations[name], ",") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		if len(text) != tokenLength || strings.Trim(text, "0123456789abcdef") != "" {
			return nil, fmt.Errorf("annotation %s: %q is no token of a member", name, text)
		}
		if tokens.Insert(Token(text)); len(tokens) > mostTokens {
			return nil, fmt.Errorf("annotation %s: has more than %d members", name, mostTokens)
		}
	}
	return tokens, nil
}

// Tokens are the value of an annotation with members.
func Tokens(tokens sets.Set[Token]) (string, error) {
	if len(tokens) > mostTokens {
		return "", fmt.Errorf("%d members are more than the %d that an annotation may name", len(tokens), mostTokens)
	}
	texts := make([]string, 0, len(tokens))
	for token := range tokens {
		texts = append(texts, string(token))
	}
	slices.Sort(texts)
	return strings.Join(texts, ","), nil
}
