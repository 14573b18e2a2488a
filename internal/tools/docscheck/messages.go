package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// logsPage is the page that describes what to do about each message of the log.
const logsPage = "docs/operations/logs.md"

// beginnings is the file with the first lines of a start: the contract has names and values in their messages (CLI-7).
const beginnings = "internal/process/command.go"

// ofLibraries are messages of controller-runtime that the page explains.
var ofLibraries = []string{"Reconciler error"}

// message is a constant message of a log line at level error or info.
type message struct{ text, level, place string }

// checkMessages compares the messages of the log in the code with the page about logs: each is constant and on the page, with what to do, and the
// page names no other.
func checkMessages(root string, pages []*page) []error {
	var problems []error
	var found []message
	err := eachFile(root, ".go", func(path, content string) {
		if !logs(path) {
			return
		}
		in, err := messagesOf(path, content)
		found, problems = append(found, in...), append(problems, err)
	})
	problems = append(problems, err)
	documented := map[string]line{}
	i := slices.IndexFunc(pages, func(p *page) bool { return p.path == logsPage })
	if i >= 0 {
		documented = documentedMessages(pages[i])
	}
	known := map[string]bool{}
	for _, m := range found {
		known[m.text] = true
		if _, is := documented[m.text]; !is {
			problems = append(problems, fmt.Errorf("%s: %s says nothing about the message %q at level %s", m.place, logsPage, m.text, m.level))
		}
	}
	for text, l := range documented {
		if !known[text] && !slices.Contains(ofLibraries, text) {
			problems = append(problems, pages[i].problem(l, "no code logs the message %q", text))
		}
	}
	return problems
}

// logs reports whether a file is part of an executable.
func logs(path string) bool {
	return (strings.HasPrefix(path, "internal/") || strings.HasPrefix(path, "cmd/")) && !strings.HasSuffix(path, "_test.go") &&
		!strings.HasPrefix(path, "internal/tools/") && !strings.HasPrefix(path, "internal/gen/")
}

// messagesOf returns the messages that a file logs at error or info: calls of Error(err, message, …) and Info(message, …) of a logger. Lines
// at V(1) are for debugging.
func messagesOf(path, content string) ([]message, error) {
	if !strings.Contains(content, "Info(") && !strings.Contains(content, "Error(") {
		return nil, nil
	}
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, path, content, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var found []message
	var problems []error
	ast.Inspect(parsed, func(n ast.Node) bool {
		call, isCall := n.(*ast.CallExpr)
		if !isCall {
			return true
		}
		place := fmt.Sprintf("%s:%d", path, files.Position(call.Pos()).Line)
		level, argument := logged(call)
		if argument == nil {
			return true
		}
		literal, isLiteral := argument.(*ast.BasicLit)
		if (!isLiteral || literal.Kind != token.STRING) && path == beginnings {
			return true
		}
		if !isLiteral || literal.Kind != token.STRING {
			problems = append(problems, fmt.Errorf("%s: the message of a log line must be constant, with what varies in keys", place))
			return true
		}
		text, err := strconv.Unquote(literal.Value)
		problems = append(problems, err)
		found = append(found, message{text, level, place})
		return true
	})
	return found, errors.Join(problems...)
}

// logged returns the level and the message of a call that logs at error or info, nil for any other call.
func logged(call *ast.CallExpr) (level string, argument ast.Expr) {
	method, isMethod := call.Fun.(*ast.SelectorExpr)
	if !isMethod || !isLogger(method.X) {
		return "", nil
	}
	switch {
	case method.Sel.Name == "Error" && len(call.Args) >= 2:
		return "error", call.Args[1]
	case method.Sel.Name == "Info" && len(call.Args) >= 1:
		return "info", call.Args[0]
	}
	return "", nil
}

// isLogger recognizes loggers by their names, as log, w.log and p.Log, and by the calls that return them, as
// log.FromContext(ctx).WithValues(…).
func isLogger(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.Ident:
		return x.Name == "log" || x.Name == "logger"
	case *ast.SelectorExpr:
		return x.Sel.Name == "log" || x.Sel.Name == "Log"
	case *ast.CallExpr:
		method, isMethod := x.Fun.(*ast.SelectorExpr)
		if !isMethod {
			return strings.HasPrefix(textOf(x.Fun), "without")
		}
		switch method.Sel.Name {
		case "FromContext":
			return true
		case "WithValues", "WithName":
			return isLogger(method.X)
		}
	}
	return false
}

func textOf(x ast.Expr) string {
	if name, is := x.(*ast.Ident); is {
		return name.Name
	}
	return ""
}

// messageRow is a row of a table of messages: the messages in the first cell, and the meaning or the action after it.
var messageRow = regexp.MustCompile("^\\| (`[^|]*`) \\| [^|]+ \\|$")

// documentedMessages returns the messages in the tables of the page about logs, with their lines.
func documentedMessages(p *page) map[string]line {
	all := map[string]line{}
	inTable := false
	for _, l := range p.lines {
		if !strings.HasPrefix(l.text, "|") {
			inTable = false
		}
		inTable = inTable || strings.HasPrefix(l.text, "| message |")
		match := messageRow.FindStringSubmatch(l.text)
		if !inTable || match == nil {
			continue
		}
		for _, text := range strings.Split(match[1], "`, `") {
			all[strings.Trim(text, "`")] = l
		}
	}
	return all
}
