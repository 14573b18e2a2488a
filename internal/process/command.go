package process

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/component-base/version"
)

// Command is one of the executables.
type Command struct {
	// Name of the executable.
	Name string
	// Short says in a line what it does.
	Short string
	// Flags adds its own flags.
	Flags func(*pflag.FlagSet)
	// Prepare reads the configuration; an error is shown with the usage. It returns the logger and what runs.
	Prepare func(*pflag.FlagSet) (logr.Logger, func() error, error)
	// Subcommands print something instead of running it.
	Subcommands []Subcommand
}

// Subcommand prints something.
type Subcommand struct {
	Name, Short string
	Flags       func(*pflag.FlagSet)
	Run         func(flags *pflag.FlagSet, out io.Writer) error
}

func (s *Subcommand) command(out io.Writer) *cobra.Command {
	command := &cobra.Command{
		Use: s.Name, Short: s.Short, Args: cobra.NoArgs, SilenceErrors: true, SilenceUsage: true,
		RunE: func(cmd *cobra.Command, _ []string) error { return s.Run(cmd.Flags(), out) },
	}
	s.Flags(command.Flags())
	return command
}

// Execute runs a command and returns its exit code (CLI-1 … CLI-7).
func Execute(c Command, arguments []string, stdout, stderr io.Writer) int {
	var logger *logr.Logger
	root := &cobra.Command{
		Use:           c.Name,
		Short:         c.Short,
		Args:          cobra.NoArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.CompletionOptions.DisableDefaultCmd = true
	var wanted versionFlag
	c.Flags(root.Flags())
	root.Flags().Var(&wanted, "version", "print the version and exit; raw prints all of it, a version that starts with v overrides the reported one")
	root.Flags().Lookup("version").NoOptDefVal = "true"
	root.RunE = func(cmd *cobra.Command, _ []string) error {
		if wanted.print(c.Name, stdout) {
			return nil
		}
		log, run, err := c.Prepare(cmd.Flags())
		if err != nil {
			return err
		}
		logger = &log
		log.Info("Starting "+c.Name, "version", version.Get().GitVersion)
		cmd.Flags().VisitAll(func(f *pflag.Flag) { log.Info(fmt.Sprintf("FLAG: --%s=%s", f.Name, f.Value)) })
		return run()
	}
	for _, s := range c.Subcommands {
		root.AddCommand(s.command(stdout))
	}
	root.SetArgs(arguments)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.Execute()
	if err == nil {
		return 0
	}
	if logger != nil {
		logger.Error(err, "Ending after an error")
	} else {
		_, _ = fmt.Fprintf(stderr, "Error: %s\n%s\n", err, root.UsageString())
	}
	_, _ = fmt.Fprintln(stdout, err)
	return 1
}

// Main runs a command with the arguments and streams of the process, and ends it.
func Main(c Command) { os.Exit(Execute(c, os.Args[1:], os.Stdout, os.Stderr)) }

type versionFlag string

func (v *versionFlag) String() string { return string(*v) }
func (v *versionFlag) Type() string   { return "version" }
func (v *versionFlag) Set(value string) error {
	switch {
	case value == "true", value == "false", value == "raw":
	case strings.HasPrefix(value, "v"):
		if err := version.SetDynamicVersion(value); err != nil {
			return err
		}
	default:
		return fmt.Errorf("want true, raw or a version that starts with v")
	}
	*v = versionFlag(value)
	return nil
}

// print prints the version if that is all that is wanted (CLI-2).
func (v *versionFlag) print(name string, out io.Writer) bool {
	switch *v {
	case "true":
		_, _ = fmt.Fprintf(out, "%s %s\n", name, version.Get().GitVersion)
	case "raw":
		_, _ = fmt.Fprintf(out, "%#v\n", version.Get())
	default:
		return false
	}
	return true
}
