package tvf

import (
	"fmt"
	"strings"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/cloudspannerecosystem/memefish/ast"
	"google.golang.org/protobuf/types/known/structpb"
)

// leaseTokens is the one argument of RENEWLEASE_<Queue>.
const leaseTokens = "lease_tokens"

// LeaseTokens evaluates the argument of a call of RENEWLEASE_<Queue>. Elements that are NULL are left out: they name
// no lease.
func (s *Statement) LeaseTokens(params Params) ([]string, error) {
	const name = leaseTokens
	var value ast.Expr
	for _, a := range s.arguments {
		if !strings.EqualFold(a.name, name) {
			return nil, fmt.Errorf("%s%s has no argument %s; it has %s", s.Function, s.Queue, a.name, name)
		}
		value = a.value
	}
	for {
		inner, ok := value.(*ast.ParenExpr)
		if !ok {
			break
		}
		value = inner.Expr
	}
	switch e := value.(type) {
	case *ast.ArrayLiteral:
		return literalTokens(name, e, params)
	case *ast.Param:
		return paramTokens(name, e.Name, params)
	case nil:
		return nil, fmt.Errorf("%s%s needs the argument %s", s.Function, s.Queue, name)
	}
	return nil, fmt.Errorf("%s must be an array of strings, or a query parameter that is one; found %s", name, value.SQL())
}

func literalTokens(name string, e *ast.ArrayLiteral, params Params) ([]string, error) {
	if e.Type != nil {
		if t, ok := e.Type.(*ast.SimpleType); !ok || t.Name != ast.StringTypeName {
			return nil, fmt.Errorf("%s must be ARRAY<STRING>; found ARRAY<%s>", name, e.Type.SQL())
		}
	}
	var tokens []string
	for _, v := range e.Values {
		text, ok, err := scalar("an element of "+name, spannerpb.TypeCode_STRING, v, params)
		if err != nil {
			return nil, err
		}
		if ok {
			tokens = append(tokens, text)
		}
	}
	return tokens, nil
}

func paramTokens(name, param string, params Params) ([]string, error) {
	v, t, err := params.find(param)
	if err != nil {
		return nil, err
	}
	if t != nil && (t.GetCode() != spannerpb.TypeCode_ARRAY || t.GetArrayElementType().GetCode() != spannerpb.TypeCode_STRING) {
		return nil, fmt.Errorf("%s must be ARRAY<STRING>, but the query parameter @%s is %s", name, param, t.GetCode())
	}
	if _, null := v.GetKind().(*structpb.Value_NullValue); null {
		return nil, nil
	}
	list, ok := v.GetKind().(*structpb.Value_ListValue)
	if !ok {
		return nil, fmt.Errorf("%s: the query parameter @%s is not an array", name, param)
	}
	var tokens []string
	for _, element := range list.ListValue.GetValues() {
		text, ok, err := paramText(name, spannerpb.TypeCode_STRING, param, element)
		if err != nil {
			return nil, err
		}
		if ok {
			tokens = append(tokens, text)
		}
	}
	return tokens, nil
}
