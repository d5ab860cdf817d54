package front

import (
	"strings"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/protobuf/proto"

	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/emulator/front/internal/ident"
	"github.com/spanqueue/spanqueue/emulator/front/internal/txn"
)

// call says what a request is about. Without any rule only the database is wanted.
func (s *Server) call(method string, req proto.Message) fault.Call {
	c := fault.Call{Method: method, Database: databaseOf(req), Request: req}
	if s.faults.Empty() {
		return c
	}
	c.SQL = sqlOf(req)
	if r, ok := req.(interface {
		GetRequestOptions() *spannerpb.RequestOptions
	}); ok {
		c.Tag = r.GetRequestOptions().GetTransactionTag()
	}
	if c.Tag == "" {
		if id := transactionID(req); id != nil {
			if rw, _ := ident.Transaction(id); rw != nil {
				c.Tag = s.txns.Tag(*rw)
			}
		}
	}
	return c
}

// databaseOf is the database that a request is about: of its session, or named as such.
func databaseOf(req proto.Message) string {
	if r, ok := req.(interface{ GetSession() string }); ok {
		return ident.DatabaseOf(r.GetSession())
	}
	if r, ok := req.(interface{ GetDatabase() string }); ok {
		return r.GetDatabase()
	}
	if r, ok := req.(interface{ GetName() string }); ok {
		if d := ident.DatabaseOf(r.GetName()); d != "" {
			return d
		}
		return r.GetName()
	}
	if r, ok := req.(interface{ GetParent() string }); ok {
		return r.GetParent()
	}
	return ""
}

// sqlOf is the text of a request's statements.
func sqlOf(req proto.Message) string {
	switch r := req.(type) {
	case interface{ GetSql() string }:
		return r.GetSql()
	case interface{ GetStatements() []string }:
		return strings.Join(r.GetStatements(), ";\n")
	case *spannerpb.ExecuteBatchDmlRequest:
		all := make([]string, 0, len(r.GetStatements()))
		for _, st := range r.GetStatements() {
			all = append(all, st.GetSql())
		}
		return strings.Join(all, ";\n")
	case interface {
		GetCreateStatement() string
		GetExtraStatements() []string
	}:
		return strings.Join(append([]string{r.GetCreateStatement()}, r.GetExtraStatements()...), ";\n")
	}
	return ""
}

// transactionID is the id of the transaction that a request names, or nil.
func transactionID(req proto.Message) []byte {
	switch r := req.(type) {
	case interface{ GetTransactionId() []byte }:
		return r.GetTransactionId()
	case interface {
		GetTransaction() *spannerpb.TransactionSelector
	}:
		return r.GetTransaction().GetId()
	}
	return nil
}

// InReadWrite reports whether the service could abort a call: whether it begins a read-write transaction inline, runs in
// one that was begun, or commits, with a transaction or without. It is for the Match of rules.
func InReadWrite(c fault.Call) bool {
	switch c.Request.(type) {
	case *spannerpb.CommitRequest:
		return true
	case *spannerpb.RollbackRequest:
		return false
	}
	if r, ok := c.Request.(interface {
		GetTransaction() *spannerpb.TransactionSelector
	}); ok && r.GetTransaction().GetBegin().GetReadWrite() != nil {
		return true
	}
	rw, _ := ident.Transaction(transactionID(c.Request))
	return rw != nil
}

// named is the read-write transaction that a request names, or nil.
func (s *Server) named(req proto.Message) *txn.Txn {
	r, ok := req.(interface{ GetSession() string })
	if !ok {
		return nil
	}
	rw, _ := ident.Transaction(transactionID(req))
	if rw == nil {
		return nil
	}
	t, err := s.txns.Find(r.GetSession(), *rw)
	if err != nil {
		return nil
	}
	return t
}
