package programpages

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/statusd/statusd/internal/wake"
)

// every is how often pages are unmapped. To map those in use again takes less than a millisecond.
const every = 30 * time.Second

// Keep unmaps the pages of this program from time to time, until ctx ends. A kernel that does not allow it is left alone.
func Keep(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	wake.Every(ctx, every, func() {
		if Drop() != nil {
			cancel()
		}
	})
}

// Drop unmaps the pages of this program.
func Drop() error {
	file, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return err
	}
	return drop(file)
}

// drop unmaps the pages of a file that are mapped and as they are in the file.
func drop(file string) error {
	smaps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return err
	}
	defer smaps.Close()
	found, err := unchanged(smaps, file)
	if err != nil {
		return err
	}
	var errs []error
	for _, m := range found {
		if _, _, code := unix.Syscall(unix.SYS_MADVISE, m.start, m.end-m.start, unix.MADV_DONTNEED); code != 0 {
			errs = append(errs, fmt.Errorf("madvise %x-%x: %w", m.start, m.end, code))
		}
	}
	return errors.Join(errs...)
}

// mapping is a range of addresses.
type mapping struct{ start, end uintptr }

// unchanged are the mappings of a file that are not writable and have no page of their own. Pages of their own, as those that the dynamic linker or a debugger
// has changed, would be lost.
func unchanged(smaps io.Reader, file string) ([]mapping, error) {
	var found []mapping
	var current mapping
	wanted := false
	lines := bufio.NewScanner(smaps)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 {
			continue
		}
		if name, isDetail := strings.CutSuffix(fields[0], ":"); isDetail {
			if name == "Anonymous" && wanted && len(fields) > 1 && fields[1] == "0" {
				found = append(found, current)
			}
			continue
		}
		m, err := parse(fields[0])
		if err != nil {
			return nil, err
		}
		// ADDRESSES PERMISSIONS OFFSET DEVICE INODE PATH, of which the last may have spaces.
		current, wanted = m, len(fields) >= 6 && !strings.Contains(fields[1], "w") && strings.HasSuffix(fields[1], "p") && strings.HasSuffix(lines.Text(), " "+file)
	}
	return found, lines.Err()
}

func parse(addresses string) (m mapping, err error) {
	first, last, _ := strings.Cut(addresses, "-")
	start, startErr := strconv.ParseUint(first, 16, strconv.IntSize)
	end, endErr := strconv.ParseUint(last, 16, strconv.IntSize)
	if err := errors.Join(startErr, endErr); err != nil {
		return m, fmt.Errorf("smaps: addresses %q: %w", addresses, err)
	}
	return mapping{uintptr(start), uintptr(end)}, nil
}
