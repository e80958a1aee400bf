//go:build !compat

package schema_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/schema/schematest"
)

func TestListeningEndsAlsoWhileTheServerOwesAnAnswer(t *testing.T) {
	address, asked := deaf(t, schematest.URL(t, "postgres"), "LISTEN")
	db := open(t, address)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- db.Listen(ctx, func() {}) }()
	<-asked
	cancel()
	require.NoError(t, <-ended)
}

// deaf returns an address that leads to the server and swallows what a client says from the word on.
func deaf(t *testing.T, address, word string) (through string, swallowed <-chan struct{}) {
	t.Helper()
	u, err := url.Parse(address)
	require.NoError(t, err)
	server := u.Host
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	u.Host = listener.Addr().String()

	heard := make(chan struct{}, 1) // one: only one client says the word
	serve := func(client net.Conn) {
		defer func() { _ = client.Close() }()
		behind, err := net.Dial("tcp", server)
		if err != nil {
			return
		}
		defer func() { _ = behind.Close() }()
		go func() { _, _ = io.Copy(client, behind) }()
		said := make([]byte, 1<<16)
		for silent := false; ; {
			n, err := client.Read(said)
			if err != nil {
				return
			}
			if !silent && bytes.Contains(said[:n], []byte(word)) {
				silent = true
				heard <- struct{}{}
			}
			if !silent {
				_, _ = behind.Write(said[:n])
			}
		}
	}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go serve(client)
		}
	}()
	return u.String(), heard
}
