package process

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// mostMeant is the number of names that a question has: more of them help nobody.
const mostMeant = 3

// meant returns a question about the names that a wrong one may mean, "" if it resembles none; cobra decides what
// resembles it.
func meant(wrong string, names []string) string {
	all := &cobra.Command{Use: "names", SuggestionsMinimumDistance: 2}
	for _, name := range names {
		all.AddCommand(&cobra.Command{Use: name, Run: func(*cobra.Command, []string) {}})
	}
	if near := all.SuggestionsFor(wrong); len(near) > 0 {
		return ", did you mean " + strings.Join(near[:min(len(near), mostMeant)], " or ") + "?"
	}
	return ""
}

// suggestFlags adds the flags that an unknown one may mean.
func suggestFlags(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) || unknown.GetSpecifiedShortnames() != "" {
		return err
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, "--"+f.Name)
		}
	})
	return fmt.Errorf("%w%s", err, meant("--"+unknown.GetSpecifiedName(), names))
}
