package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

// newExampleServer is for examples/pods, and no part of the command's promises.
func newExampleServer() *cobra.Command {
	cmd := &cobra.Command{Use: "example-server", Hidden: true, Args: usage(cobra.NoArgs)}
	address := cmd.Flags().String("address", "127.0.0.1:18080", "where to listen")
	cmd.RunE = func(*cobra.Command, []string) error { return exampleServer(*address) }
	return cmd
}

// exampleServer is the web server of examples/pods, so that they need nothing that might
// be missing on the machine.
func exampleServer(address string) error {
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "hello from process %d\n", os.Getpid())
	})
	server := &http.Server{Addr: address, Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	closed := make(chan error, 1)
	go func() {
		<-ctx.Done()
		closed <- server.Close()
	}()
	fmt.Println("listening on", address)
	if err := server.ListenAndServe(); ctx.Err() == nil {
		return fmt.Errorf("example server: %w", err)
	}
	return <-closed
}
