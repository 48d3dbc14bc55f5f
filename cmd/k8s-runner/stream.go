package main

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
)

// streaming makes the errors of streams readable, as unary does with those of calls.
// No time bounds a stream.
func streaming(to endpoint) grpc.StreamClientInterceptor {
	return func(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		s, err := open(ctx, desc, conn, method, opts...)
		if err != nil {
			return nil, &callError{status: status.Convert(err), to: to}
		}
		return &readable{ClientStream: s, to: to}, nil
	}
}

type readable struct {
	grpc.ClientStream
	to endpoint
}

func (r *readable) SendMsg(m any) error { return r.explain(r.ClientStream.SendMsg(m)) }

func (r *readable) RecvMsg(m any) error { return r.explain(r.ClientStream.RecvMsg(m)) }

// explain leaves io.EOF as it is, which is no failure.
func (r *readable) explain(err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	header, _ := r.Header() // the stream is at its end: it does not wait
	return &callError{status: status.Convert(err), to: r.to, header: header}
}
