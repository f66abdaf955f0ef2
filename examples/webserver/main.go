// Command webserver is the container of examples/pods/web.yaml: a web server that is ready when it
// answers, so that the example needs nothing that may be missing on the machine. make run builds it
// as bin/example-server.
package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	address := flag.String("address", "127.0.0.1:18080", "where to listen")
	flag.Parse()
	if err := serve(*address); err != nil {
		fmt.Fprintln(os.Stderr, "example-server:", err)
		os.Exit(1)
	}
}

// serve answers until SIGTERM.
func serve(address string) error {
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "hello from process %d\n", os.Getpid())
	})
	server := &http.Server{Addr: address, Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	closed := make(chan error, 1)
	go func() {
		<-ctx.Done()
		closed <- server.Close()
	}()
	fmt.Println("listening on", address)
	if err := server.ListenAndServe(); ctx.Err() == nil {
		return err
	}
	return <-closed
}
