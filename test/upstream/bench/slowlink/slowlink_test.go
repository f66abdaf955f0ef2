package slowlink_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/statusd/statusd/test/upstream/bench/slowlink"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo serves one address that sends back what it gets.
func echo(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				io.Copy(conn, conn)
			}()
		}
	}()
	t.Cleanup(func() {
		listener.Close()
		<-done
	})
	return listener.Addr().String()
}

func TestBytesArriveInOrderAndNotTooEarly(t *testing.T) {
	const delay = 5 * time.Millisecond
	link, err := slowlink.Listen(echo(t), delay)
	if err != nil {
		t.Fatal(err)
	}
	defer link.Close()
	conn, err := net.Dial("tcp", link.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	answers := bufio.NewScanner(conn)
	for i := range 5 {
		begin := time.Now()
		fmt.Fprintf(conn, "line %d\n", i)
		if !answers.Scan() || answers.Text() != fmt.Sprintf("line %d", i) {
			t.Fatalf("echo of line %d: got %q, %v", i, answers.Text(), answers.Err())
		}
		// A lower bound only: a busy machine may take longer, never less.
		if took := time.Since(begin); took < 2*delay {
			t.Errorf("round trip of line %d took %s, want at least twice the delay of %s", i, took, delay)
		}
	}
}

func TestEndOfInputIsPassedOn(t *testing.T) {
	link, err := slowlink.Listen(echo(t), time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	defer link.Close()
	conn, err := net.Dial("tcp", link.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "all")
	conn.(*net.TCPConn).CloseWrite()
	if got, err := io.ReadAll(conn); err != nil || string(got) != "all" {
		t.Errorf("echo until the end: got %q, %v, want %q", got, err, "all")
	}
}

func TestCloseEndsOpenConnections(t *testing.T) {
	link, err := slowlink.Listen(echo(t), time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", link.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "x")
	if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	link.Close()
	if _, err := io.ReadAll(conn); err != nil && !isReset(err) {
		t.Errorf("read after the link was closed: got %v, want the end", err)
	}
}

func isReset(err error) bool {
	_, ok := err.(*net.OpError)
	return ok
}
