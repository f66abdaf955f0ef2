package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// contender is a process that is measured.
type contender struct {
	command *exec.Cmd
	in      io.Writer
	out     *bufio.Scanner
	log     *os.File
}

func start(dir, name string, args ...string) (*contender, error) {
	c := &contender{command: exec.Command(name, args...)}
	c.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var err error
	if c.log, err = os.Create(filepath.Join(dir, filepath.Base(name)+".log")); err != nil {
		return nil, err
	}
	c.command.Stderr = c.log
	if c.in, err = c.command.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.out = bufio.NewScanner(out)
	return c, c.command.Start()
}

func (c *contender) stop() {
	_ = c.command.Process.Signal(syscall.SIGCONT)
	_ = c.command.Process.Kill() // it may have ended
	_ = c.command.Wait()
	c.log.Close()
}

func (c *contender) ask(what string) string {
	if _, err := fmt.Fprintln(c.in, what); err != nil || !c.out.Scan() {
		return ""
	}
	return c.out.Text()
}

func (c *contender) heap() float64 {
	n, _ := strconv.ParseFloat(c.ask("heap"), 64)
	return n
}

// cpu is the processor time that the process has used.
func (c *contender) cpu() time.Duration {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.command.Process.Pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+2:]))
	user, _ := strconv.ParseInt(fields[11], 10, 64)
	system, _ := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * 10 * time.Millisecond
}

func (c *contender) rss() int64 {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", c.command.Process.Pid))
	if err != nil {
		return 0
	}
	pages, _ := strconv.ParseInt(strings.Fields(string(data))[1], 10, 64)
	return pages * int64(os.Getpagesize())
}
