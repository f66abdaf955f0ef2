//go:build real

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
	utilexec "k8s.io/client-go/util/exec"

	"github.com/statusd/statusd/test/controlplane/controlplanetest"
	"github.com/statusd/statusd/test/freeport"
)

// session runs a script in a pod through the API server, as kubectl exec does. The script says that it began, and goes on
// when a file is there.
type session struct {
	began chan struct{} // closed when the script has written something
	ended chan error
}

type firstWrite struct {
	began chan struct{}
	done  bool
}

func (f *firstWrite) Write(content []byte) (int, error) {
	if !f.done {
		f.done = true
		close(f.began)
	}
	return len(content), nil
}

func execute(ctx context.Context, t *testing.T, server *controlplanetest.Server, pod *v1.Pod, script string) *session {
	t.Helper()
	request := server.Admin().CoreV1().RESTClient().Get().Resource("pods").Namespace(pod.Namespace).Name(pod.Name).SubResource("exec").
		VersionedParams(&v1.PodExecOptions{Container: "main", Command: []string{"/bin/sh", "-c", script}, Stdout: true, Stderr: true}, scheme.ParameterCodec)
	executor, err := remotecommand.NewWebSocketExecutor(server.Process.AdminConfig(), http.MethodGet, request.URL().String())
	if err != nil {
		t.Fatal(err)
	}
	s := &session{began: make(chan struct{}), ended: make(chan error, 1)}
	go func() {
		s.ended <- executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: &firstWrite{began: s.began}, Stderr: io.Discard})
	}()
	select {
	case <-s.began:
	case err := <-s.ended:
		t.Fatalf("the command ended before it began: %v", err)
	}
	return s
}

// Commands of clients and logs that are followed go on through hangups, reloads with another config and renewed credentials, and have their
// own exit code; another address of the server and a stop end them, and the client gets an error: exit code 0 only comes from a command
// that ended with 0.
func TestSessionsOfKubectl_EndWithTheirOwnExitCodeOrAnError(t *testing.T) {
	server := shared.Server(t)
	d := newDaemon(t, "sessions").join(server)
	d.config.Node.Addresses = []string{"127.0.0.1"}
	d.config.Server.TLSCertFile, d.config.Server.TLSPrivateKeyFile = server.ServingCertificate(t, "127.0.0.1") // API servers verify it
	kubeconfig, err := os.ReadFile(d.config.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	d.config.Kubeconfig += ".copy"
	writeFile(t, d.config.Kubeconfig, string(kubeconfig))
	d.start()
	namespace := server.Namespace(t)
	history := follow(t, server.Admin(), namespace)
	release := t.TempDir()
	created := server.CreatePod(t, shellPod(namespace, "shell", "sessions", "while [ ! -e "+release+"/line ]; do sleep 0.1; done; echo a line; exec sleep 100000"))
	history.await("shell", "that it is ready", isReady)
	pod := server.GetPod(t, namespace, created.Name)
	waits := func(name, code string) string {
		return "echo began; while [ ! -e " + release + "/" + name + " ]; do sleep 0.1; done; exit " + code
	}
	good := execute(t.Context(), t, server, pod, waits("good", "0"))
	bad := execute(t.Context(), t, server, pod, waits("bad", "7"))
	logs, err := server.Admin().CoreV1().Pods(namespace).GetLogs("shell", &v1.PodLogOptions{Follow: true}).Stream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer logs.Close()

	for i := range 20 {
		d.signal(syscall.SIGHUP)
		until(t, "the hangup is answered", func() bool { return strings.Count(d.logged(), "config unchanged") > i })
	}
	for i := range 3 {
		d.config.ShutdownTimeout++
		d.configFile()
		d.signal(syscall.SIGHUP)
		until(t, "the reload is over", func() bool { return strings.Count(d.logged(), "msg=starting") > i+1 })
	}
	writeFile(t, d.config.Kubeconfig, string(bytes.Join([][]byte{kubeconfig, []byte("# renewed\n")}, nil)))
	until(t, "the credentials are used", func() bool { return strings.Contains(d.logged(), "using the new ones") })
	writeFile(t, release+"/good", "")
	writeFile(t, release+"/bad", "")
	if err := <-good.ended; err != nil {
		t.Errorf("a command that ended with 0: got %v", err)
	}
	var code utilexec.CodeExitError
	if err := <-bad.ended; !errors.As(err, &code) || code.Code != 7 {
		t.Errorf("a command that ended with 7: got %v", err)
	}

	writeFile(t, release+"/line", "")
	if line, err := bufio.NewReader(logs).ReadString('\n'); line != "a line\n" || err != nil {
		t.Errorf("a log that is followed through reloads: got %q, %v", line, err)
	}

	reloaded := execute(t.Context(), t, server, pod, waits("never", "0"))
	d.config.Server.BindAddress = freeport.Address(t)
	d.configFile()
	d.signal(syscall.SIGHUP)
	if err := <-reloaded.ended; err == nil {
		t.Error("a command that another address of the server has ended ended without an error")
	}
	history.await("shell", "that it is still the same pod", func(_ watch.EventType, pod *v1.Pod) bool { return pod.UID == created.UID })
	var stopped *session
	until(t, "commands can be run again", func() bool {
		_, err := server.Admin().CoreV1().Pods(namespace).GetLogs("shell", &v1.PodLogOptions{}).DoRaw(t.Context())
		return err == nil
	})
	stopped = execute(t.Context(), t, server, pod, waits("never", "0"))
	d.stop()
	if err := <-stopped.ended; err == nil {
		t.Error("a command that a stop has killed ended without an error")
	}
}
