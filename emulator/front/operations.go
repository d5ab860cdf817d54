package front

import (
	"context"
	"strings"

	"cloud.google.com/go/longrunning/autogen/longrunningpb"
)

func (s *Server) getOperation(ctx context.Context, req *longrunningpb.GetOperationRequest) (*longrunningpb.Operation, error) {
	if op := s.declared.whole(req.GetName()); op != nil {
		return op, nil
	}
	op, err := longrunningpb.NewOperationsClient(s.conn).GetOperation(ctx, req)
	if err != nil {
		return nil, err
	}
	return s.declared.restore(op), nil
}

// listOperations puts the operations that the emulator does not know behind the last one that it does.
func (s *Server) listOperations(ctx context.Context, req *longrunningpb.ListOperationsRequest) (*longrunningpb.ListOperationsResponse, error) {
	list, err := longrunningpb.NewOperationsClient(s.conn).ListOperations(ctx, req)
	if err != nil {
		return nil, err
	}
	for i, op := range list.GetOperations() {
		list.Operations[i] = s.declared.restore(op)
	}
	if list.GetNextPageToken() == "" {
		list.Operations = append(list.Operations, s.declared.wholeBelow(strings.TrimSuffix(req.GetName(), "/")+"/")...)
	}
	return list, nil
}
