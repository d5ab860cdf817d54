package main

import (
	"path"
	"strings"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
)

// rpcKind is what an RPC of a worker is counted as.
type rpcKind string

const (
	rpcReceive rpcKind = "receive" // receive streams, and the looks of queue tables
	rpcRenew   rpcKind = "renew"
	rpcSession rpcKind = "sessions"
	rpcClock   rpcKind = "clock"
	rpcCommit  rpcKind = "commit"
	rpcWork    rpcKind = "other"
)

// kindOf says what an RPC counts as.
func kindOf(method string, req any) rpcKind {
	name, sql := path.Base(method), sqlOf(req)
	switch {
	case strings.HasSuffix(name, "Session") || strings.HasSuffix(name, "Sessions"):
		return rpcSession
	case strings.Contains(sql, "FROM RECEIVE_") || looks(req):
		return rpcReceive
	case strings.Contains(sql, "FROM RENEWLEASE_") || strings.HasPrefix(tagOf(req), "renew="):
		return rpcRenew
	case sql == "SELECT CURRENT_TIMESTAMP()":
		return rpcClock
	case name == "Commit":
		return rpcCommit
	}
	return rpcWork
}

// sqlOf is the statement of a request, if it has one.
func sqlOf(req any) string {
	if r, ok := req.(interface{ GetSql() string }); ok {
		return r.GetSql()
	}
	return ""
}

// tagOf is the tag of the transaction that a request is part of.
func tagOf(req any) string {
	if r, ok := req.(interface {
		GetRequestOptions() *spannerpb.RequestOptions
	}); ok {
		return r.GetRequestOptions().GetTransactionTag()
	}
	return ""
}

// isWork says whether a transaction acknowledges messages, by its tag.
func isWork(tag string) bool {
	return strings.HasPrefix(tag, "queue=") || strings.HasPrefix(tag, "defer=")
}

// looks says whether a request reads the index of a queue table, which shows what is due.
func looks(req any) bool {
	read, ok := req.(*spannerpb.ReadRequest)
	return ok && read.GetIndex() != ""
}
