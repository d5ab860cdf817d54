package emulator

import (
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// ClientOptions returns what makes any of Google's Spanner clients, data and admin, talk to addr: by endpoint, without
// credentials, in plain text. They hold whatever SPANNER_EMULATOR_HOST says. The data client also wants
// spanner.ClientConfig.DisableNativeMetrics where that variable is not set, or it looks for a place to export to.
func ClientOptions(addr string) []option.ClientOption {
	return []option.ClientOption{
		option.WithEndpoint("passthrough:///" + addr),
		option.WithoutAuthentication(),
		option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())),
	}
}

// ClientOptions returns the options for a client of this emulator, through the front where there is one.
func (e *Emulator) ClientOptions() []option.ClientOption { return ClientOptions(e.Addr()) }
