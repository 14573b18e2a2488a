package authenticationconfig

import (
	"slices"

	"k8s.io/apiserver/pkg/apis/apiserver"
	authenticationcel "k8s.io/apiserver/pkg/authentication/cel"

	"github.com/espalier-project/espalier/internal/webhook/configref"
)

// bounded is a compiler of expressions within the limits of a check.
type bounded struct {
	compiler    authenticationcel.Compiler
	compilation *configref.Compilation
}

// CompileClaimsExpression implements authenticationcel.Compiler.
func (b bounded) CompileClaimsExpression(e authenticationcel.ExpressionAccessor) (authenticationcel.CompilationResult, error) {
	return configref.Compile(b.compilation, func() (authenticationcel.CompilationResult, error) { return b.compiler.CompileClaimsExpression(e) })
}

// CompileUserExpression implements authenticationcel.Compiler.
func (b bounded) CompileUserExpression(e authenticationcel.ExpressionAccessor) (authenticationcel.CompilationResult, error) {
	return configref.Compile(b.compilation, func() (authenticationcel.CompilationResult, error) { return b.compiler.CompileUserExpression(e) })
}

func expressionsOf(configuration *apiserver.AuthenticationConfiguration) (all []string) {
	add := func(expression string) {
		if expression != "" {
			all = append(all, expression)
		}
	}
	for i := range configuration.JWT {
		jwt := &configuration.JWT[i]
		for _, rule := range jwt.ClaimValidationRules {
			add(rule.Expression)
		}
		add(jwt.ClaimMappings.Username.Expression)
		add(jwt.ClaimMappings.Groups.Expression)
		add(jwt.ClaimMappings.UID.Expression)
		for _, extra := range jwt.ClaimMappings.Extra {
			add(extra.ValueExpression)
		}
		for _, rule := range jwt.UserValidationRules {
			add(rule.Expression)
		}
	}
	return all
}

// shownIssuers is the number of disallowed issuers in a message: each of up to 64 errors lists all issuers that are
// passed to the validation.
const shownIssuers = 100

// shown returns the disallowed issuers, and if there are many, only those in the configuration.
func shown(disallowed []string, configuration *apiserver.AuthenticationConfiguration) []string {
	if len(disallowed) <= shownIssuers {
		return disallowed
	}
	has := map[string]bool{}
	for i := range configuration.JWT {
		has[configuration.JWT[i].Issuer.URL] = true
	}
	return slices.DeleteFunc(slices.Clone(disallowed), func(issuer string) bool { return !has[issuer] })
}
