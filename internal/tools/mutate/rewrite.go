package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// mutant is one small defect. Its number is unique within a package and a run of the tool.
type mutant struct {
	number int
	// file is relative to the root; function is the function with the defect, with its receiver.
	file, function string
	line           int
	// defect describes the change, text is the source that it changes.
	defect, text string
}

// key identifies a mutant without its line, so that a list of accepted survivors stays valid if other lines change.
func (m mutant) key() string { return m.file + " " + m.function + " " + m.defect + " " + m.text }

func (m mutant) String() string {
	return fmt.Sprintf("%s:%d: %s: %s `%s`", m.file, m.line, m.function, m.defect, m.text)
}

// edit inserts text before the source at offset, after skipping remove bytes. Suffixes come before prefixes at the same offset.
type edit struct {
	offset, remove int
	text           string
	suffix         bool
	order          int
}

// rewriter puts all defects of one file behind switches (mutant schemata), so that a package is compiled once for all of them.
type rewriter struct {
	files   *token.FileSet
	info    *types.Info
	source  []byte
	path    string
	wanted  func(line int) bool
	next    *int
	skip    map[string]bool
	mutants []mutant
	edits   []edit
	// failing are the returns that certainly return an error, so that their other results are not used.
	failing map[*ast.ReturnStmt]bool

	function string
}

func (r *rewriter) offset(p token.Pos) int { return r.files.Position(p).Offset }

// add records a defect and returns its number, or false where it is not wanted.
func (r *rewriter) add(node ast.Node, defect string) (int, bool) {
	line := r.files.Position(node.Pos()).Line
	text := strings.Join(strings.Fields(string(r.source[r.offset(node.Pos()):r.offset(node.End())])), " ")
	if len(text) > 80 {
		text = text[:80] + "…"
	}
	m := mutant{*r.next, r.path, r.function, line, defect, text}
	if !r.wanted(line) || r.skip[m.key()] || *r.next >= 1<<16 {
		return 0, false
	}
	*r.next++
	r.mutants = append(r.mutants, m)
	return m.number, true
}

func (r *rewriter) wrap(node ast.Node, before, after string) {
	r.edits = append(r.edits,
		edit{offset: r.offset(node.Pos()), text: before, order: len(r.edits)},
		edit{offset: r.offset(node.End()), text: after, suffix: true, order: -len(r.edits)})
}

// file rewrites all functions of a file.
func (r *rewriter) file(f *ast.File) {
	for _, declaration := range f.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		if !ok || function.Body == nil {
			continue
		}
		r.function = function.Name.Name
		if function.Recv != nil && len(function.Recv.List) == 1 {
			r.function = types.ExprString(function.Recv.List[0].Type) + "." + r.function
		}
		r.walk(function.Body, nil)
	}
}

// walk visits a node before its parts, so that the edits of outer nodes enclose those of inner ones.
func (r *rewriter) walk(node ast.Node, parent ast.Node) {
	if node == nil {
		return
	}
	switch n := node.(type) {
	case *ast.GenDecl:
		if n.Tok == token.CONST {
			return
		}
	case *ast.ArrayType:
		return
	case *ast.CaseClause:
		if _, ok := parent.(*ast.BlockStmt); ok {
			for _, e := range n.List {
				if r.constant(e) == nil {
					r.walk(e, n)
				}
			}
			for _, s := range n.Body {
				r.walk(s, n)
			}
			return
		}
	case *ast.IfStmt:
		r.condition(n.Cond)
		r.returnsOfChecked(n)
	case *ast.ForStmt:
		if n.Post != nil { // A loop without its step never ends; nothing is learnt from that.
			r.walkAll(n, n.Init, n.Cond)
			r.walk(n.Body, n)
			return
		}
	case *ast.ReturnStmt:
		r.returns(n)
	case ast.Stmt:
		r.statement(n, parent)
	case ast.Expr:
		if r.expression(n, parent) {
			return
		}
	}
	ast.Inspect(node, func(child ast.Node) bool {
		if child == nil || child == node {
			return child == node
		}
		r.walk(child, node)
		return false
	})
}

func (r *rewriter) walkAll(parent ast.Node, init ast.Stmt, condition ast.Expr) {
	if init != nil {
		for _, e := range children(init) {
			r.walk(e, init)
		}
	}
	if condition != nil {
		r.walk(condition, parent)
	}
}

func children(node ast.Node) []ast.Node {
	var found []ast.Node
	ast.Inspect(node, func(child ast.Node) bool {
		if child != nil && child != node {
			found = append(found, child)
		}
		return child == node
	})
	return found
}

// condition negates the condition of an if, unless it has an operator that is changed anyway.
func (r *rewriter) condition(e ast.Expr) {
	if b, ok := ast.Unparen(e).(*ast.BinaryExpr); ok && (b.Op == token.EQL || b.Op == token.NEQ) {
		return
	}
	if n, ok := r.add(e, "flip"); ok {
		r.wrap(e, fmt.Sprintf("zzmutate.Flip(%d, ", n), ")")
	}
}

// statement drops calls, assignments and jumps.
func (r *rewriter) statement(s ast.Stmt, parent ast.Node) {
	switch p := parent.(type) {
	case *ast.BlockStmt, *ast.CaseClause, *ast.CommClause:
		if c, ok := p.(*ast.CommClause); ok && c.Comm == s {
			return
		}
	default:
		return // The first part of an if or a for, a labelled statement.
	}
	switch n := s.(type) {
	case *ast.ExprStmt:
		if call, ok := n.X.(*ast.CallExpr); !ok || r.isPanic(call) || r.isLog(call) {
			return
		}
	case *ast.AssignStmt:
		if n.Tok == token.DEFINE || allBlank(n.Lhs) {
			return
		}
	case *ast.BranchStmt:
		if n.Tok != token.CONTINUE && n.Tok != token.BREAK {
			return
		}
	case *ast.IncDecStmt, *ast.DeferStmt:
	default:
		return
	}
	if n, ok := r.add(s, "drop"); ok {
		r.wrap(s, fmt.Sprintf("if zzmutate.Keep(%d) { ", n), " }")
	}
}

func allBlank(list []ast.Expr) bool {
	return !slices.ContainsFunc(list, func(e ast.Expr) bool { i, ok := e.(*ast.Ident); return !ok || i.Name != "_" })
}

func (r *rewriter) isPanic(call *ast.CallExpr) bool {
	i, ok := call.Fun.(*ast.Ident)
	return ok && i.Name == "panic"
}

// isLog is true for log lines: no rule depends on them, and lists of survivors would be full of them.
func (r *rewriter) isLog(call *ast.CallExpr) bool {
	s, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	t := r.info.TypeOf(s.X)
	return t != nil && strings.HasSuffix(t.String(), "logr.Logger")
}

// returnsOfChecked notes the returns of err within "if err != nil".
func (r *rewriter) returnsOfChecked(n *ast.IfStmt) {
	b, ok := ast.Unparen(n.Cond).(*ast.BinaryExpr)
	if !ok || b.Op != token.NEQ || !r.isError(b.X) || types.ExprString(b.Y) != "nil" {
		return
	}
	for _, s := range n.Body.List {
		if returns, ok := s.(*ast.ReturnStmt); ok && len(returns.Results) > 1 &&
			types.ExprString(returns.Results[len(returns.Results)-1]) == types.ExprString(b.X) {
			r.markFailing(returns)
		}
	}
}

func (r *rewriter) markFailing(s *ast.ReturnStmt) {
	if r.failing == nil {
		r.failing = map[*ast.ReturnStmt]bool{}
	}
	r.failing[s] = true
}

func (r *rewriter) isError(e ast.Expr) bool {
	t := r.info.TypeOf(e)
	return t != nil && types.Identical(t, types.Universe.Lookup("error").Type())
}

// makesError is true for calls of fmt.Errorf and errors.New, which never return nil.
func makesError(e ast.Expr) bool {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return false
	}
	name := types.ExprString(call.Fun)
	return name == "fmt.Errorf" || name == "errors.New"
}

// returns swallows the error that a return ends with.
func (r *rewriter) returns(s *ast.ReturnStmt) {
	if len(s.Results) == 0 {
		return
	}
	last := s.Results[len(s.Results)-1]
	if !r.isError(last) {
		return
	}
	if makesError(last) {
		r.markFailing(s)
	}
	if n, ok := r.add(last, "swallow"); ok {
		r.wrap(last, fmt.Sprintf("zzmutate.Swallow(%d, ", n), ")")
	}
}

func (r *rewriter) constant(e ast.Expr) constant.Value { return r.info.Types[e].Value }

// expression changes operators and constants, and reports whether the parts of the expression are done with.
func (r *rewriter) expression(e ast.Expr, parent ast.Node) bool {
	if v := r.constant(e); v != nil {
		r.constantExpression(e, v, parent)
		return true
	}
	if r.isMakeOfMap(e) {
		return true
	}
	b, ok := e.(*ast.BinaryExpr)
	if !ok {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			r.walk(kv.Value, kv)
			return true
		}
		return false
	}
	switch b.Op {
	case token.EQL, token.NEQ:
		if n, ok := r.add(b, "flip"); ok {
			r.wrap(b, fmt.Sprintf("zzmutate.Flip(%d, ", n), ")")
		}
	case token.LSS, token.LEQ, token.GTR, token.GEQ:
		names := map[token.Token]string{token.LSS: "Less", token.LEQ: "LessEqual", token.GTR: "Greater", token.GEQ: "GreaterEqual"}
		r.operator(b, "boundary", names[b.Op], ", ", ")")
	case token.LAND:
		r.operator(b, "and is or", "And", ", func() bool { return (", ") })")
	case token.LOR:
		r.operator(b, "or is and", "Or", ", func() bool { return (", ") })")
	}
	return false
}

func (r *rewriter) operator(b *ast.BinaryExpr, defect, name, between, after string) {
	n, ok := r.add(b, defect)
	if !ok {
		return
	}
	r.wrap(b, fmt.Sprintf("zzmutate.%s(%d, ", name, n), after)
	r.edits = append(r.edits, edit{offset: r.offset(b.OpPos), remove: len(b.Op.String()), text: between, order: len(r.edits)})
}

// constantExpression changes numbers by one and truth values; names of constants, texts and durations stay.
func (r *rewriter) constantExpression(e ast.Expr, v constant.Value, parent ast.Node) {
	if call, ok := parent.(*ast.CallExpr); ok && r.info.Types[call.Fun].IsType() {
		return
	}
	if s, ok := parent.(*ast.ReturnStmt); ok && r.failing[s] {
		return
	}
	t := r.info.TypeOf(e)
	switch v.Kind() {
	case constant.Bool:
		if _, ok := parent.(*ast.BinaryExpr); ok {
			return
		}
		if i, isName := e.(*ast.Ident); isName && (i.Name == "true" || i.Name == "false") && types.Identical(t, types.Typ[types.Bool]) {
			if n, ok := r.add(e, "flip"); ok {
				r.wrap(e, fmt.Sprintf("zzmutate.Flip(%d, ", n), ")")
			}
		}
	case constant.Int:
		basic, ok := t.(*types.Basic)
		if _, isName := e.(*ast.Ident); isName || !ok || basic.Info()&types.IsInteger == 0 || basic.Info()&types.IsUntyped != 0 || shifts(parent) || capacity(e, parent) {
			return
		}
		if n, ok := r.add(e, "off by one"); ok {
			r.wrap(e, fmt.Sprintf("zzmutate.More[%s](%d, ", basic.Name(), n), ")")
		}
	}
}

func shifts(parent ast.Node) bool {
	b, ok := parent.(*ast.BinaryExpr)
	return ok && (b.Op == token.SHL || b.Op == token.SHR)
}

// isMakeOfMap is true for the calls of make for maps, of which the size changes nothing that can be seen.
func (r *rewriter) isMakeOfMap(e ast.Expr) bool {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return false
	}
	i, ok := call.Fun.(*ast.Ident)
	if !ok || i.Name != "make" {
		return false
	}
	_, isMap := r.info.TypeOf(call).Underlying().(*types.Map)
	return isMap
}

// capacity is true for the sizes that make is given: a larger one changes nothing that can be seen.
func capacity(e ast.Expr, parent ast.Node) bool {
	call, ok := parent.(*ast.CallExpr)
	if !ok || len(call.Args) < 2 {
		return false
	}
	i, ok := call.Fun.(*ast.Ident)
	return ok && i.Name == "make" && (len(call.Args) == 3 && call.Args[2] == e || len(call.Args) == 2)
}

// result returns the rewritten source.
func (r *rewriter) result(runtime string, name *ast.Ident) []byte {
	if len(r.mutants) == 0 {
		return nil
	}
	edits := append(slices.Clone(r.edits), edit{offset: r.offset(name.End()), text: "; import zzmutate \"" + runtime + "\"", order: -1})
	slices.SortStableFunc(edits, func(a, b edit) int {
		if a.offset != b.offset {
			return cmp.Compare(a.offset, b.offset)
		}
		if a.suffix != b.suffix {
			if a.suffix {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.order, b.order)
	})
	var out []byte
	last := 0
	for _, e := range edits {
		out = append(out, r.source[last:e.offset]...)
		out = append(out, e.text...)
		last = e.offset + e.remove
	}
	return append(out, r.source[last:]...)
}
