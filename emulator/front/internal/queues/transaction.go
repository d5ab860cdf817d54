package queues

import (
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// checkRequest refuses what a receive or renewal cannot be: anything but a strong, single-use read. It returns the
// read's options, which may be nil.
func checkRequest(req *spannerpb.ExecuteSqlRequest, function string) (*spannerpb.TransactionOptions_ReadOnly, error) {
	refuse := func(what string) (*spannerpb.TransactionOptions_ReadOnly, error) {
		return nil, status.Errorf(codes.InvalidArgument, "%s can be called only in a single-use, strong, read-only transaction; this is %s.", function, what)
	}
	if len(req.GetPartitionToken()) > 0 {
		return refuse("a partition of a query")
	}
	var options *spannerpb.TransactionOptions
	switch s := req.GetTransaction().GetSelector().(type) {
	case nil:
		return nil, nil // the default is a single-use strong read
	case *spannerpb.TransactionSelector_SingleUse:
		options = s.SingleUse
	case *spannerpb.TransactionSelector_Begin:
		return refuse("the beginning of a longer transaction")
	case *spannerpb.TransactionSelector_Id:
		return refuse("a longer transaction")
	}
	switch mode := options.GetMode().(type) {
	case nil:
		return nil, nil
	case *spannerpb.TransactionOptions_ReadOnly_:
		switch bound := mode.ReadOnly.GetTimestampBound().(type) {
		case nil:
			return mode.ReadOnly, nil
		case *spannerpb.TransactionOptions_ReadOnly_Strong:
			if bound.Strong {
				return mode.ReadOnly, nil
			}
		}
		return refuse("a stale read")
	case *spannerpb.TransactionOptions_PartitionedDml_:
		return refuse("partitioned DML")
	}
	return refuse("a read-write transaction")
}

// metadataFor adds to a result's columns what the read asked for.
func (q *Queues) metadataFor(columns *spannerpb.StructType, read *spannerpb.TransactionOptions_ReadOnly) *spannerpb.ResultSetMetadata {
	m := &spannerpb.ResultSetMetadata{RowType: columns}
	if read.GetReturnReadTimestamp() {
		m.Transaction = &spannerpb.Transaction{ReadTimestamp: timestamppb.New(q.now())}
	}
	return m
}
