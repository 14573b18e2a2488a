package debug

import (
	"strings"

	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
	"github.com/espalier-project/espalier/internal/seedauthorizer/rules"
)

const (
	chainWidth  = 230
	chainGap    = 90
	chainTop    = 22
	chainMargin = 10
	// chainLabel is the number of letters that fit into a box of a chain.
	chainLabel = 28
)

// chain is a path as a picture: vertices in a row, from the object to the seed, and the edges between them.
type chain struct {
	Width, Height int
	Boxes         []box
	Edges         []chainEdge
	// Links are the edges that are missing, of a candidate.
	Links []rules.Link
}

type chainEdge struct {
	Path string
	// Missing is set if the edge is missing; Rule would make it.
	Missing bool
	Rule    string
	X, Y    int
}

// draws draws a path; links of it are drawn as missing.
func draws(path []string, links []rules.Link) *chain {
	c := &chain{Width: len(path)*(chainWidth+chainGap) - chainGap + 2*chainMargin, Height: chainTop + boxHeight + chainMargin, Links: links}
	middle := chainTop + boxHeight/2
	for i, text := range path {
		x := chainMargin + i*(chainWidth+chainGap)
		b := box{X: x, Y: chainTop, Width: chainWidth, Height: boxHeight, Self: i == 0}
		if v, known := vertexNamed(text); known {
			b.reference, b.Label = referenceTo(v), label(v, chainLabel)
		} else {
			b.Label = text
		}
		b.New = strings.HasSuffix(text, relation.NewName)
		c.Boxes = append(c.Boxes, b)
		if i == 0 {
			continue
		}
		e := chainEdge{Path: curve(x-chainGap, middle, x, middle, false).Path, X: x - chainGap/2, Y: middle - 8}
		for j := range links {
			if links[j].From == path[i-1] && links[j].To == text {
				e.Missing, e.Rule = true, links[j].Rule
			}
		}
		c.Edges = append(c.Edges, e)
	}
	return c
}

// chains draws what an explanation says: the path, or one row for each candidate.
func chains(e *rules.Explanation) (path *chain, candidates []*chain) {
	if len(e.Path) > 0 {
		path = draws(e.Path, nil)
	}
	for _, c := range e.Candidates {
		candidates = append(candidates, draws(c.Path, c.Links))
	}
	return path, candidates
}
