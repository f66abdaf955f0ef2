// Package clockstep steps the wall clock of one process.
package clockstep

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"syscall"
	"time"
)

// Set makes the wall clock of one process wrong by offset, and leaves its monotonic clock alone,
// as a step of the machine's clock does. Linux has no such clock for a process, so the function by
// which the process reads the clock, in the vDSO, is replaced in its memory.
//
// The process is stopped for a moment by SIGSTOP, and goes on by SIGCONT.
func Set(pid int, offset time.Duration) error {
	if goruntime.GOARCH != "amd64" {
		return errors.New("the clock of a process can be stepped on amd64 only")
	}
	code, err := clockCode(offset)
	if err != nil {
		return err
	}
	proc := filepath.Join("/proc", fmt.Sprint(pid))
	begin, end, err := awaitVDSO(filepath.Join(proc, "maps"))
	if err != nil {
		return err
	}
	memory, err := os.OpenFile(filepath.Join(proc, "mem"), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer memory.Close()
	image := make([]byte, end-begin)
	if _, err := memory.ReadAt(image, int64(begin)); err != nil {
		return err
	}
	function, err := clockFunction(image)
	if err != nil {
		return err
	}
	release, err := stopOutside(pid, begin, end)
	defer release()
	if err != nil {
		return err
	}
	_, err = memory.WriteAt(code, int64(begin+function))
	return err
}

// clockCode asks the kernel and adds the seconds to CLOCK_REALTIME, which is 0:
//
//	mov eax, 228; syscall; test edi, edi; jne out; movabs rcx, SECONDS; add [rsi], rcx; out: ret
func clockCode(offset time.Duration) ([]byte, error) {
	if offset%time.Second != 0 {
		return nil, fmt.Errorf("offset %s: want whole seconds", offset)
	}
	code := []byte{0xb8, 228, 0, 0, 0, 0x0f, 0x05, 0x85, 0xff, 0x75, 0x0d, 0x48, 0xb9}
	code = binary.LittleEndian.AppendUint64(code, uint64(offset/time.Second))
	return append(code, 0x48, 0x01, 0x0e, 0xc3), nil
}

var errNoVDSO = errors.New("no vDSO")

// awaitVDSO is vdso for a process that has just been started: the kernel maps its functions a
// moment after the program counts as executed.
func awaitVDSO(maps string) (begin, end uint64, err error) {
	for range 100 {
		if begin, end, err = vdso(maps); !errors.Is(err, errNoVDSO) {
			break
		}
		time.Sleep(time.Millisecond)
	}
	return begin, end, err
}

// vdso finds where the kernel's functions are in a process.
func vdso(maps string) (begin, end uint64, err error) {
	text, err := os.ReadFile(maps)
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasSuffix(strings.TrimSpace(line), "[vdso]") {
			_, err := fmt.Sscanf(line, "%x-%x", &begin, &end)
			return begin, end, err
		}
	}
	return 0, 0, fmt.Errorf("%s: %w", maps, errNoVDSO)
}

func clockFunction(image []byte) (uint64, error) {
	file, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		return 0, err
	}
	symbols, err := file.DynamicSymbols()
	for _, symbol := range symbols {
		if symbol.Name == "__vdso_clock_gettime" {
			return symbol.Value, nil
		}
	}
	return 0, errors.Join(errors.New("no clock in the vDSO"), err)
}

// stopOutside stops a process at a moment at which none of its threads is within the range.
func stopOutside(pid int, begin, end uint64) (release func(), err error) {
	release = func() { _ = syscall.Kill(pid, syscall.SIGCONT) }
	for range 100 {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			return release, err
		}
		time.Sleep(5 * time.Millisecond) // the threads stop one after another
		inside, err := anyInside(pid, begin, end)
		if err != nil || !inside {
			return release, err
		}
		release()
		time.Sleep(time.Millisecond)
	}
	return release, errors.New("the process reads the clock without end")
}

// anyInside reports whether a thread runs, or was stopped, within the range.
func anyInside(pid int, begin, end uint64) (bool, error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/syscall", pid))
	if err != nil {
		return false, err
	}
	for _, thread := range threads {
		text, err := os.ReadFile(thread)
		if err != nil {
			continue // it has ended
		}
		fields := strings.Fields(string(text))
		if len(fields) < 2 {
			return true, nil // "running"
		}
		var at uint64
		if _, err := fmt.Sscanf(fields[len(fields)-1], "0x%x", &at); err != nil {
			return false, err
		}
		if at >= begin && at < end {
			return true, nil
		}
	}
	return false, nil
}
