package main

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// server is an HTTP server on a port of its own.
type server struct {
	url    string
	http   *http.Server
	served sync.WaitGroup
}

func serve(h http.Handler, log *slog.Logger) (*server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &server{url: "http://" + l.Addr().String(), http: &http.Server{
		Handler: h, ReadHeaderTimeout: 10 * time.Second, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}}
	s.served.Go(func() { _ = s.http.Serve(l) }) // it returns when the server is shut down
	return s, nil
}

// stop returns when all handlers have returned.
func (s *server) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	err := s.http.Shutdown(ctx)
	s.served.Wait()
	return err
}

// newHTTPClient makes a client with connections of its own.
func newHTTPClient() (*http.Client, func()) {
	t := &http.Transport{MaxIdleConnsPerHost: 64}
	return &http.Client{Transport: t}, t.CloseIdleConnections
}
