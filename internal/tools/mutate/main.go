// mutate puts small defects into packages, one at a time, and prints those that the packages' own tests do not notice.
//
//	mutate [flags] <root of the repository> [packages]
//
// Defects are conditions that are flipped, boundaries moved, "and" and "or" exchanged, statements dropped, numbers
// off by one, and errors swallowed. All defects of a package are compiled once, each behind a switch (go test
// -overlay; nothing on disk changes). For each defect, the tests that reach it are run. Without packages, those with
// changes since -since are tested, and in them only the changed functions. With -tests, only the tests of one other
// package are run, for the defects of all packages together: -run selects tests, and -arguments are passed to them.
// Survivors that accepted.txt explains do not count. With -page the figures are written into the table of a document,
// whose other rows stay. It exits with 1 if more survive than -most allows.
package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/tools/go/packages"
)

//go:embed accepted.txt
var acceptedText string

type options struct {
	root, since string
	lines       bool
	patterns    []string
	sample      int
	seed        uint64
	limit       time.Duration
	perTest     time.Duration
	most        float64
	workers     int
	// tests is the package whose tests are run against the defects, run names some of them, and arguments are for
	// them.
	tests, run string
	arguments  []string
	// each is the time for one package, and page the document whose table gets the figures.
	each time.Duration
	page string
}

// result has the results of the defects of a package, or of several together. defects is the number of all, drawn or
// not.
type result struct {
	name      string
	defects   int
	tally     tally
	survivors []string
}

func main() {
	o := options{}
	flag.StringVar(&o.since, "since", "", "judge the functions that changed since this revision")
	flag.IntVar(&o.sample, "sample", 0, "judge that many defects of each package, drawn by -seed; 0 for all")
	flag.Uint64Var(&o.seed, "seed", 1, "what the sample is drawn by")
	flag.BoolVar(&o.lines, "lines", false, "with -since, judge the changed lines only, in place of the functions around them")
	flag.DurationVar(&o.limit, "limit", 0, "stop after this time, shared by the packages, and print what is known; 0 for no limit")
	flag.DurationVar(&o.perTest, "test-limit", 2*time.Minute, "a test that takes longer than this without a defect judges nothing")
	flag.Float64Var(&o.most, "most", 100, "how many percent may survive")
	flag.IntVar(&o.workers, "workers", runtime.NumCPU(), "how many defects are judged at a time")
	flag.DurationVar(&o.each, "each", 0, "leave a package when its defects have been judged for this time, with what is known; 0 for no limit")
	flag.StringVar(&o.page, "page", "", "the document whose table gets the figures of these packages")
	flag.StringVar(&o.tests, "tests", "", "the folder of the package whose tests judge, as in ./test/simulation; its own for each package if empty")
	flag.StringVar(&o.run, "run", ".", "with -tests: which tests judge")
	arguments := flag.String("arguments", "", "with -tests: their arguments")
	flag.Parse()
	o.arguments = strings.Fields(*arguments)
	if flag.NArg() < 1 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	o.patterns = flag.Args()[1:]
	var err error
	if o.root, err = filepath.Abs(flag.Arg(0)); err == nil {
		err = run(ctx, os.Stdout, o)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// errSurvivors is returned if more defects survive than may.
var errSurvivors = errors.New("too many defects survive")

func run(ctx context.Context, out io.Writer, o options) error {
	if o.limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.limit)
		defer cancel()
	}
	wanted, patterns, err := scope(o)
	if err != nil {
		return err
	}
	if len(patterns) == 0 {
		_, err := fmt.Fprintln(out, "nothing changed")
		return err
	}
	ps, err := load(o.root, patterns)
	if err != nil {
		return err
	}
	results, err := judgeAll(ctx, o, ps, wanted)
	if err != nil {
		return err
	}
	sum, err := report(out, results, ctx.Err() != nil)
	if err != nil {
		return err
	}
	if sum.rate() > o.most {
		return fmt.Errorf("%w: %.1f %% of %d, %.1f %% may", errSurvivors, sum.rate(), sum.all(), o.most)
	}
	return nil
}

// judgeAll tests the defects of one package after the other, or of all together if the tests are those of another
// package.
func judgeAll(ctx context.Context, o options, ps []*packages.Package, wanted func(string, int) bool) ([]result, error) {
	accepted := acceptedSurvivors(acceptedText)
	judged := make([][]*packages.Package, 0, len(ps))
	for _, p := range ps {
		judged = append(judged, []*packages.Package{p})
	}
	if o.tests != "" {
		judged = [][]*packages.Package{ps}
	}
	var results []result
	for i, together := range judged {
		shared, end := share(ctx, len(judged)-i)
		r, err := judgePackages(shared, o, together, wanted, accepted)
		end()
		if err != nil {
			return nil, err
		}
		if r.tally.all()+r.tally[undecided] > 0 {
			results = append(results, r)
			fmt.Fprintf(os.Stderr, "%s (%d of %d)\n", r.tally.row(r.name), i+1, len(judged))
			if o.page == "" {
				continue
			}
			if err := updatePage(filepath.Join(o.root, o.page), results, suitesOf(suitesText), time.Now().UTC()); err != nil {
				return nil, err
			}
		}
	}
	return results, nil
}

// share limits the context to one of n equal parts of the time that is left.
func share(ctx context.Context, n int) (context.Context, context.CancelFunc) {
	end, limited := ctx.Deadline()
	if !limited {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, time.Until(end)/time.Duration(n))
}

// scope returns the lines whose defects are tested, and their packages.
func scope(o options) (func(file string, line int) bool, []string, error) {
	if o.since == "" {
		return func(string, int) bool { return true }, o.patterns, nil
	}
	changed, err := changedLines(o.root, o.since)
	if err != nil {
		return nil, nil, err
	}
	patterns := o.patterns
	if len(patterns) == 0 {
		folders := map[string]bool{}
		for file := range changed {
			folder := filepath.ToSlash(filepath.Dir(file))
			if _, err := os.Stat(filepath.Join(o.root, file)); err == nil && !strings.HasSuffix(file, "_test.go") && judged(folder) {
				folders["./"+folder] = true
			}
		}
		for folder := range folders {
			patterns = append(patterns, folder)
		}
		slices.Sort(patterns)
	}
	return func(file string, line int) bool {
		return slices.ContainsFunc(changed[file], func(lines [2]int) bool { return lines[0] <= line && line <= lines[1] })
	}, patterns, nil
}

// judged reports whether the code of a folder needs own tests that notice defects.
func judged(folder string) bool {
	return strings.HasPrefix(folder, "internal/") && !strings.HasPrefix(folder, "internal/tools") || strings.HasPrefix(folder, "api/")
}

// functionsOf widens the wanted lines to the functions that hold them.
func functionsOf(p *packages.Package, root string, wanted func(string, int) bool) func(string, int) bool {
	spans := map[string][][2]int{}
	for i, f := range p.Syntax {
		relative, err := filepath.Rel(root, p.CompiledGoFiles[i])
		if err != nil {
			continue
		}
		file := filepath.ToSlash(relative)
		for _, d := range f.Decls {
			first, last := p.Fset.Position(d.Pos()).Line, p.Fset.Position(d.End()).Line
			for line := first; line <= last; line++ {
				if wanted(file, line) {
					spans[file] = append(spans[file], [2]int{first, last})
					break
				}
			}
		}
	}
	return func(file string, line int) bool {
		return slices.ContainsFunc(spans[file], func(s [2]int) bool { return s[0] <= line && line <= s[1] })
	}
}

// nameOf returns the path of a package in its module, or the number of packages.
func nameOf(ps []*packages.Package) string {
	if len(ps) > 1 {
		return fmt.Sprintf("%d packages", len(ps))
	}
	return strings.TrimPrefix(ps[0].PkgPath, ps[0].Module.Path+"/")
}

// judgePackages tests the defects of packages, all with the same tests.
func judgePackages(ctx context.Context, o options, ps []*packages.Package, changed func(string, int) bool, accepted map[string]bool) (result, error) {
	r := result{name: nameOf(ps)}
	wanted := changed
	if !o.lines {
		functions := make([]func(string, int) bool, 0, len(ps))
		for _, p := range ps {
			functions = append(functions, functionsOf(p, o.root, changed))
		}
		wanted = func(file string, line int) bool {
			return slices.ContainsFunc(functions, func(holds func(string, int) bool) bool { return holds(file, line) })
		}
	}
	tested := ""
	if o.tests != "" {
		tested = ps[0].Module.Path + "/" + strings.TrimPrefix(filepath.ToSlash(o.tests), "./")
	}
	work, err := os.MkdirTemp("", "espalier-mutate-")
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(work) //nolint:errcheck // it is a temporary folder
	fmt.Fprintf(os.Stderr, "%s: compiling\n", r.name)
	m, err := compile(ctx, o.root, work, ps, tested, wanted)
	switch {
	case errors.Is(err, errNoTests):
		fmt.Fprintf(os.Stderr, "%s has no tests of its own\n", r.name)
		return r, nil
	case ctx.Err() != nil:
		return r, nil
	case err != nil:
		return r, err
	case len(m.mutants) == 0:
		return r, nil
	}
	r.defects = len(m.mutants)
	tests, complete, err := measure(ctx, m, work, o)
	if err != nil {
		if ctx.Err() != nil {
			r.tally[undecided] = len(m.mutants)
			return r, nil
		}
		return r, err
	}
	if o.each > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.each)
		defer cancel()
	}
	drawn := draw(m.mutants, o.sample, o.seed)
	done := 0
	verdicts := judge(ctx, m, tests, complete, drawn, o, ticker(func() {
		done++
		if done%50 == 0 || done == len(drawn) {
			fmt.Fprintf(os.Stderr, "%s: %d of %d defects\n", r.name, done, len(drawn))
		}
	}))
	r.tally, r.survivors = tallyOf(drawn, verdicts, accepted)
	return r, nil
}

// draw returns some of the defects, in their order.
func draw(all []mutant, count int, seed uint64) []mutant {
	if count == 0 || count >= len(all) {
		return all
	}
	chosen := rand.New(rand.NewPCG(seed, 0)).Perm(len(all))[:count]
	slices.Sort(chosen)
	var drawn []mutant
	for _, i := range chosen {
		drawn = append(drawn, all[i])
	}
	return drawn
}
