// Package passthrough carries RPCs that the front has no opinion on to the emulator and back, as bytes, whatever
// their service: Codec leaves a Frame undecoded, Handler is the grpc.UnknownServiceHandler that moves frames.
//
// Headers, trailers and the status with its details are those of the emulator. The RPC lives as long as the client's:
// when either side ends, so does the other.
package passthrough
