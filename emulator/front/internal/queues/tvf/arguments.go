package tvf

import (
	"fmt"
	"strconv"
	"strings"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/cloudspannerecosystem/memefish/ast"
	"google.golang.org/protobuf/types/known/structpb"
)

// argument is a named argument as it stands in the statement.
type argument struct {
	name  string
	value ast.Expr
}

// readArguments takes names only, but for the one argument of a renewal, which the service's pages write both ways.
func readArguments(f Function, call *ast.TVFCallExpr) ([]argument, error) {
	var args []argument
	if len(call.Args) == 1 && f == Renew {
		if given, ok := call.Args[0].(*ast.ExprArg); ok {
			args = append(args, argument{name: leaseTokens, value: given.Expr})
		}
	}
	if len(call.Args) > len(args) {
		return nil, fmt.Errorf("%s takes named arguments only, such as name => value; found %s", call.Name.SQL(), call.Args[0].SQL())
	}
	for _, a := range call.NamedArgs {
		for _, earlier := range args {
			if strings.EqualFold(earlier.name, a.Name.Name) {
				return nil, fmt.Errorf("%s has the argument %s twice", call.Name.SQL(), a.Name.Name)
			}
		}
		args = append(args, argument{name: a.Name.Name, value: a.Value})
	}
	return args, nil
}

// Params are the query parameters of a request.
type Params struct {
	Values *structpb.Struct
	Types  map[string]*spannerpb.Type
}

// find looks a parameter up; names are equal whatever their case, as in SQL.
func (p Params) find(name string) (*structpb.Value, *spannerpb.Type, error) {
	for key, v := range p.Values.GetFields() {
		if !strings.EqualFold(key, name) {
			continue
		}
		for typed, t := range p.Types {
			if strings.EqualFold(typed, name) {
				return v, t, nil
			}
		}
		return v, nil, nil
	}
	return nil, nil, fmt.Errorf("no value is given for the query parameter @%s", name)
}

// scalar evaluates an argument that is a literal, NULL or a query parameter. Null gives ok = false.
func scalar(name string, want spannerpb.TypeCode, e ast.Expr, params Params) (text string, ok bool, err error) {
	wrong := func() error {
		return fmt.Errorf("%s must be a literal or query parameter of type %s; found %s", name, want, e.SQL())
	}
	switch e := e.(type) {
	case *ast.NullLiteral:
		return "", false, nil
	case *ast.ParenExpr:
		return scalar(name, want, e.Expr, params)
	case *ast.StringLiteral:
		if want != spannerpb.TypeCode_STRING {
			return "", false, wrong()
		}
		return e.Value, true, nil
	case *ast.IntLiteral:
		if want != spannerpb.TypeCode_INT64 {
			return "", false, wrong()
		}
		n, err := strconv.ParseInt(e.Value, 0, 64)
		if err != nil {
			return "", false, fmt.Errorf("%s: %s is not an INT64", name, e.Value)
		}
		return strconv.FormatInt(n, 10), true, nil
	case *ast.UnaryExpr:
		if n, isInt := e.Expr.(*ast.IntLiteral); isInt && e.Op == ast.OpMinus && want == spannerpb.TypeCode_INT64 {
			return "-" + n.Value, true, nil
		}
		return "", false, wrong()
	case *ast.Param:
		v, t, err := params.find(e.Name)
		if err != nil {
			return "", false, err
		}
		if t != nil && t.GetCode() != want {
			return "", false, fmt.Errorf("%s must be %s, but the query parameter @%s is %s", name, want, e.Name, t.GetCode())
		}
		return paramText(name, want, e.Name, v)
	}
	return "", false, wrong()
}

func paramText(name string, want spannerpb.TypeCode, param string, v *structpb.Value) (string, bool, error) {
	switch k := v.GetKind().(type) {
	case *structpb.Value_NullValue, nil:
		return "", false, nil
	case *structpb.Value_StringValue:
		return k.StringValue, true, nil
	}
	return "", false, fmt.Errorf("%s: the query parameter @%s is not a %s", name, param, want)
}
