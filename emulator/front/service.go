package front

import (
	"google.golang.org/grpc"
)

// spannerService are the RPCs of google.spanner.v1 that the front answers. FetchCacheUpdate is not among them: the
// emulator's answer, that it has none, passes through.
var spannerService = grpc.ServiceDesc{
	ServiceName: "google.spanner.v1.Spanner",
	HandlerType: (*any)(nil),
	Streams: []grpc.StreamDesc{
		unary("CreateSession", (*Server).createSession),
		unary("BatchCreateSessions", (*Server).batchCreateSessions),
		unary("GetSession", (*Server).getSession),
		unary("ListSessions", (*Server).listSessions),
		unary("DeleteSession", (*Server).deleteSession),
		unary("BeginTransaction", (*Server).beginTransaction),
		unary("Commit", (*Server).commit),
		unary("Rollback", (*Server).rollback),
		unary("ExecuteSql", (*Server).executeSQL),
		serverStream("ExecuteStreamingSql", (*Server).executeStreamingSQL),
		unary("Read", (*Server).read),
		serverStream("StreamingRead", (*Server).streamingRead),
		unary("ExecuteBatchDml", (*Server).executeBatchDML),
		unary("PartitionQuery", (*Server).partitionQuery),
		unary("PartitionRead", (*Server).partitionRead),
		serverStream("BatchWrite", (*Server).batchWrite),
	},
}
