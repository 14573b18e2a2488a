package explaining

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"

	"github.com/espalier-project/espalier/internal/endpoint/explain"
	"github.com/espalier-project/espalier/internal/externalapi/wellknown"
)

// Identity is a form of --as: a word before a colon, and the rest.
type Identity struct {
	// Form is its spelling.
	Form string
	user func(rest string) (user string, groups []string, ok bool)
}

// word returns the text before the colon.
func (i Identity) word() string { before, _, _ := strings.Cut(i.Form, ":"); return before }

// Seed is the gardenlet of a seed.
var Seed = Identity{"seed:NAME", func(rest string) (string, []string, bool) {
	return wellknown.SeedUserPrefix + rest, []string{wellknown.SeedsGroup}, isName(rest)
}}

// Shoot is the gardenlet of a self-hosted shoot, Gardenadm the tool that sets one up.
var (
	Shoot     = Identity{"shoot:NAMESPACE/NAME", ofShoot(wellknown.ShootUserPrefix)}
	Gardenadm = Identity{"gardenadm:NAMESPACE/NAME", ofShoot(wellknown.GardenadmPrefix)}
)

func ofShoot(prefix string) func(string) (string, []string, bool) {
	return func(rest string) (string, []string, bool) {
		namespace, name, ok := twoNames(rest)
		return prefix + namespace + ":" + name, []string{wellknown.ShootsGroup}, ok
	}
}

// Extension is an extension by its ServiceAccount in the garden, that of a seed or of a self-hosted shoot.
var Extension = Identity{"extension:NAMESPACE/SERVICEACCOUNT", func(rest string) (string, []string, bool) {
	namespace, name, ok := twoNames(rest)
	return serviceaccount.MakeUsername(namespace, name), serviceaccount.MakeGroupNames(namespace), ok
}}

// Agent is the agent of a node, by the name of its Machine, or of its Node where there are no Machines.
func Agent(prefix, group string) []Identity {
	user := func(rest string) (string, []string, bool) { return prefix + rest, []string{group}, isName(rest) }
	return []Identity{{"machine:NAME", user}, {"node:NAME", user}}
}

func isName(text string) bool { return text != "" && !strings.ContainsAny(text, "/: ") }

func twoNames(text string) (namespace, name string, ok bool) {
	namespace, name, _ = strings.Cut(text, "/")
	return namespace, name, isName(namespace) && isName(name)
}

// asked are the flags and arguments that make a question.
type asked struct {
	identities []Identity
	resources  func(resource string) (group string, clusterScoped, known bool)

	as        string
	namespace string
	question  explain.Question
}

func (a *asked) flags(set *pflag.FlagSet) {
	forms := make([]string, 0, len(a.identities))
	for _, i := range a.identities {
		forms = append(forms, i.Form)
	}
	set.StringVar(&a.as, "as", "", "`who` asks: "+strings.Join(forms, ", "))
	set.StringVar(&a.question.User, "user", "", "`name` of the user who asks, instead of --as")
	set.StringSliceVar(&a.question.Groups, "group", nil, "`groups` of the user, comma-separated or repeated")
	set.StringVarP(&a.namespace, "namespace", "n", "", "`namespace` of the object, if the request has none")
	set.StringVar(&a.question.Subresource, "subresource", "", "`subresource`, such as status")
	set.StringVar(&a.question.FieldSelector, "field-selector", "", "field `selector` of a list or watch")
	set.StringVarP(&a.question.LabelSelector, "selector", "l", "", "label `selector` of a list or watch")
}

// read makes a question of flags and of the words of the request.
func (a *asked) read(arguments []string) (*explain.Question, error) {
	q := a.question
	if err := a.identify(&q); err != nil {
		return nil, err
	}
	words := strings.Fields(strings.Join(arguments, " "))
	if len(words) != 2 {
		return nil, fmt.Errorf("want a request such as 'get secrets/NAMESPACE/NAME', got %q", strings.Join(arguments, " "))
	}
	q.Verb = words[0]
	word, object, _ := strings.Cut(words[1], "/")
	of, err := a.resolve(word)
	if err != nil {
		return nil, err
	}
	q.Resource, q.Group, q.Namespace = of.name, of.group, a.namespace
	parts := strings.Split(object, "/")
	switch {
	case object == "":
	case slices.Contains(parts, ""), len(parts) > 2, len(parts) == 2 && (a.namespace != "" || of.clusterScoped):
		return nil, fmt.Errorf("the object %q has too many or empty parts", object)
	case len(parts) == 2:
		q.Namespace, q.Name = parts[0], parts[1]
	case a.namespace == "" && of.known && !of.clusterScoped && slices.Contains([]string{"list", "watch", "create", "deletecollection"}, q.Verb):
		q.Namespace = object
	case a.namespace == "" && of.known && !of.clusterScoped:
		return nil, fmt.Errorf("%s have a namespace: want %s/NAMESPACE/%s, or -n", of.name, of.name, object)
	default:
		q.Name = object
	}
	if of.name == "namespaces" {
		q.Namespace = q.Name // The API server sends the name in both.
	}
	_, err = q.Attributes()
	return &q, err
}

// identify sets the user and its groups.
func (a *asked) identify(q *explain.Question) error {
	if (a.as == "") == (q.User == "") {
		return errors.New("want either --as or --user")
	}
	if a.as == "" {
		return nil
	}
	word, rest, _ := strings.Cut(a.as, ":")
	for _, i := range a.identities {
		if i.word() != word {
			continue
		}
		user, groups, ok := i.user(rest)
		if !ok {
			return fmt.Errorf("--as: want %s, got %q", i.Form, a.as)
		}
		q.User, q.Groups = user, append(groups, q.Groups...)
		return nil
	}
	return fmt.Errorf("--as: %q is not a known client", a.as)
}

// begun are the forms of --as that begin with a text, for the shell.
func (a *asked) begun(text string) (forms []string) {
	for _, i := range a.identities {
		if strings.HasPrefix(i.word()+":", text) {
			forms = append(forms, i.word()+":")
		}
	}
	return forms
}
