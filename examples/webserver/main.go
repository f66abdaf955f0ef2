// Command webserver is the container of examples/pods/web.yaml: a web server that is ready when it
// answers, so that the example needs nothing that may be missing on the machine. make run builds it
// as bin/example-server. At /data?bytes=N it sends N bytes that are the same each time.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/signal"
	"strconv"
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
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "hello from process %d\n", os.Getpid())
	})
	mux.HandleFunc("/data", data)
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
		return err
	}
	return <-closed
}

// data sends as many bytes as are asked for, without a period that a lost or doubled block could hide in.
func data(w http.ResponseWriter, r *http.Request) {
	bytes, err := strconv.ParseInt(r.FormValue("bytes"), 10, 64)
	if err != nil || bytes < 0 {
		http.Error(w, "bytes: want a number", http.StatusBadRequest)
		return
	}
	// The only error is a client that has gone away.
	_, _ = io.CopyN(w, rand.NewChaCha8([32]byte{}), bytes)
}
