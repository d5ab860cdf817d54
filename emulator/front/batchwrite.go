package front

import (
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// batchWrite commits each group by itself, in the order given, and says at once what became of it. The emulator has
// no such RPC.
func (s *Server) batchWrite(req *spannerpb.BatchWriteRequest, out grpc.ServerStream) error {
	ctx := out.Context()
	sess, err := s.session(ctx, req.GetSession())
	if err != nil {
		return err
	}
	if len(req.GetMutationGroups()) == 0 {
		return status.Error(codes.InvalidArgument, "No value provided for required field: BatchWriteRequest.mutation_groups")
	}
	for i, g := range req.GetMutationGroups() {
		resp, err := s.commitSingleUse(ctx, sess, &spannerpb.CommitRequest{
			Session: req.GetSession(),
			Transaction: &spannerpb.CommitRequest_SingleUseTransaction{SingleUseTransaction: &spannerpb.TransactionOptions{
				Mode:                        &spannerpb.TransactionOptions_ReadWrite_{ReadWrite: new(spannerpb.TransactionOptions_ReadWrite)},
				ExcludeTxnFromChangeStreams: req.GetExcludeTxnFromChangeStreams(),
			}},
			Mutations:      g.GetMutations(),
			RequestOptions: req.GetRequestOptions(),
		})
		if ctx.Err() != nil {
			return status.FromContextError(ctx.Err()).Err()
		}
		if err := out.SendMsg(&spannerpb.BatchWriteResponse{
			Indexes:         []int32{int32(i)},
			Status:          groupStatus(err),
			CommitTimestamp: resp.GetCommitTimestamp(),
		}); err != nil {
			return err
		}
	}
	return nil
}

// groupStatus is the status of a group that ended with err. It is there also for OK: clients read its code unasked.
func groupStatus(err error) *rpcstatus.Status {
	if err == nil {
		return &rpcstatus.Status{}
	}
	return status.Convert(err).Proto()
}
