package authorizationconfig

import (
	"k8s.io/apiserver/pkg/apis/apiserver"
	authorizationcel "k8s.io/apiserver/pkg/authorization/cel"

	"github.com/espalier-project/espalier/internal/webhook/configref"
)

// bounded is a compiler of expressions within the limits of a check.
type bounded struct {
	compiler    authorizationcel.Compiler
	compilation *configref.Compilation
}

// CompileCELExpression implements authorizationcel.Compiler.
func (b bounded) CompileCELExpression(e authorizationcel.ExpressionAccessor) (authorizationcel.CompilationResult, error) {
	return configref.Compile(b.compilation, func() (authorizationcel.CompilationResult, error) { return b.compiler.CompileCELExpression(e) })
}

func expressionsOf(configuration *apiserver.AuthorizationConfiguration) (all []string) {
	for i := range configuration.Authorizers {
		if webhook := configuration.Authorizers[i].Webhook; webhook != nil {
			for _, condition := range webhook.MatchConditions {
				all = append(all, condition.Expression)
			}
		}
	}
	return all
}
