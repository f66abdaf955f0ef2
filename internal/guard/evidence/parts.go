package evidence

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strconv"

	"github.com/statusd/statusd/internal/hostproc"
)

// Goroutines is the dump of the kubelet's goroutines, which the kubelet's server returns to authorized
// clients. A kubelet that does not answer cannot be dumped: SIGQUIT would end it.
func Goroutines(server string, client *http.Client) Part {
	return Part{"goroutines.txt", func(ctx context.Context, w io.Writer) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, server+"/debug/pprof/goroutine?debug=2", nil)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("the kubelet says %s", response.Status)
		}
		_, err = io.Copy(w, response.Body)
		return err
	}}
}

// Journal are the last lines that a unit has logged.
func Journal(unit string, lines int) Part {
	return Part{unit + ".log", func(ctx context.Context, w io.Writer) error {
		cmd := exec.CommandContext(ctx, "journalctl", "--unit", unit, "--lines", strconv.Itoa(lines), "--no-pager", "--output", "short-iso-precise")
		cmd.Stdout = w
		return cmd.Run()
	}}
}

// Tail are the last bytes of a file of the host, whose root is mounted at root.
func Tail(name, root, path string, size int64) Part {
	return Part{name, func(_ context.Context, w io.Writer) error {
		file, err := hostproc.Open(root, path)
		if err != nil {
			return err
		}
		defer file.Close()
		info, err := file.Stat()
		if err != nil {
			return err
		}
		if _, err := file.Seek(max(0, info.Size()-size), io.SeekStart); err != nil {
			return err
		}
		_, err = io.Copy(w, io.LimitReader(file, size))
		return err
	}}
}
