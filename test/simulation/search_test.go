package simulation

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"pgregory.net/rapid"

	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

var minutes = flag.Float64("simulate.minutes", 0, "how long TestSearch searches")

var (
	anyStep  = rapid.Custom(drawStep)
	anyFault = rapid.Custom(drawFault)
)

// lineage names a scenario: a seed, and the changes that were made to what it draws, as in 12/7/3. The letter h before the seed has it draw
// holds, too, as in h12/7/3, and the letter e faults of the store.
type lineage string

// withHolds begins the names of scenarios with holds, withStoreFaults those with faults of the store.
const withHolds, withStoreFaults = "h", "e"

func (l lineage) changed(by int) lineage { return lineage(fmt.Sprintf("%s/%d", l, by)) }

// scenario draws what the seed draws, and makes the changes.
func (l lineage) scenario(generator *rapid.Generator[*Scenario]) (*Scenario, error) {
	var s *Scenario
	seed, held := strings.CutPrefix(string(l), withHolds)
	if held {
		generator = holdsGenerator
	}
	if rest, faulty := strings.CutPrefix(seed, withStoreFaults); faulty {
		seed, generator = rest, storeFaultsGenerator
	}
	for i, text := range strings.Split(seed, "/") {
		number, err := strconv.Atoi(text)
		if err != nil {
			return nil, fmt.Errorf("%q is no seed: %w", l, err)
		}
		if i == 0 {
			s = generator.Example(number)
		} else {
			s.change(number)
		}
	}
	return s, nil
}

// change makes a small change, which a number stands for.
func (s *Scenario) change(number int) {
	at := func(length int) int { return number / 7 % length }
	switch kind := number % 7; {
	case kind == 0 || len(s.Steps) == 0:
		s.Steps = slices.Insert(s.Steps, at(len(s.Steps)+1), anyStep.Example(number))
	case kind == 1:
		s.Steps[at(len(s.Steps))].Wait = waits[number/91%len(waits)]
	case kind == 2:
		s.Faults = append(s.Faults, anyFault.Example(number))
	case kind == 3:
		s.Seed += uint64(number)
	case kind == 4:
		s.Steps = append(s.Steps, s.Steps[at(len(s.Steps))])
	case kind == 5:
		step := &s.Steps[at(len(s.Steps))]
		step.A, step.B = number/91%9, number/819%9
	default:
		i := at(len(s.Steps))
		s.Steps = slices.Delete(s.Steps, i, i+1)
	}
	s.Classes = s.Classes || slices.ContainsFunc(s.Steps, func(step Step) bool { return step.Do == "class" })
}

// TestSearch looks for scenarios that meet what none has met so far: it draws new ones, and changes those that did. It ends after some minutes.
func TestSearch(t *testing.T) {
	if *minutes == 0 {
		t.Skip("make simulate MINUTES= runs it")
	}
	begin, told := time.Now(), time.Now()
	end := begin.Add(time.Duration(*minutes * float64(time.Minute)))
	chance := rand.New(rand.NewPCG(uint64(*first), 0))
	met, kept, excused := coverage{}, []lineage{}, excuses{}
	collect := alike(t, generator, Run)
	runs, findings := 0, 0
	for ; time.Now().Before(end); runs++ {
		if runs%collectEvery == 0 {
			collect()
		}
		name := lineage(strconv.Itoa(*first + runs))
		switch runs % 4 {
		case 1, 2:
			name = withHolds + name
		case 3:
			name = withStoreFaults + name
		}
		if len(kept) > 0 && chance.IntN(2) == 0 {
			name = kept[chance.IntN(len(kept))].changed(chance.IntN(1 << 20))
		}
		result := runLineage(t, name)
		excused.add(result.Excuses)
		if met.merge(result.met) {
			kept = append(kept, name)
		}
		if len(result.Violations) > 0 {
			findings++
			t.Errorf("run %d, seed %s: %s", runs+1, name, result.Violations[0])
		}
		if time.Since(told) > time.Minute {
			told = time.Now()
			fmt.Printf("from seed %d: %v, %d runs, %d with findings, %d pairs met, %d scenarios kept\n", *first, time.Since(begin).Round(time.Second), runs+1, findings, len(met), len(kept))
		}
	}
	t.Logf("%s", excused.String())
	t.Logf("from seed %d: %d runs in %v, %d with findings, %d pairs met, %d scenarios kept", *first, runs, time.Since(begin).Round(time.Second), findings, len(met), len(kept))
}

func runLineage(t *testing.T, name lineage) Result {
	scenario, err := name.scenario(generator)
	must.Succeed(t, err)
	return Run(t, scenario, logr.Discard())
}

// A scenario follows from its name alone, and each kind of change changes something.
func TestLineage(t *testing.T) {
	plain, err := lineage("1").scenario(generator)
	must.Succeed(t, err)
	for number := range 7 {
		name := lineage("1").changed(7*11 + 91*3 + 819 + number)
		one, err := name.scenario(generator)
		must.Succeed(t, err)
		another, err := name.scenario(generator)
		expect.True(t, err == nil && one.String() == another.String(), "%s: not the same twice, %v", name, err)
		expect.True(t, one.String() != plain.String(), "%s: nothing has changed", name)
	}
	for _, name := range []lineage{"", "x", "1/", "1/x"} {
		expect.Error(t, expect.ErrorOf(name.scenario(generator)), "%q names a scenario", name)
	}
}
