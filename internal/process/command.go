package process

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/component-base/version"

	"github.com/espalier-project/espalier/internal/plaintext"
)

// Command is one of the executables. Without Prepare it is the client, which only has verbs.
type Command struct {
	// Name is the name of the executable.
	Name string
	// Short describes the executable in one line.
	Short string
	// Long explains in some lines what the executable runs, and where.
	Long string
	// Smallest is the smallest configuration file with which the executable starts.
	Smallest string
	// Environment are the variables that the executable reads in addition to those that all executables read.
	Environment []Term
	// Documents are paths of further documents in the repository.
	Documents []string
	// Flags adds the flags of the executable.
	Flags func(*pflag.FlagSet)
	// Prepare reads the configuration. It returns the logger and the function to run. It is nil for a command that
	// only has verbs.
	Prepare func(*pflag.FlagSet) (logr.Logger, func() error, error)
	// Subcommands are the verbs, which print something instead of running the executable.
	Subcommands []Subcommand
	// CommonIn is the executable whose reference page describes the flags, the environment, the exit codes and the
	// verbs that all executables have; "" for this one.
	// every executable has; "" for itself.
	CommonIn string
}

// Term is a name with an explanation.
type Term struct{ Name, Text string }

// Subcommand is a verb that prints something.
type Subcommand struct {
	Name, Short string
	// Long is an optional longer description.
	Long string
	// Operand is the name of the only argument; "" if there is none.
	Operand string
	// Arguments, if set, returns the error in the arguments of a verb that has more or fewer than one; Operand then
	// names all of them.
	Arguments func(arguments []string) error
	// Complete, if set, returns the shell's completions of the next argument, given the flags so far.
	Complete func(flags *pflag.FlagSet, arguments []string, begun string) []string
	// CompleteFlags has such functions for the values of flags, by the flags' names.
	CompleteFlags map[string]func(flags *pflag.FlagSet, begun string) []string
	Flags         func(*pflag.FlagSet)
	// Fault is the exit code of an error; 0 means 1.
	Fault int
	// Codes are the exit codes, if they differ from the usual ones.
	Codes []Term
	// Run prints the requested output to out.
	Run func(flags *pflag.FlagSet, out io.Writer) error
}

func (s *Subcommand) command(out io.Writer) *cobra.Command {
	command := &cobra.Command{
		Use: s.Name, Short: s.Short, Long: s.Long, Args: commandLine(cobra.NoArgs), DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, _ []string) error { return s.Run(cmd.Flags(), out) },
	}
	if s.Operand != "" {
		command.Use += " " + s.Operand
	}
	switch {
	case s.Arguments != nil:
		command.Args = commandLine(func(_ *cobra.Command, arguments []string) error { return s.Arguments(arguments) })
	case s.Operand != "":
		command.Args = commandLine(func(_ *cobra.Command, arguments []string) error {
			if len(arguments) != 1 {
				return fmt.Errorf("want one %s, got %d", s.Operand, len(arguments))
			}
			return nil
		})
	}
	command.Annotations = map[string]string{}
	if s.Fault != 0 {
		command.Annotations[faultCode] = strconv.Itoa(s.Fault)
	}
	for _, code := range s.Codes {
		command.Annotations[codesOfVerb] += code.Name + "\t" + code.Text + "\n"
	}
	if s.Flags != nil {
		s.Flags(command.Flags())
	}
	s.addCompletion(command)
	command.Use += " [flags]"
	return command
}

// addCompletion adds the verb's completions to the command.
func (s *Subcommand) addCompletion(command *cobra.Command) {
	command.ValidArgsFunction = cobra.NoFileCompletions
	if s.Complete != nil {
		command.ValidArgsFunction = func(cmd *cobra.Command, arguments []string, begun string) ([]string, cobra.ShellCompDirective) {
			return s.Complete(cmd.Flags(), arguments, begun), cobra.ShellCompDirectiveNoFileComp
		}
	} else if s.Operand != "" {
		command.ValidArgsFunction = nil // An operand may be a file.
	}
	for name, complete := range s.CompleteFlags {
		// It fails only for an unknown flag, which the test of the verbs would detect.
		_ = command.RegisterFlagCompletionFunc(name, func(cmd *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
			return complete(cmd.Flags(), begun), cobra.ShellCompDirectiveNoFileComp
		})
	}
}

const (
	// faultCode is the annotation with the exit code of errors, codesOfVerb the one with the meaning of a verb's
	// codes.
	faultCode   = "fault"
	codesOfVerb = "codes"
)

// CommandLineError marks an error as one in the command line: a line that refers to the help follows it.
func CommandLineError(err error) error { return commandLineError{err} }

// ExitCode is the error of a verb whose exit code is part of its result: no message is printed.
type ExitCode int

// Error implements error.
func (c ExitCode) Error() string { return "exit code " + strconv.Itoa(int(c)) }

// codeOf returns the exit code of an error of a command.
func codeOf(command *cobra.Command) int {
	if code, err := strconv.Atoi(command.Annotations[faultCode]); err == nil {
		return code
	}
	return 1
}

// commandLineError is an error in the command line, for which the help is useful.
type commandLineError struct{ error }

func commandLine(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, arguments []string) error {
		if err := check(cmd, arguments); err != nil {
			return commandLineError{err}
		}
		return nil
	}
}

// root returns the command with all of its verbs. started is called with the logger once there is one.
func (c *Command) root(stdout io.Writer, started func(logr.Logger)) *cobra.Command {
	root := &cobra.Command{
		Use: c.Name + " --config FILE [flags]", Short: c.Short, Long: c.Long, Args: commandLine(noArguments),
		SilenceErrors: true, SilenceUsage: true, DisableFlagsInUseLine: true, SuggestionsMinimumDistance: 2,
	}
	if c.Prepare != nil {
		c.addRun(root, stdout, started)
	} else {
		root.Use, root.Annotations = strings.ReplaceAll(c.Name, " ", "-")+" COMMAND", map[string]string{cobra.CommandDisplayNameAnnotation: c.Name, faultCode: "2"}
		root.RunE = func(cmd *cobra.Command, _ []string) error {
			_, err := io.WriteString(stdout, c.page(cmd).text())
			return err
		}
	}
	for _, s := range c.Subcommands {
		root.AddCommand(s.command(stdout))
	}
	man, versionOf := c.manPages(root), c.versionVerb()
	ofMan := man.command(stdout)
	ofMan.Hidden = c.Prepare == nil
	root.AddCommand(ofMan, versionOf.command(stdout))
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return commandLineError{err} })
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) { _, _ = io.WriteString(stdout, c.page(cmd).text()) })
	return root
}

// addRun makes the command itself runnable.
func (c *Command) addRun(root *cobra.Command, stdout io.Writer, started func(logr.Logger)) {
	var wanted versionFlag
	c.Flags(root.Flags())
	root.Flags().Var(&wanted, "version", "print the version and exit, with raw all of it; a value that starts with v overrides it")
	root.Flags().Lookup("version").NoOptDefVal = "true"
	root.RunE = func(cmd *cobra.Command, _ []string) error {
		if wanted.print(c.Name, stdout) {
			return nil
		}
		log, run, err := c.Prepare(cmd.Flags())
		if err != nil {
			return err
		}
		started(log)
		log.Info("Starting "+c.Name, "version", version.Get().GitVersion)
		logFlags(cmd.Flags(), log)
		return run()
	}
}

// Execute runs a command and returns its exit code (CLI-1 … CLI-7): 0 for a regular end, 1 otherwise, unless a verb
// has other codes. An error is printed once: on stderr, or in the log once there is one.
func Execute(c Command, arguments []string, stdout, stderr io.Writer) int {
	stdout, stderr = plaintext.NewWriter(stdout), plaintext.NewWriter(stderr)
	var logger *logr.Logger
	root := c.root(stdout, func(log logr.Logger) { logger = &log })
	root.SetArgs(arguments)
	root.SetOut(stdout)
	root.SetErr(stderr)
	command, err := root.ExecuteC()
	var wrongLine commandLineError
	var answer ExitCode
	var faults *problems
	switch {
	case err == nil:
		return 0
	case errors.As(err, &answer):
		return int(answer)
	case logger != nil:
		logger.Error(err, "Ending after an error")
	case errors.As(err, &wrongLine):
		_, _ = fmt.Fprintf(stderr, "%s\nSee '%s --help'\n", strings.Join(complaints(err), "\n"), command.CommandPath())
	default:
		_, _ = fmt.Fprintln(stderr, strings.Join(complaints(err), "\n"))
	}
	if errors.As(err, &faults) {
		return faults.code
	}
	return codeOf(command)
}

// logFlags logs a line for each flag (CLI-7), except for deprecated ones that are not set.
func logFlags(set *pflag.FlagSet, log logr.Logger) {
	set.VisitAll(func(f *pflag.Flag) {
		if f.Changed || !isDeprecated(f) {
			log.Info(fmt.Sprintf("FLAG: --%s=%s", f.Name, f.Value))
		}
	})
}

// complaints returns the text of an error, with one line for each problem.
func complaints(err error) []string {
	var faults *problems
	if errors.As(err, &faults) {
		return faults.lines
	}
	var all utilerrors.Aggregate
	if !errors.As(err, &all) {
		return []string{"Error: " + err.Error()}
	}
	var lines []string
	context := strings.TrimSuffix(err.Error(), all.Error())
	for _, single := range utilerrors.Flatten(all).Errors() {
		lines = append(lines, "Error: "+context+single.Error())
	}
	return lines
}

// Stderr returns the writer for everything that does not go through the writer of a verb, such as logs.
func Stderr() io.Writer { return plaintext.NewWriter(os.Stderr) }

// Main runs a command with the arguments and streams of the process, and exits.
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

// print prints the version if the flag requests it (CLI-2).
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
