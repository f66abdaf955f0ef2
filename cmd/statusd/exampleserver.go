package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/pflag"
)

// exampleServer is the web server of examples/pods, so that they need nothing that might
// be missing on the machine.
func exampleServer(args []string) error {
	flags := pflag.NewFlagSet("statusd example-server", pflag.ContinueOnError)
	address := flags.String("address", "127.0.0.1:18080", "where to listen")
	if err := flags.Parse(args); err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "hello from process %d\n", os.Getpid())
	})
	server := &http.Server{Addr: *address, Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	closed := make(chan error, 1)
	go func() {
		<-ctx.Done()
		closed <- server.Close()
	}()
	fmt.Println("listening on", *address)
	if err := server.ListenAndServe(); ctx.Err() == nil {
		return fmt.Errorf("example server: %w", err)
	}
	return <-closed
}
