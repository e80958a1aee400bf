package outbox_test

import (
	"io"
	"net"
	"net/url"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// proxy stands between a pool and its Postgres and can be cut. It runs outside of any bubble.
type proxy struct {
	target   string
	listener net.Listener
	serving  sync.WaitGroup

	mu    sync.Mutex
	cut   bool
	conns map[net.Conn]bool
}

// newProxy returns the address that leads through the proxy.
func newProxy(t *testing.T, address string) (*proxy, string) {
	t.Helper()
	u, err := url.Parse(address)
	require.NoError(t, err)
	p := &proxy{target: u.Host, conns: map[net.Conn]bool{}}
	p.listener, err = net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p.serving.Go(p.accept)
	t.Cleanup(func() {
		_ = p.listener.Close()
		p.setCut(true)
		p.serving.Wait()
	})
	u.Host = p.listener.Addr().String()
	return p, u.String()
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.target)
		if err != nil || !p.keep(client, server) {
			_ = client.Close()
			continue
		}
		p.serving.Go(func() { p.copy(client, server) })
		p.serving.Go(func() { p.copy(server, client) })
	}
}

func (p *proxy) keep(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		if p.cut {
			_ = c.Close()
			continue
		}
		p.conns[c] = true
	}
	return !p.cut
}

func (p *proxy) copy(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	_, _ = to.Close(), from.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, to)
	delete(p.conns, from)
}

// setCut breaks all connections and every new one, or lets them through again.
func (p *proxy) setCut(cut bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = cut
	for c := range p.conns {
		if cut {
			_ = c.Close()
		}
	}
}
